// One recording in the chosen view: what all views of it share, and the sentence that reads out what is looked at.

import { name } from "./axes.js";
import { digits, element, shown } from "./elements.js";
import { HeadsView } from "./heads.js";
import { LayersView } from "./layers.js";
import { MatrixView } from "./matrix.js";
import { PictureView, hasPlaces } from "./picture.js";
import { MEAN } from "./recording.js";
import { RolloutView } from "./rollout.js";
import { inSlices } from "./slices.js";
import { WordsView } from "./words.js";

export const VIEWS = {
  words: { title: "Words", make: (pane) => new WordsView(pane) },
  matrix: { title: "Matrix", make: (pane) => new MatrixView(pane) },
  picture: { title: "Picture", make: (pane) => new PictureView(pane) },
  heads: { title: "Heads", make: (pane) => new HeadsView(pane) },
  layers: { title: "Layers", make: (pane) => new LayersView(pane) },
  rollout: { title: "Rollout", make: (pane) => new RolloutView(pane) },
};

const MOST_MAPS = 10;
let panes = 0;

export class Pane {
  constructor(app) {
    Object.assign(this, { app, views: {}, maps: new Map(), recording: null, restored: false, remembered: {} });
    this.readoutId = `readout-${panes++}`;
    this.heading = element("h2", { className: "pane-name", dir: "auto" });
    this.facts = element("dl", { className: "facts" });
    this.place = element("div", { className: "place" });
    this.readout = element("p", { className: "readout", id: this.readoutId });
    this.scale = element("p", { className: "scale" });
    this.element = element("section", { className: "pane" }, this.heading, this.facts, this.place, this.readout, this.scale);
  }

  get state() {
    return this.app.state.value;
  }

  get example() {
    return Math.min(this.state.example, this.recording.examples - 1);
  }

  get tap() {
    return this.recording && (this.recording.taps.get(this.state.tap) ?? this.recording.taps.get(this.recording.first));
  }

  get head() {
    const { heads } = this.tap;
    if (heads === 1) return 0;
    return this.state.head === MEAN || this.state.head >= heads ? MEAN : this.state.head;
  }

  get pinned() {
    return this.within({ query: this.state.query, key: this.state.key });
  }

  // What is pointed at, else what is kept.
  get selected() {
    return this.within(this.app.hovered ?? this.state);
  }

  within({ query, key }) {
    const { tap, example } = this;
    return {
      query: query !== null && query < tap.numQueries(example) ? query : null,
      key: key !== null && key < tap.numKeys(example) ? key : null,
    };
  }

  get zoom() {
    return this.state.zoom;
  }

  get top() {
    return this.state.top;
  }

  get left() {
    return this.state.left;
  }

  get measure() {
    return this.state.measure;
  }

  get colours() {
    return this.app.colours;
  }

  // Another recording; it may be the one that is there.
  show(recording, title) {
    if (recording !== this.recording) {
      this.recording = recording;
      this.identity = `${this.readoutId}/${(this.number = (this.number ?? 0) + 1)}`;
      this.maps.clear();
      this.remembered = {};
    }
    this.heading.textContent = title;
    this.update();
  }

  get view() {
    const wanted = this.state.view in VIEWS ? this.state.view : "words";
    return wanted === "picture" && !this.looksAtPicture ? "matrix" : wanted;
  }

  get looksAtPicture() {
    const { tap, example } = this;
    return hasPlaces(tap.keyAxis(example)) || hasPlaces(tap.queryAxis(example));
  }

  update() {
    if (!this.recording) return;
    this.describeExample();
    const { view } = this;
    this.views[view] ??= VIEWS[view].make(this);
    this.current = this.views[view];
    if (this.place.firstChild !== this.current.element) this.place.replaceChildren(this.current.element);
    this.remembered.row = null;
    this.current.update();
    this.read();
  }

  describeExample() {
    const record = this.recording.record(this.example);
    const entries = [];
    const add = (title, value) => {
      if (value !== undefined && value !== null && value !== "") entries.push(element("dt", { textContent: title }), element("dd", { dir: "auto", textContent: value }));
    };
    for (const key of ["source", "question", "text", "translation", "caption", "answer"]) add(key[0].toUpperCase() + key.slice(1), record[key]);
    if (record.class !== undefined) add("Class", `${record.class}${percent(record.probability)}`);
    const others = (record.classes ?? []).slice(1, 4).map((other) => `${other.class}${percent(other.probability)}`);
    if (others.length) add("Else", others.join(", "));
    if (Number.isFinite(record.score)) add("Score", record.score.toFixed(3));
    const alternatives = (record.alternatives ?? []).map((other) => (typeof other === "string" ? other : other?.translation));
    if (alternatives.filter(Boolean).length) add("Else", alternatives.filter(Boolean).join("  ·  "));
    if (record.step !== undefined) add("Step", record.step);
    if (this.recording.note) add("Note", this.recording.note);
    this.facts.replaceChildren(...entries);
    this.facts.hidden = !entries.length;
  }

  row(query) {
    const key = `${this.tap.address}/${this.example}/${this.head}/${query}`;
    if (this.remembered.row?.key !== key) this.remembered.row = { key, weights: this.tap.row(this.example, this.head, query) };
    return this.remembered.row.weights;
  }

