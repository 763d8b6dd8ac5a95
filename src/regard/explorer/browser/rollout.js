// Where a position comes from through all layers (Abnar and Zuidema 2020): heads averaged, half of each layer kept for
// the residual, and one row carried from the last layer to the first, so that no whole map is ever made.

import { hasPlaces, PictureView } from "./picture.js";
import { paint } from "./colours.js";
import { digits, element, shown, shortened } from "./elements.js";
import { MEAN } from "./recording.js";
import { ceiling } from "./rows.js";
import { inSlices } from "./slices.js";

// The self-attention that leads to the tap's keys (cross attention) or through the tap's own role, last first.
export function chain(recording, tap) {
  const length = tap.queries === tap.keys ? tap.relation.queries : tap.relation.keys;
  return [...recording.taps.values()]
    .filter((each) => each.queries === tap.keys && each.keys === tap.keys)
    .filter((each) => each.relation.queries === length && each.relation.keys === length)
    .reverse();
}

// Yields while it works; its last value is { layers, row, steps }, the row after each layer in `steps`.
export function * rollout(recording, tap, example, query) {
  const layers = chain(recording, tap);
  const length = tap.numKeys(example);
  let row = new Float64Array(length);
  if (tap.queries === tap.keys) row[query] = 1;
  else row = Float64Array.from(tap.row(example, MEAN, query));
  const steps = [{ name: tap.queries === tap.keys ? "itself" : tap.address, row: Float32Array.from(row) }];
  for (const layer of layers) {
    const next = Float64Array.from(row, (share) => share / 2);
    for (let position = 0; position < length; position++) {
      if (row[position] <= 1e-9) continue;
      const weights = layer.row(example, MEAN, position);
      for (let key = 0; key < length; key++) next[key] += (row[position] / 2) * weights[key];
      yield;
    }
    row = next;
    steps.push({ name: layer.address, row: Float32Array.from(row) });
  }
  return { layers, row: Float32Array.from(row), steps };
}

const SIDE = 26;
const MOST_WORDS = 1500;

export class RolloutView {
  constructor(pane) {
    this.pane = pane;
    this.says = element("p", { className: "says" });
    this.asking = element("div", { className: "positions", role: "group" });
    this.strip = element("canvas", { "aria-hidden": "true" });
    this.names = element("ol", { className: "steps" });
    this.words = element("div", { className: "positions flowing", role: "group" });
    this.depth = element("div", { className: "depth", role: "region", "aria-label": "The row after each layer", tabIndex: 0 }, this.names, this.strip);
    // The picture of the overlay view, fed with the row of the rollout instead of one head's.
    this.picture = new PictureView(Object.assign(delegate(pane), { row: () => this.found?.row ?? null, average: () => this.found?.row ?? null }));
    this.element = element("div", { className: "view rollout" }, this.asking, this.says, this.picture.element, this.words, this.depth);
    for (const list of [this.asking, this.words]) {
      list.addEventListener("click", (event) => {
        const word = event.target.closest("button");
        if (word) pane.pin({ query: Number(word.dataset.position), key: null });
      });
    }
  }

  update() {
    this.key = null;
    const { tap, example } = this.pane;
    this.places = hasPlaces(tap.keyAxis(example));
    this.picture.element.hidden = !this.places;
    if (this.places) this.picture.update();
    this.words.hidden = this.places;
    this.words.setAttribute("aria-label", tap.keys);
    this.fillAsking();
    this.select();
  }

  // Where those that look are others than those that are looked at, they are chosen from a list of their own.
  fillAsking() {
    const { tap, example } = this.pane;
    const across = tap.queries !== tap.keys && !this.places;
    this.asking.hidden = !across;
    this.asking.setAttribute("aria-label", tap.queries);
    const count = across ? Math.min(tap.numQueries(example), MOST_WORDS) : 0;
    this.asking.replaceChildren(...Array.from({ length: count }, (_, position) => {
      const text = tap.queryLabel(example, position);
      const word = element("button", { type: "button", className: "word", dir: "auto", title: text, textContent: shortened(shown(text), 40) });
      word.dataset.position = position;
      return word;
    }));
  }

  get query() {
    const count = this.pane.tap.numQueries(this.pane.example);
    return Math.min(this.pane.selected.query ?? this.pane.pinned.query ?? 0, count - 1);
  }

