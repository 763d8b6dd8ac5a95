// The explorer: `mount(root, options)` puts it into an element. `entries` are recordings, each with a name, perhaps a
// training step, and `load()` for its bytes; `live` are models that can be asked (see live.js).

import { Colours } from "./colours.js";
import { Drawing, download, toPNG } from "./drawing.js";
import { button, clamp, element } from "./elements.js";
import { HeadsView } from "./heads.js";
import { Live } from "./live.js";
import { Pane, VIEWS } from "./pane.js";
import { MEAN, Recording } from "./recording.js";
import { State, fromHash, toHash } from "./state.js";
import { weightsTable } from "./table.js";

const KEPT = 8;
const HELP = [
  ["Arrow keys", "in a view: another query or key; among the heads: another head or attention"],
  ["[ and ]", "the head before, the head after"],
  ["{ and }", "the attention before, the attention after"],
  ["m", "the mean over heads"],
  ["1 to 6", "another view"],
  ["+ and −", "closer and farther; 0 shows the whole map"],
  ["Escape", "lets go of what is kept"],
];

let apps = 0;

export class App {
  constructor(root, { entries = [], title = "", introduction = "", live = null, links = false, first = {} }) {
    Object.assign(this, { root, entries, links, hovered: null, lastMap: "words", loaded: new Map(), turn: 0, viewId: `regard-view-${apps++}` });
    const given = links ? fromHash(location.hash) : {};
    this.state = new State({ ...first, ...given });
    root.classList.add("regard");
    this.build(title, introduction);
    this.live = live ? new Live(this, live) : null;
    if (this.live) this.root.querySelector("header").after(this.live.element);
    this.panes = [new Pane(this), new Pane(this)];
    this.place.append(this.panes[0].element, this.panes[1].element);
    this.panes[1].element.hidden = true;
    this.glance = new HeadsView(this.panes[0], true);
    this.aside.append(this.glance.element);
    this.state.listen((value, before) => this.changed(value, before));
    this.theme();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.theme());
    root.addEventListener("keydown", (event) => this.keydown(event));
    if (links) {
      addEventListener("hashchange", () => {
        if (location.hash.slice(1) !== toHash(this.state.value)) this.restore(fromHash(location.hash));
      });
    }
    this.restored = Boolean(given.top || given.left);
    this.ready = this.live?.begins ? this.live.ask() : this.load();
  }

  build(title, introduction) {
    this.picker = element("select", { onchange: () => this.state.change({ recording: Number(this.picker.value), query: null, key: null, top: 0, left: 0 }) });
    this.exampler = element("select", { onchange: () => this.state.change({ example: Number(this.exampler.value), query: null, key: null, top: 0, left: 0 }) });
    this.comparer = element("select", { onchange: () => this.state.change({ compare: this.comparer.value === "" ? null : Number(this.comparer.value) }) });
    this.tapper = element("select", { onchange: () => this.state.change({ tap: this.tapper.value, query: null, key: null, top: 0, left: 0 }) });
    this.slider = element("input", { type: "range", min: 0, step: 1, oninput: () => this.state.change({ recording: this.film[Number(this.slider.value)] }) });
    this.player = button("Play", () => this.play());
    this.stepName = element("output");
    this.timeline = element("div", { className: "timeline", hidden: true }, this.player, element("label", {}, "Training", this.slider), this.stepName);
    const field = (name, control) => {
      control.setAttribute("aria-label", name);
      return element("label", { className: "field" }, element("span", { textContent: name }), control);
    };
    this.fields = { recording: field("Recording", this.picker), example: field("Example", this.exampler), compare: field("Beside it", this.comparer), tap: field("Attention", this.tapper) };
    this.themer = button("", () => this.state.change({ theme: { auto: "dark", dark: "light", light: "auto" }[this.state.value.theme] ?? "auto" }));
    this.scaler = button("", () => this.state.change({ scale: { auto: "linear", linear: "root", root: "auto" }[this.state.value.scale] ?? "auto" }), { title: "How weights become colours" });
    this.linker = button("Copy link", () => this.copy(location.href, "The link shows exactly this."), { hidden: !this.links });
    const tools = element("div", { className: "tools" },
      button("SVG", () => this.export("svg"), { title: "Save what is seen as SVG" }),
      button("PNG", () => this.export("png"), { title: "Save what is seen as PNG" }), this.linker, this.scaler, this.themer);
    this.tabs = element("div", { className: "tabs", role: "tablist", "aria-label": "Views" });
    Object.entries(VIEWS).forEach(([view, { title: name }]) => {
      this.tabs.append(element("button", { type: "button", role: "tab", value: view, textContent: name, "aria-controls": this.viewId, onclick: () => this.state.change({ view }) }));
    });
    this.tabs.addEventListener("keydown", (event) => this.tabKey(event));
    this.zoomer = element("div", { className: "zoom", role: "group", "aria-label": "Size" },
      button("−", () => this.zoom(0.8), { "aria-label": "Farther" }), button("Fit", () => this.zoom(null)), button("+", () => this.zoom(1.25), { "aria-label": "Closer" }));
    this.place = element("div", { className: "panes", id: this.viewId, role: "tabpanel" });
    this.failure = element("p", { className: "failure", role: "alert", hidden: true });
    this.spoken = element("p", { className: "unseen", "aria-live": "polite" });
    this.details = element("details", { ontoggle: () => this.fillTable() }, element("summary", { textContent: "The numbers as a table" }));
    this.help = element("details", { className: "help" }, element("summary", { textContent: "Keyboard" }), element("dl", {}, HELP.map(([keys, what]) => [element("dt", { textContent: keys }), element("dd", { textContent: what })])));
    this.aside = element("aside", { "aria-label": "Heads" }, this.fields.tap);
    this.root.replaceChildren(
      element("header", {}, element("div", { className: "titles" }, element("h1", { dir: "auto", textContent: title || "Where the model looks" }), introduction ? element("p", { dir: "auto", textContent: introduction }) : null), tools),
      element("section", { className: "bar", "aria-label": "What is shown" }, this.fields.recording, this.fields.example, this.fields.compare, this.timeline),
      this.failure,
      element("div", { className: "body" }, this.aside, element("main", {}, element("div", { className: "over" }, this.tabs, this.zoomer), this.place, this.details, this.help)),
      this.spoken,
    );
  }

  get main() {
    return this.panes[0];
  }

  // Which recordings are shown is read, and then everything is drawn.
  async load() {
    const turn = ++this.turn;
    this.fillPickers();
    const { recording, compare } = this.state.value;
    if (!this.entries.length) return this.empty();
    try {
      const wanted = [clamp(recording, 0, this.entries.length - 1), compare === null || compare >= this.entries.length ? null : compare];
      const [first, second] = await Promise.all(wanted.map((place) => (place === null ? null : this.open(place))));
      if (turn !== this.turn) return;
      this.failure.hidden = true;
      this.root.querySelector(".body").hidden = false;
      this.panes.forEach((pane, side) => {
        pane.restored = this.restored;
        pane.element.hidden = side === 1 && !second;
      });
      this.place.classList.toggle("two", Boolean(second));
      this.recordings = [first, second];
      this.show();
      requestAnimationFrame(() => this.panes.forEach((pane) => (pane.restored = this.restored = false)));
    } catch (error) {
      if (turn === this.turn) this.fail(error);
    }
  }

  async open(place) {
    const entry = this.entries[place];
    let found = this.loaded.get(entry);
    if (found) this.loaded.delete(entry);
    else found = new Recording(await entry.load(), entry.name, entry.note);
    this.loaded.set(entry, found);
    for (const oldest of this.loaded.keys()) {
      if (this.loaded.size <= KEPT) break;
      this.loaded.delete(oldest);
    }
    return found;
  }

  show() {
    const [first, second] = this.recordings ?? [];
    if (!first) return;
    const { recording, compare } = this.state.value;
    this.panes[0].show(first, this.entries[Math.min(recording, this.entries.length - 1)].name);
    if (second) this.panes[1].show(second, this.entries[compare]?.name ?? "");
    this.glance.update();
    this.fillControls();
    this.fillTable();
  }

  empty() {
    this.root.querySelector(".body").hidden = true;
    if (!this.live) this.fail(new Error("There is no recording to show."));
  }

  fail(error) {
    this.failure.textContent = error.message || String(error);
    this.failure.hidden = false;
    if (!this.recordings) this.root.querySelector(".body").hidden = true;
    else if (this.state.value.recording < this.entries.length && !this.loaded.has(this.entries[this.state.value.recording])) {
      this.root.querySelector(".body").hidden = true;
    }
    if (error.name !== "DamagedRecording" && error.constructor.name === "TypeError") console.error(error);
  }

  fillPickers() {
    const { entries } = this;
    const { recording, compare } = this.state.value;
    const options = (chosen) => entries.map((entry, place) => new Option(entry.name, place, false, place === chosen));
    this.picker.replaceChildren(...options(recording));
    this.comparer.replaceChildren(new Option("nothing", "", false, compare === null), ...options(compare));
    this.film = entries.map((entry, place) => [entry.step, place]).filter(([step]) => Number.isFinite(step)).sort(([one], [other]) => one - other).map(([, place]) => place);
    this.timeline.hidden = this.film.length < 2;
    this.fields.recording.hidden = entries.length < 2;
    this.fields.compare.hidden = entries.length < 2;
    this.slider.max = Math.max(0, this.film.length - 1);
    const at = this.film.indexOf(recording);
    if (at >= 0) {
      this.slider.value = at;
      this.stepName.textContent = `step ${entries[recording].step}`;
    }
  }

  fillControls() {
    const { recording, tap, example } = this.main;
    this.fields.example.hidden = recording.examples < 2;
    this.exampler.replaceChildren(...Array.from({ length: recording.examples }, (_, place) => {
      const record = recording.record(place);
      return new Option(record.source ?? record.class ?? `example ${place}`, place, false, place === example);
    }));
    this.tapper.replaceChildren(...recording.addresses.map((address) => new Option(address, address, false, address === tap.address)));
    const picture = [...recording.taps.values()].some((each) => each.queryAxis(example)?.kind === "grid" || each.keyAxis(example)?.kind === "grid");
    for (const made of this.tabs.children) {
      if (made.value === "picture") made.hidden = !picture;
      const here = made.value === this.main.view;
      made.setAttribute("aria-selected", here);
      made.tabIndex = here ? 0 : -1;
    }
    this.place.setAttribute("aria-label", VIEWS[this.main.view].title);
    this.zoomer.hidden = this.main.view !== "matrix";
    if (["words", "matrix", "picture"].includes(this.main.view)) this.lastMap = this.main.view;
    const { theme, scale } = this.state.value;
    this.themer.textContent = { auto: "Theme: auto", dark: "Theme: dark", light: "Theme: light" }[theme] ?? "Theme: auto";
    this.scaler.textContent = { auto: "Scale: auto", linear: "Scale: linear", root: "Scale: root" }[scale] ?? "Scale: auto";
    this.live?.update();
  }

  changed(value, before) {
    if (this.links) this.writeLink();
    const differs = (...names) => names.some((name) => value[name] !== before[name]);
    if (differs("theme")) this.theme();
    if (differs("recording", "compare")) return void this.load();
    if (differs("example", "tap", "head", "view", "scale", "measure", "theme")) this.show();
    else if (differs("query", "key")) {
      for (const pane of this.shownPanes) pane.selectionChanged(false);
      this.fillTable();
    }
    return undefined;
  }

  get shownPanes() {
    return this.panes.filter((pane) => pane.recording && !pane.element.hidden);
  }

  // The link follows what is seen, a little later, because browsers allow only so many changes a second.
  writeLink() {
    clearTimeout(this.linking);
    this.linking = setTimeout(() => history.replaceState(null, "", `#${toHash(this.state.value)}`), 150);
  }

  restore(value) {
    this.restored = true;
    this.hovered = null;
    const before = this.state.value;
    this.state.value = new State(value).value;
    this.theme();
    const { ask, edits, model } = this.state.value;
    const asked = ask !== before.ask || edits !== before.edits || model !== before.model;
    if (this.live && asked && ask !== null) this.live.restore();
    else this.load();
  }

  hover(chosen) {
    const same = this.hovered?.query === chosen?.query && this.hovered?.key === chosen?.key;
    if (same) return;
    this.hovered = chosen;
    for (const pane of this.shownPanes) pane.selectionChanged(false);
  }

  follow() {
    for (const pane of this.shownPanes) pane.selectionChanged(true);
  }

  announce(text) {
    this.spoken.textContent = text;
  }

  theme() {
    const { theme } = this.state.value;
    if (theme === "auto") delete this.root.dataset.theme;
    else this.root.dataset.theme = theme;
    this.colours = new Colours(this.root);
    if (this.recordings) this.show();
  }

  zoom(factor) {
    for (const pane of this.shownPanes) pane.current.zoom?.(factor);
  }

  fillTable() {
    this.details.querySelector(".numbers")?.remove();
    if (!this.details.open || !this.main.recording) return;
    this.details.append(element("div", { className: "numbers", tabIndex: 0, role: "group", "aria-label": "Weights" }, weightsTable(this.main)));
  }

  tabKey(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    const shownTabs = [...this.tabs.children].filter((made) => !made.hidden);
    const next = shownTabs[(shownTabs.indexOf(event.target) + step + shownTabs.length) % shownTabs.length];
    event.preventDefault();
    event.stopPropagation();
    this.state.change({ view: next.value });
    next.focus();
  }

  keydown(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.matches("input, textarea, select")) return;
    if (!this.main.recording) return;
    const { tap, recording } = this.main;
    const { query, key } = this.main.pinned;
    const inView = this.place.contains(event.target);
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (step && inView && ["words", "matrix", "picture", "rollout"].includes(this.main.view)) {
      this.main.select(this.moved(query, key, step));
    } else if (event.key === "[" || event.key === "]") {
      const order = tap.heads > 1 ? [MEAN, ...Array(tap.heads).keys()] : [0];
      const place = order.indexOf(this.main.head) + (event.key === "]" ? 1 : -1);
      this.state.change({ head: order[(place + order.length) % order.length] });
      this.announce(this.main.head === MEAN ? "mean over heads" : `head ${this.main.head}`);
    } else if (event.key === "{" || event.key === "}") {
      const place = recording.addresses.indexOf(tap.address) + (event.key === "}" ? 1 : -1);
      this.state.change({ tap: recording.addresses[(place + recording.addresses.length) % recording.addresses.length] });
      this.announce(this.main.tap.address);
    } else if (event.key === "m") this.state.change({ head: MEAN });
    else if (event.key === "Escape") this.state.change({ query: null, key: null });
    else if (["+", "-", "0"].includes(event.key) && this.main.view === "matrix") this.zoom({ "+": 1.25, "-": 0.8, 0: null }[event.key]);
    else if (/^[1-6]$/.test(event.key)) {
      const made = this.tabs.children[Number(event.key) - 1];
      if (!made.hidden) this.state.change({ view: made.value });
    } else return;
    event.preventDefault();
  }

  // One step on: over the patches of a picture in its own directions, else from query to query and from key to key.
  moved(query, key, [down, right]) {
    const { tap, example, view } = this.main;
    const [queries, keys] = [tap.numQueries(example), tap.numKeys(example)];
    const axis = tap.queryAxis(example);
    if (axis?.kind === "grid" && (view === "picture" || view === "rollout")) {
      const extras = (axis.extras ?? []).length;
      if (query === null) return { query: Math.min(extras, queries - 1), key: null };
      if (query < extras) return { query: clamp(query + down + right, 0, queries - 1), key: null };
      const column = (query - extras) % axis.columns;
      const wanted = query + down * axis.columns + (column + right >= 0 && column + right < axis.columns ? right : 0);
      return { query: wanted < extras ? Math.max(0, extras - 1) : wanted < queries ? wanted : query, key: null };
    }
    if (view === "matrix" && right) return { query: query ?? 0, key: key === null ? 0 : clamp(key + right, 0, keys - 1) };
    return { query: query === null ? 0 : clamp(query + down + right, 0, queries - 1), key: view === "matrix" ? key : null };
  }

  play() {
    if (this.playing) {
      clearInterval(this.playing);
      this.playing = null;
    } else {
      this.playing = setInterval(() => {
        const at = (Number(this.slider.value) + 1) % this.film.length;
        this.state.change({ recording: this.film[at] });
      }, 700);
    }
    this.player.textContent = this.playing ? "Pause" : "Play";
  }

  // Everything that is seen, one pane beside the other.
  drawing() {
    const drawing = new Drawing(this.colours);
    let left = 0;
    for (const pane of this.shownPanes) {
      const { tap, head, view } = pane;
      const name = ["heads", "layers"].includes(view) ? pane.heading.textContent : `${tap.address}, ${head === MEAN ? "mean over heads" : `head ${head}`}`;
      drawing.move(left, 28);
      pane.current.describe(drawing);
      drawing.move(left, 0);
      drawing.text(0, 10, name, { "font-weight": 600 });
      left = drawing.width + 32;
    }
    return drawing;
  }

  async export(kind) {
    try {
      const svg = this.drawing().svg();
      const blob = kind === "svg" ? new Blob([svg], { type: "image/svg+xml" }) : await toPNG(svg);
      download(blob, `${this.main.tap.address}-${this.main.view}.${kind}`);
    } catch (error) {
      this.fail(error);
    }
  }

  async copy(text, said) {
    try {
      await navigator.clipboard.writeText(text);
      this.announce(said);
      this.flash(said);
    } catch {
      this.flash("The browser does not allow copying here; take it from the address bar.");
    }
  }

  flash(text) {
    const note = element("div", { className: "flash", textContent: text });
    this.root.append(note);
    setTimeout(() => note.remove(), 2500);
  }
}

export function mount(root, options) {
  return new App(root, options);
}
