// The explorer of a one-file page: recordings stand in it as compressed text.

import { mount } from "./app.js";
import { unrounded } from "./rounded.js";

const LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;,=>?@^_`{|}~";

// Text in base 85, as Python's base64.b85encode writes it, but with a comma for each "<".
export function decoded(text) {
  const values = new Uint8Array(128).fill(255);
  [...LETTERS].forEach((letter, n) => (values[letter.charCodeAt(0)] = n));
  const bytes = new Uint8Array(Math.ceil(text.length / 5) * 4);
  const view = new DataView(bytes.buffer);
  for (let start = 0, place = 0; start < text.length; start += 5, place += 4) {
    let word = 0;
    for (let n = start; n < start + 5; n++) {
      const value = n < text.length ? values[text.charCodeAt(n)] : 84;
      if (!(value < 85)) throw new Error("This page is damaged: its recording cannot be read.");
      word = word * 85 + value;
    }
    if (word > 0xffffffff) throw new Error("This page is damaged: its recording cannot be read.");
    view.setUint32(place, word);
  }
  return bytes.subarray(0, Math.floor((text.length * 4) / 5));
}

export async function inflated(bytes) {
  if (typeof DecompressionStream === "undefined") throw new Error("This browser is too old to open the page's recordings.");
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  try {
    return new Uint8Array(await new Response(stream).arrayBuffer());
  } catch {
    throw new Error("This page is damaged: its recording cannot be read.");
  }
}

export function start(root) {
  const { title, introduction, entries, first } = JSON.parse(document.getElementById("contents").textContent);
  const load = async (place) => unrounded(await inflated(decoded(document.getElementById(`recording-${place}`).textContent.trim())));
  return mount(root, {
    title, introduction, first, links: true,
    entries: entries.map((entry, place) => ({ ...entry, load: () => load(place) })),
  });
}
