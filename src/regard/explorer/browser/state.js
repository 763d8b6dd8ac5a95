// What is looked at, as one value: changed in one place, written into the link, restored from it.

import { MEAN } from "./recording.js";

export const FIRST = {
  recording: 0, compare: null, example: 0, tap: null, head: MEAN, query: null, key: null, view: "words",
  zoom: null, scale: "auto", measure: "entropy", theme: "auto", top: 0, left: 0, model: 0, ask: null, edits: null,
};

const NUMBERS = ["recording", "compare", "example", "query", "key", "zoom", "top", "left", "model"];

export class State {
  constructor(given = {}) {
    this.value = { ...FIRST, ...given };
    this.listeners = [];
  }

  change(changes) {
    const before = this.value;
    if (Object.entries(changes).every(([name, value]) => before[name] === value)) return;
    this.value = { ...before, ...changes };
    for (const listener of this.listeners) listener(this.value, before);
  }

  listen(listener) {
    this.listeners.push(listener);
  }
}

// Only what differs from the beginning, so that links are short.
export function toHash(value) {
  const written = new URLSearchParams();
  for (const [name, usual] of Object.entries(FIRST)) {
    if (value[name] !== usual && value[name] !== null) written.set(name, value[name]);
  }
  return written.toString();
}

// A hash that somebody wrote or damaged: what is no number where one belongs is left out.
export function fromHash(hash) {
  const found = {};
  for (const [name, text] of new URLSearchParams(hash.replace(/^#/, ""))) {
    if (!(name in FIRST)) continue;
    if (NUMBERS.includes(name) || (name === "head" && text !== MEAN)) {
      const number = Number(text);
      if (text !== "" && Number.isFinite(number) && number >= 0) {
        found[name] = name === "zoom" ? number : Math.floor(number);
      }
    } else found[name] = text;
  }
  return found;
}
