// Where a position comes from through all layers (Abnar and Zuidema 2020): heads averaged, half of each layer kept for
// the residual, and one row carried from the last layer to the first, so that no whole map is ever made.

import { hasPlaces, PictureView } from "./picture.js";
import { paint } from "./colours.js";
import { digits, element, shown, shortened } from "./elements.js";
import { MEAN } from "./recording.js";
import { ceiling } from "./rows.js";
import { inSlices } from "./slices.js";

// The attention that has a part in what the tap's queries have become: all up to the tap itself, last first, of the
// streams that lead there. Where a stream changes its length (patch merging), it begins.
export function chain(recording, tap) {
  const layers = [...recording.taps.values()];
  const before = layers.slice(0, layers.indexOf(tap) + 1).reverse();
  const sizes = new Map([[tap.queries, tap.relation.queries]]);
  const found = [];
  for (const layer of before) {
    if (sizes.get(layer.queries) !== layer.relation.queries) continue;
    if ((sizes.get(layer.keys) ?? layer.relation.keys) !== layer.relation.keys) continue;
    sizes.set(layer.keys, layer.relation.keys);
    found.push(layer);
  }
  return found;
}

// Yields while it works; its last value is { layers, row, steps }: the row over the tap's keys, also after each layer.
export function * rollout(recording, tap, example, query) {
  const layers = chain(recording, tap);
  const state = new Map();
  const stream = (role, length) => state.get(role) ?? state.set(role, new Float64Array(length)).get(role);
  stream(tap.queries, tap.numQueries(example))[query] = 1;
  const shown = () => Float32Array.from(stream(tap.keys, tap.numKeys(example)));
  const steps = [];
  for (const layer of layers) {
    const from = stream(layer.queries, layer.numQueries(example));
    const moved = new Float64Array(layer.numKeys(example));
    for (let position = 0; position < from.length; position++) {
      if (from[position] <= 1e-9) continue;
      const weights = layer.row(example, MEAN, position);
      let sum = 0;
      for (const weight of weights) sum += weight;
      // What looks at nothing stays what it is.
      const share = from[position] / (sum + 1);
      for (let key = 0; key < weights.length; key++) moved[key] += share * weights[key];
      from[position] = share;
      yield;
    }
    const to = stream(layer.keys, moved.length);
    for (let key = 0; key < moved.length; key++) to[key] += moved[key];
    steps.push({ name: layer.address, row: shown() });
  }
  return { layers, row: shown(), steps };
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
    this.depth = element("div", { className: "depth", role: "group", "aria-label": "The row after each layer", tabIndex: 0 }, this.names, this.strip);
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
    const whole = found.row.reduce((sum, share) => sum + share, 0);
    const part = whole < 0.995 ? ` ${Math.round(100 * whole)} % of it is from ${tap.keys}.` : "";
    this.says.textContent = `Where ${name} comes from, back through ${through} ${through === 1 ? "layer" : "layers"}: heads averaged, half of each layer kept for the residual.${part}`;
    const largest = found.row.reduce((one, other) => Math.max(one, other), 0);
    const top = ceiling(largest);
    [...this.asking.children].forEach((word, position) => word.classList.toggle("active", position === this.query));
    if (this.places) this.picture.drawSoon();
    else this.fillWords(top);
    const steps = found.steps;
    const largestOfAll = Math.max(...steps.map(({ row }) => row.reduce((one, other) => Math.max(one, other), 0)), largest);
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
