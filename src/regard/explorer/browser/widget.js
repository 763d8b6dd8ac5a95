// The explorer in a notebook: recordings come as bytes of the widget's model.

import { mount } from "./app.js";

export function render({ model, el }) {
  const root = document.createElement("div");
  el.append(root);
  const bytes = (view) => new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
  const entries = model.get("names").map((name, place) => ({
    name, step: model.get("steps")[place] ?? undefined, load: async () => bytes(model.get("recordings")[place]),
  }));
  mount(root, { entries, title: model.get("title"), first: model.get("first") });
}
