// The explorer behind `regard serve`: asks the server what there is.

import { mount } from "./app.js";

async function fetched(path, options) {
  const response = await fetch(path, options);
  if (response.ok) return response;
  let sentence = `The server answered ${response.status}.`;
  try {
    sentence = (await response.json()).error ?? sentence;
  } catch {
    // no sentence of its own
  }
  throw new Error(sentence);
}

const post = (path, value) => fetched(path, {
  method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(value),
});

const bytes = async (response) => new Uint8Array(await (await response).arrayBuffer());

export async function start(root) {
  const { title, recordings, models } = await (await fetched("api/contents")).json();
  const live = models.length && {
    models,
    ask: (id, question) => bytes(post(`api/models/${id}/look`, question)),
    python: async (id, question) => (await (await post(`api/models/${id}/python`, question)).json()).python,
  };
  const entries = recordings.map(({ id, name, step }) => ({ name, step, load: () => bytes(fetched(`api/recordings/${id}`)) }));
  return mount(root, { title, entries, live: live || null, links: true });
}