  // The mean row of all queries, and one column; they take time, and the view is drawn again when they are there.
  average() {
    return this.slowly("average", `${this.tap.address}/${this.example}/${this.head}`, this.tap.numKeys(this.example), (sum, row, _, count) => {
      for (let key = 0; key < row.length; key++) sum[key] += row[key] / count;
    });
  }

  column(key) {
    return this.slowly("column", `${this.tap.address}/${this.example}/${this.head}/${key}`, this.tap.numQueries(this.example), (column, row, query) => {
      column[query] = row[key];
    });
  }

  slowly(name, key, length, add) {
    const known = this.remembered[name];
    if (known?.key === key) return known.done ? known.values : null;
    known?.work.stop();
    const values = new Float32Array(length);
    const { tap, example, head } = this;
    const compute = function * compute() {
      const count = tap.numQueries(example);
      for (let query = 0; query < count; query++) {
        add(values, tap.row(example, head, query), query, count);
        yield;
      }
    };
    const entry = { key, values, done: false };
    this.remembered[name] = entry;
    entry.work = inSlices(compute(), (done) => {
      entry.done = done;
      if (done && this.current) this.current.drawSoon?.();
    });
    entry.work.done.catch((error) => this.fail(error));
    return entry.done ? values : null;
  }

  // Maps of which rows have been computed, the oldest forgotten.
  rows(key, pool, make) {
    const whole = `${key}/${pool}`;
    const found = this.maps.get(whole) ?? make();
    this.maps.delete(whole);
    this.maps.set(whole, found);
    for (const oldest of this.maps.keys()) {
      if (this.maps.size <= MOST_MAPS) break;
      this.maps.get(oldest).work?.stop();
      this.maps.delete(oldest);
    }
    return found;
  }

  squareRoot(keys) {
    return this.state.scale === "root" || (this.state.scale === "auto" && keys > 64);
  }

  hover(chosen) {
    this.app.hover(chosen.query === null && chosen.key === null ? null : chosen);
  }

  pin(chosen) {
    this.app.hovered = null;
    const { query, key } = this.pinned;
    const again = chosen.query === query && chosen.key === key;
    this.change(again ? { query: null, key: null } : chosen);
    this.announce();
  }

  // By the keyboard: kept, brought into sight and spoken.
  select(chosen) {
    this.app.hovered = null;
    this.change(chosen);
    this.app.follow();
    this.announce();
  }

  change(changes) {
    this.app.state.change(changes);
  }

  leaveHeads(chosen = {}) {
    this.change({ ...chosen, view: this.app.lastMap });
  }

  selectionChanged(followed) {
    this.current?.select(followed);
    this.read();
  }

  positionName(side, position) {
    const axis = side === "query" ? this.tap.queryAxis(this.example) : this.tap.keyAxis(this.example);
    return axis?.kind === "text" ? `“\u2068${shown(axis.tokens[position])}\u2069”` : name(axis, position);
  }

  // The sentence for what is looked at.
  sentence() {
    const { query, key } = this.selected;
    if (query === null) return null;
    const weights = this.row(query);
    const who = this.positionName("query", query);
    if (key !== null) return `${who} looks at ${this.positionName("key", key)} with ${digits(weights[key])}. ${this.most(weights)}`;
    return `${who} looks at ${this.most(weights, false)}`;
  }

  most(weights, start = true) {
    const best = [...weights.keys()].sort((one, other) => weights[other] - weights[one]).slice(0, 4).filter((place) => weights[place] > 0);
    if (!best.length) return "nothing: all its weights are zero.";
    const listed = best.map((place) => `${this.positionName("key", place)} ${digits(weights[place])}`).join(", ");
    return start ? `Most: ${listed}.` : `${listed}.`;
  }

  read() {
    if (!this.recording) return;
    const view = this.current;
    if (["heads", "layers", "rollout"].includes(this.view)) {
      if (this.view !== "rollout" || !view.found) this.readout.textContent = view.hint;
      return;
    }
    this.readout.textContent = this.sentence() ?? view.hint;
  }

  tell(text) {
    this.readout.textContent = text;
  }

  announce() {
    this.app.announce(this.sentence() ?? "Nothing is kept.");
  }

  // The colour bar; nothing where colours say nothing.
  showScale(top, squareRoot = false, overlay = false) {
    const key = `${top}/${squareRoot}/${overlay}`;
    if (this.scaleKey === key) return;
    this.scaleKey = key;
    this.scale.style.visibility = top === null || top === undefined ? "hidden" : "";
    if (top === null || top === undefined) return;
    const kind = squareRoot ? "attention weight (square-root scale)" : "attention weight";
    this.scale.replaceChildren(element("span", { textContent: "0" }), element("span", { className: overlay ? "bar overlay" : squareRoot ? "bar root" : "bar" }), element("span", { textContent: String(Number(top.toFixed(3))) }), element("span", { textContent: kind }));
  }

  fail(error) {
    this.app.fail(error);
  }
}

const percent = (probability) => (Number.isFinite(probability) ? ` (${(100 * probability).toFixed(1)} %)` : "");
