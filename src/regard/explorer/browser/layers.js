// Numbers of all heads by depth: a dot for each head, and the same as a table whose entries lead to the head.

import { digits, element, shape } from "./elements.js";
import { inSlices } from "./slices.js";
import { MEASURES, Statistics } from "./statistics.js";

const HEIGHT = 300;
const LEFT = 64;
const BOTTOM = 34;
const TURNED = 110;

export class LayersView {
  constructor(pane) {
    this.pane = pane;
    this.choice = element("div", { className: "choices", role: "group", "aria-label": "What is measured" });
    for (const [measure, { title }] of Object.entries(MEASURES)) {
      this.choice.append(element("button", { type: "button", value: measure, textContent: title, onclick: () => pane.change({ measure }) }));
    }
    this.says = element("p", { className: "says" });
    this.chart = element("div", { className: "chart" });
    this.table = element("div", { className: "numbers", tabIndex: 0, role: "group", "aria-label": "Heads by attention" });
    this.element = element("div", { className: "view layers" }, this.choice, this.says, this.chart, this.table);
    this.table.addEventListener("click", (event) => this.click(event));
    this.chart.addEventListener("click", (event) => this.click(event));
    new ResizeObserver(() => this.drawSoon()).observe(this.chart);
  }

  update() {
    const { pane } = this;
    const key = `${pane.identity}/${pane.example}`;
    if (key !== this.key) {
      this.key = key;
      this.work?.stop();
      this.statistics = new Statistics(pane.recording, pane.example);
      this.work = inSlices(this.statistics.compute(), (done) => (done ? this.drawSoon() : this.drawSometimes()));
      this.work.done.catch((error) => pane.fail(error));
    }
    for (const made of this.choice.children) made.setAttribute("aria-pressed", made.value === pane.measure);
    this.drawSoon();
  }

  drawSometimes() {
    if (performance.now() - (this.drawn ?? 0) > 250) this.drawSoon();
  }