  select() {
    const { pane, query } = this;
    const key = `${pane.identity}/${pane.tap.address}/${pane.example}/${query}`;
    if (key === this.key) return;
    this.key = key;
    this.work?.stop();
    const carried = rollout(pane.recording, pane.tap, pane.example, query);
    const take = function * take(view) {
      view.found = yield* carried;
    };
    this.work = inSlices(take(this), (done) => done && this.drawSoon());
    this.work.done.catch((error) => pane.fail(error));
  }

  drawSoon() {
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = null;
      if (this.element.isConnected && this.found) this.drawNow();
    });
  }

  drawNow() {
    const { pane, found } = this;
    const { tap } = pane;
    const name = pane.positionName("query", this.query);
    const through = found.layers.length;
    this.says.textContent = through
      ? `Where ${name} comes from, through ${through} ${through === 1 ? "layer" : "layers"} of ${tap.keys} attention: heads averaged, half of each layer kept for the residual.`
      : `There is no chain of attention among the ${tap.keys} positions here, so this is ${tap.address} alone, heads averaged.`;
    const largest = found.row.reduce((one, other) => Math.max(one, other), 0);
    const top = ceiling(largest);
    [...this.asking.children].forEach((word, position) => word.classList.toggle("active", position === this.query));
    if (this.places) this.picture.drawSoon();
    else this.fillWords(top);
    const steps = found.steps;
    const largestOfAll = Math.max(...steps.slice(1).map(({ row }) => row.reduce((one, other) => Math.max(one, other), 0)), largest);
    paint(this.strip, steps.length, found.row.length, (row) => steps[row].row, pane.colours, ceiling(largestOfAll), found.row.length > 64);
    const cell = Math.max(1, Math.min(SIDE, Math.floor((this.depth.clientWidth - 190) / found.row.length)));
    Object.assign(this.strip.style, { width: `${cell * found.row.length}px`, height: `${SIDE * steps.length}px` });
    this.names.replaceChildren(...steps.map(({ name: step }) => element("li", { textContent: step })));
    pane.showScale(top);
    pane.tell(this.spoken());
  }

  fillWords(top) {
    const { pane, found } = this;
    const { tap, example } = pane;
    const shownWords = Math.min(found.row.length, MOST_WORDS);
    const same = tap.queries === tap.keys;
    this.words.replaceChildren(...Array.from({ length: shownWords }, (_, position) => {
      const text = tap.keyLabel(example, position);
      const word = element(same ? "button" : "span", { className: "word", dir: "auto", title: `${text}: ${digits(found.row[position])}`, textContent: shortened(shown(text), 40) });
      if (same) word.type = "button";
      const fraction = found.row[position] / top;
      Object.assign(word.style, { backgroundColor: pane.colours.at(fraction), color: pane.colours.inkOn(fraction) });
      word.dataset.position = position;
      word.classList.toggle("active", same && position === this.query);
      if (found.row[position] >= 0.005) word.dataset.weight = digits(found.row[position]);
      return word;
    }));
  }

  spoken() {
    const { pane, found } = this;
    const best = [...found.row.keys()].sort((one, other) => found.row[other] - found.row[one]).slice(0, 3);
    const shares = best.map((key) => `${pane.positionName("key", key)} ${digits(found.row[key])}`).join(", ");
    return `${pane.positionName("query", this.query)} comes from ${shares}.`;
  }

  describe(drawing) {
    const { pane, found } = this;
    if (this.places) {
      this.picture.describe(drawing);
      return;
    }
    const top = ceiling(found.row.reduce((one, other) => Math.max(one, other), 0));
    found.row.slice(0, 400).forEach((share, key) => {
      const y = key * 22;
      drawing.text(0, y + 15, shortened(shown(pane.tap.keyLabel(pane.example, key)), 22));
      drawing.rect(180, y + 3, 300 * (share / top), 16, { fill: pane.colours.accent });
      drawing.text(188 + 300 * (share / top), y + 15, digits(share), { fill: pane.colours.muted });
    });
    drawing.covers(560, found.row.length * 22);
  }

  get hint() {
    return "Choose a position to see where it comes from through all layers.";
  }
}

// A pane whose every property is read through, so that some can be replaced.
function delegate(pane) {
  const names = ["tap", "example", "recording", "colours", "selected", "pinned", "readoutId"];
  const made = {};
  for (const name of names) Object.defineProperty(made, name, { get: () => pane[name], enumerable: true });
  for (const name of ["hover", "pin", "select", "showScale", "column"]) made[name] = (...given) => pane[name](...given);
  return made;
}
