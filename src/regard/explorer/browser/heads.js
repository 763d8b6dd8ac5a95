// All heads at a glance: a row for each attention, a column for each head, a small map in each place.

import { paint } from "./colours.js";
import { element } from "./elements.js";
import { MEAN } from "./recording.js";
import { ceiling, thumbnail } from "./rows.js";
import { inSlices } from "./slices.js";

const SIDE = 40;

export class HeadsView {
  constructor(pane, compact = false) {
    Object.assign(this, { pane, compact, maps: new Map(), work: null, key: null });
    this.table = element("table", { className: "heads" });
    this.scroller = element("div", { className: "thumbnails", role: "group", "aria-label": "All heads", tabIndex: compact ? -1 : 0 }, this.table);
    this.element = element("div", { className: compact ? "glance" : "view" }, this.scroller);
    this.table.addEventListener("click", (event) => this.click(event));
    this.table.addEventListener("keydown", (event) => this.keydown(event));
  }

  update() {
    const { pane } = this;
    const key = `${pane.identity}/${pane.example}`;
    if (key !== this.key) {
      this.key = key;
      this.build();
    }
    this.paintAll();
    this.mark();
  }

  build() {
    const { pane } = this;
    const most = Math.max(...[...pane.recording.taps.values()].map((tap) => tap.heads));
    const several = most > 1;
    this.maps.clear();
    const head = element("tr", {}, element("td"), several ? element("th", { scope: "col", textContent: "mean" }) : null,
      Array.from({ length: most }, (_, n) => element("th", { scope: "col", textContent: n })));
    const rows = [...pane.recording.taps.values()].map((tap) => {
      const own = several ? [MEAN, ...Array(tap.heads).keys()] : [0];
      const cells = own.map((each) => {
        const canvas = element("canvas", { "aria-hidden": "true" });
        const name = each === MEAN ? "mean over heads" : `head ${each}`;
        const made = element("button", { type: "button", title: `${tap.address}, ${name}`, "aria-label": `${tap.address}, ${name}`, tabIndex: -1 }, canvas);
        Object.assign(made.dataset, { tap: tap.address, head: each });
        return element("td", {}, made);
      });
      return element("tr", {}, element("th", { scope: "row", textContent: tap.address, title: `${tap.queries} looks at ${tap.keys}` }), cells);
    });
    this.table.replaceChildren(element("caption", { className: "unseen", textContent: "Heads by attention" }), element("thead", {}, head), element("tbody", {}, rows));
    this.work?.stop();
    this.work = inSlices(this.compute(), () => this.paintAll(), this.compact);
    this.work.done.catch((error) => pane.fail(error));
  }

  * compute() {
    const { recording, example } = this.pane;
    for (const tap of recording.taps.values()) {
      const own = [];
      for (let head = 0; head < tap.heads; head++) {
        const made = thumbnail(tap, example, head, SIDE);
        own.push(made);
        this.maps.set(`${tap.address}/${head}`, made);
        yield;
      }
      const cells = new Float32Array(own[0].cells.length);
      for (const { cells: other } of own) for (let n = 0; n < cells.length; n++) cells[n] += other[n] / own.length;
      this.maps.set(`${tap.address}/${MEAN}`, { ...own[0], cells });
      yield;
    }
  }

  paintAll() {
    const dark = this.pane.colours;
    for (const made of this.table.querySelectorAll("button")) {
      const map = this.maps.get(`${made.dataset.tap}/${made.dataset.head}`);
      if (!map || (made.painted === map && made.paintedWith === dark)) continue;
      const largest = map.cells.reduce((one, other) => Math.max(one, other), 0);
      paint(made.firstChild, map.rows, map.columns, (row) => map.cells.subarray(row * map.columns, (row + 1) * map.columns), dark, ceiling(largest), map.columns > 24);
      const scale = 1 / Math.max(map.rows, map.columns);
      made.firstChild.style.width = `${Math.max(12, 100 * map.columns * scale)}%`;
      made.firstChild.style.height = `${Math.max(12, 100 * map.rows * scale)}%`;
      Object.assign(made, { painted: map, paintedWith: dark });
    }
  }

  mark() {
    const { pane } = this;
    let found = null;
    for (const made of this.table.querySelectorAll("button")) {
      const here = made.dataset.tap === pane.tap.address && made.dataset.head === String(pane.head);
      made.setAttribute("aria-pressed", here);
      made.tabIndex = here ? 0 : -1;
      if (here) found = made;
    }
    if (!found && this.table.querySelector("button")) this.table.querySelector("button").tabIndex = 0;
    else if (found && this.compact) keepInSight(this.scroller, found);
  }

  choose(made) {
    this.pane.change({ tap: made.dataset.tap, head: made.dataset.head === MEAN ? MEAN : Number(made.dataset.head) });
    made.focus();
  }

  click(event) {
    const made = event.target.closest("button");
    if (!made) return;
    this.choose(made);
    if (!this.compact) this.pane.leaveHeads();
  }

  // Arrow keys: left and right another head, up and down another attention.
  keydown(event) {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    const made = event.target.closest("button");
    if (!step || !made) return;
    event.preventDefault();
    event.stopPropagation();
    const rows = [...this.table.tBodies[0].rows];
    const row = rows.indexOf(made.closest("tr")) + step[0];
    const buttons = [...(rows[row]?.querySelectorAll("button") ?? [])];
    const place = [...made.closest("tr").querySelectorAll("button")].indexOf(made) + step[1];
    const next = buttons[step[0] ? Math.min(place, buttons.length - 1) : place];
    if (next) this.choose(next);
  }

  select() {}

  describe(drawing) {
    const frame = this.table.getBoundingClientRect();
    for (const made of this.table.querySelectorAll("button")) {
      const place = made.firstChild.getBoundingClientRect();
      drawing.rect(place.left - frame.left, place.top - frame.top, place.width, place.height, { fill: "none", stroke: this.pane.colours.line });
      drawing.image(place.left - frame.left, place.top - frame.top, place.width, place.height, made.firstChild.toDataURL(), { style: "image-rendering:pixelated" });
    }
    for (const heading of this.table.querySelectorAll("th")) {
      const place = heading.getBoundingClientRect();
      const side = heading.scope === "row" ? { "text-anchor": "start" } : { "text-anchor": "middle" };
      const x = heading.scope === "row" ? place.left : place.left + place.width / 2;
      drawing.text(x - frame.left, place.top + place.height / 2 - frame.top + 4, heading.textContent, side);
    }
    drawing.covers(frame.width, frame.height);
  }

  get hint() {
    return "Each small map is one head, its rows spread evenly over the queries. Choose one to look closer.";
  }
}

function keepInSight(scroller, inside) {
  const [frame, place] = [scroller.getBoundingClientRect(), inside.getBoundingClientRect()];
  if (place.top < frame.top) scroller.scrollTop += place.top - frame.top - 8;
  if (place.bottom > frame.bottom) scroller.scrollTop += place.bottom - frame.bottom + 8;
  if (place.left < frame.left) scroller.scrollLeft += place.left - frame.left - 8;
  if (place.right > frame.right) scroller.scrollLeft += place.right - frame.right + 8;
}