  drawSoon() {
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = null;
      this.drawn = performance.now();
      if (this.element.isConnected && this.statistics) this.drawNow();
    });
  }

  // Every head that has this number: its attention, place and value.
  dots() {
    const found = [];
    [...this.pane.recording.taps.values()].forEach((tap, place) => {
      for (let head = 0; head < tap.heads; head++) {
        const value = this.statistics.get(tap.address, head)?.[this.pane.measure];
        if (value !== null && value !== undefined) found.push({ tap, place, head, value });
      }
    });
    return found;
  }

  drawNow() {
    const { pane, statistics } = this;
    const { says } = MEASURES[pane.measure];
    const sampled = statistics.sampled ? " Only some queries of each map, evenly spread, were looked at." : "";
    this.says.textContent = `${says[0].toUpperCase()}${says.slice(1)}. Mean over the queries of each head.${sampled}`;
    const dots = this.dots();
    this.drawChart(dots);
    this.fillTable(dots);
    pane.showScale(null);
  }

  scales(dots) {
    const taps = [...this.pane.recording.taps.values()];
    const width = Math.max(320, this.chart.clientWidth);
    const top = nice(Math.max(...dots.map((dot) => dot.value), 1e-9));
    const step = (width - LEFT - 16) / taps.length;
    return {
      taps, width, top,
      x: ({ place, head, tap }) => LEFT + step * (place + 0.5) + (tap.heads > 1 ? (head / (tap.heads - 1) - 0.5) * Math.min(step * 0.55, 60) : 0),
      middle: (place) => LEFT + step * (place + 0.5),
      y: (value) => 12 + (HEIGHT - 12) * (1 - value / top),
    };
  }

  unit(dots) {
    const units = new Set(dots.map(({ tap }) => this.statistics.unit(this.pane.measure, tap)));
    return [...units].filter(Boolean).join(", ");
  }

  drawChart(dots) {
    const { pane } = this;
    if (!dots.length) {
      const none = pane.measure === "distance" && this.statistics.heads.size;
      this.chart.replaceChildren(element("p", { className: "says", textContent: none ? "No attention here relates positions between which there is a distance." : "Computing …" }));
      return;
    }
    const { taps, width, top, x, y, middle } = this.scales(dots);
    const turned = middle(1) - middle(0) < TURNED && taps.length > 1;
    const drawn = shape("svg", { width, height: HEIGHT + (turned ? TURNED : BOTTOM), "aria-hidden": "true" });
    for (const part of [0, 0.25, 0.5, 0.75, 1]) {
      drawn.append(shape("line", { class: "rule", x1: LEFT, x2: width - 16, y1: y(top * part), y2: y(top * part) }));
      drawn.append(shape("text", { class: "tick", x: LEFT - 8, y: y(top * part) + 4, "text-anchor": "end" }, tick(top * part)));
    }
    const unit = this.unit(dots);
    if (unit) drawn.append(shape("text", { class: "tick", x: 14, y: HEIGHT / 2, transform: `rotate(-90 14 ${HEIGHT / 2})`, "text-anchor": "middle" }, unit));
    taps.forEach((tap, place) => {
      const at = turned ? { transform: `translate(${middle(place) + 4} ${HEIGHT + 14}) rotate(-40)`, "text-anchor": "end" } : { x: middle(place), y: HEIGHT + 20, "text-anchor": "middle" };
      drawn.append(shape("text", { class: "tick", ...at }, tap.address));
    });
    for (const dot of dots) {
      const here = dot.tap.address === pane.tap.address && (dot.head === pane.head || dot.tap.heads === 1);
      const made = shape("circle", { class: here ? "dot here" : "dot", cx: x(dot), cy: y(dot.value), r: here ? 7 : 5 });
      Object.assign(made.dataset, { tap: dot.tap.address, head: dot.head });
      made.append(shape("title", {}, `${dot.tap.address}, head ${dot.head}: ${number(dot.value)} ${unit}`));
      drawn.append(made);
    }
    this.chart.replaceChildren(drawn);
  }

  fillTable(dots) {
    const most = Math.max(0, ...dots.map((dot) => dot.head)) + 1;
    const byTap = new Map();
    for (const dot of dots) byTap.set(dot.tap.address, [...(byTap.get(dot.tap.address) ?? []), dot]);
    const head = element("tr", {}, element("td"), Array.from({ length: most }, (_, n) => element("th", { scope: "col", textContent: `head ${n}` })));
    const rows = [...byTap].map(([address, own]) => element("tr", {}, element("th", { scope: "row", textContent: address }), own.map((dot) => {
      const made = element("button", { type: "button", className: "link", textContent: number(dot.value), "aria-label": `${address}, head ${dot.head}: ${number(dot.value)}` });
      Object.assign(made.dataset, { tap: address, head: dot.head });
      return element("td", {}, made);
    })));
    const focused = this.table.contains(document.activeElement) ? document.activeElement.dataset : null;
    this.table.replaceChildren(element("table", {}, element("caption", { textContent: `${MEASURES[this.pane.measure].title}; choose a number to see its head` }), element("thead", {}, head), element("tbody", {}, rows)));
    this.table.hidden = !dots.length;
    if (focused?.tap) this.table.querySelector(`[data-tap="${CSS.escape(focused.tap)}"][data-head="${focused.head}"]`)?.focus();
  }

  click(event) {
    const { tap, head } = event.target.closest("[data-tap]")?.dataset ?? {};
    if (tap) this.pane.leaveHeads({ tap, head: Number(head) });
  }

  select() {}

  describe(drawing) {
    const dots = this.dots();
    const { taps, width, top, x, y, middle } = this.scales(dots);
    for (const part of [0, 0.25, 0.5, 0.75, 1]) {
      drawing.line(LEFT, y(top * part), width - 16, y(top * part), { stroke: this.pane.colours.line });
      drawing.text(LEFT - 8, y(top * part) + 4, tick(top * part), { "text-anchor": "end" });
    }
    taps.forEach((tap, place) => drawing.text(middle(place) + 4, HEIGHT + 16, tap.address, { turn: -40, "text-anchor": "end" }));
    for (const dot of dots) drawing.circle(x(dot), y(dot.value), 5, { fill: this.pane.colours.accent, "fill-opacity": 0.75 });
    drawing.text(LEFT, 4, `${MEASURES[this.pane.measure].title} ${this.unit(dots)}`);
    drawing.covers(width, HEIGHT + TURNED);
  }

  get hint() {
    return "Choose a dot or a number to see its head.";
  }
}

// The next of 1, 2, 5 times a power of ten.
function nice(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 8, 10].find((step) => value <= step * power * (1 + 1e-9)) * power;
}

const tick = (value) => String(Number(value.toPrecision(3)));
const number = (value) => (value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value === 0 ? "0" : value < 0.0005 ? digits(value) : value.toFixed(value < 1 ? 3 : 2));
