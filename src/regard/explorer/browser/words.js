// Two columns of positions with lines between them: left those that look, right those that are looked at. Only what is
// in sight exists; where the columns are longer than the window they scroll in proportion, so that both ends meet.

import { scaled } from "./colours.js";
import { clamp, digits, element, shown, shortened } from "./elements.js";
import { Rows, ceiling } from "./rows.js";

const LINE = 30;
const BEYOND = 6;
const FAINT = 0.04;

export class WordsView {
  constructor(pane) {
    this.pane = pane;
    this.canvas = element("canvas", { "aria-hidden": "true" });
    this.lists = ["queries", "keys"].map((side) => element("div", { className: `list ${side}`, role: "group" }));
    this.frame = element("div", { className: "frame" }, this.canvas, ...this.lists);
    this.space = element("div", { className: "space" }, this.frame);
    this.scroller = element("div", { className: "words", tabIndex: 0, role: "group" }, this.space);
    this.heading = element("div", { className: "ends", "aria-hidden": "true" }, element("span"), element("span"));
    this.element = element("div", { className: "view" }, this.heading, this.scroller);
    this.scroller.addEventListener("scroll", () => {
      this.pane.change({ top: Math.round(this.scroller.scrollTop) });
      this.layout();
    });
    this.scroller.addEventListener("pointerleave", () => this.pane.hover({ query: null, key: null }));
    new ResizeObserver(() => this.layout()).observe(this.scroller);
    this.lists.forEach((list, side) => {
      list.addEventListener("pointerover", (event) => this.point(event, side));
      list.addEventListener("click", (event) => this.click(event, side));
      list.addEventListener("focusin", (event) => this.focused(event, side));
    });
  }

  update() {
    const { pane } = this;
    const { tap, example, head } = pane;
    this.counts = [tap.numQueries(example), tap.numKeys(example)];
    this.key = `${pane.identity}/${tap.address}/${example}/${head}`;
    this.rows = pane.rows(this.key, 1, () => new Rows(tap, example, head));
    this.scroller.setAttribute("aria-label", `${tap.queries} and ${tap.keys} of ${tap.address}`);
    const names = tap.queries === tap.keys ? [`${tap.queries}, looking`, `${tap.keys}, looked at`] : [tap.queries, tap.keys];
    names.forEach((name, side) => {
      this.heading.children[side].textContent = name;
      this.lists[side].setAttribute("aria-label", names[side]);
      this.lists[side].replaceChildren();
    });
    this.buttons = [new Map(), new Map()];
    this.space.style.height = `${Math.max(...this.counts) * LINE + 8}px`;
    if (pane.restored) this.scroller.scrollTop = pane.top;
    this.layout();
  }

  // How far each column is scrolled, and what of it is in sight.
  sight(side) {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    const fraction = scrollHeight > clientHeight ? scrollTop / (scrollHeight - clientHeight) : 0;
    const offset = fraction * Math.max(0, this.counts[side] * LINE + 8 - clientHeight);
    return {
      offset,
      first: Math.max(0, Math.floor(offset / LINE) - BEYOND),
      last: Math.min(this.counts[side], Math.ceil((offset + clientHeight) / LINE) + BEYOND),
    };
  }

  y(side, position) {
    return position * LINE - this.sights[side].offset + 4 + (LINE - 4) / 2;
  }

  layout() {
    if (!this.counts || !this.scroller.clientWidth) return;
    this.frame.style.height = `${this.scroller.clientHeight}px`;
    this.sights = [this.sight(0), this.sight(1)];
    this.lists.forEach((list, side) => this.fill(list, side));
    const { first, last } = this.sights[0];
    this.rows.want(first, last, () => this.drawSoon()).catch((error) => this.pane.fail(error));
    this.drawSoon();
  }

  fill(list, side) {
    const { first, last, offset } = this.sights[side];
    const made = this.buttons[side];
    for (const [position, word] of made) {
      if ((position < first || position >= last) && word !== document.activeElement) {
        word.remove();
        made.delete(position);
      }
    }
    const { tap, example } = this.pane;
    for (let position = first; position < last; position++) {
      if (made.has(position)) continue;
      const text = side ? tap.keyLabel(example, position) : tap.queryLabel(example, position);
      const word = element("button", {
        type: "button", className: "word", dir: "auto", tabIndex: -1, title: text, textContent: shortened(shown(text), 40),
      });
      word.dataset.position = position;
      made.set(position, word);
      list.append(word);
    }
    for (const [position, word] of made) word.style.top = `${position * LINE - offset + 4}px`;
    if (side === 0) this.reachable();
  }

  // One word of the left column can be reached by Tab; the arrows lead on from there.
  reachable() {
    const { query } = this.pane.selected;
    const there = this.buttons[0].get(query) ?? this.buttons[0].get(this.sights[0].first);
    for (const word of this.buttons[0].values()) word.tabIndex = word === there ? 0 : -1;
  }

  drawSoon() {
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = null;
      if (this.element.isConnected) this.drawNow();
    });
  }

  // Lines of one query or key, else of all in sight: from, to, weight.
  lines() {
    const { query, key } = this.pane.selected;
    const { first, last } = this.sights[0];
    const found = [];
    const limit = query === null && key === null ? Math.max(FAINT, 0.5 / Math.max(1, this.counts[1])) : 0.004;
    for (let row = query ?? first; row < (query === null ? last : query + 1); row++) {
      const weights = query === null ? this.rows.get(row) : this.pane.row(row);
      if (!weights) continue;
      if (query === null && key !== null) found.push([row, key, weights[key]]);
      else {
        for (let column = 0; column < weights.length; column++) {
          if (weights[column] >= limit) found.push([row, column, weights[column]]);
        }
      }
    }
    return found;
  }

  drawNow() {
    const { pane, canvas, scroller } = this;
    const ratio = devicePixelRatio || 1;
    const [width, height] = [scroller.clientWidth, scroller.clientHeight];
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const { query, key } = pane.selected;
    const some = query !== null || key !== null;
    const [from, to] = this.ends();
    context.strokeStyle = pane.colours.accent;
    context.lineCap = "round";
    for (const [row, column, weight] of this.lines()) {
      context.globalAlpha = (some ? 0.12 : 0.06) + (some ? 0.88 : 0.7) * weight;
      context.lineWidth = 0.75 + (some ? 7 : 4) * weight;
      const [y1, y2] = [this.y(0, row), this.y(1, column)];
      context.beginPath();
      context.moveTo(from, y1);
      context.bezierCurveTo((from + to) / 2, y1, (from + to) / 2, y2, to, y2);
      context.stroke();
    }
    this.shade();
  }

  // The inner edges of the two columns.
  ends() {
    const frame = this.frame.getBoundingClientRect();
    const [left, right] = this.lists.map((list) => list.getBoundingClientRect());
    return [left.right - frame.left + 2, right.left - frame.left - 2];
  }

  // Words as dark as their weight, with the weight beside them.
  shade() {
    const { pane } = this;
    const { query, key } = pane.selected;
    const weights = query === null ? null : pane.row(query);
    const columnWeight = (row) => (query === null && key !== null ? this.rows.get(row)?.[key] ?? 0 : null);
    let largest = 0;
    if (weights) for (const weight of weights) largest = Math.max(largest, weight);
    else if (key !== null) for (let row = this.sights[0].first; row < this.sights[0].last; row++) largest = Math.max(largest, columnWeight(row));
    const top = ceiling(largest);
    pane.showScale(weights || key !== null ? top : null, false);
    this.lists.forEach((list, side) => {
      for (const [position, word] of this.buttons[side]) {
        const weight = side ? weights?.[position] : columnWeight(position);
        const fraction = weight ? scaled(weight, top, false) : 0;
        word.style.backgroundColor = fraction ? pane.colours.at(fraction) : "";
        word.style.color = fraction ? pane.colours.inkOn(fraction) : "";
        word.classList.toggle("active", position === (side ? key : query));
        if (weight >= 0.005) word.dataset.weight = digits(weight);
        else delete word.dataset.weight;
      }
    });
    this.reachable();
  }

  positionOf(event) {
    const word = event.target.closest?.(".word");
    return word ? Number(word.dataset.position) : null;
  }

  chosen(position, side) {
    if (side === 0) return { query: position, key: null };
    // A key on the way of the query that is kept belongs to it.
    return { query: this.pane.pinned.query, key: position };
  }

  point(event, side) {
    const position = this.positionOf(event);
    if (position !== null) this.pane.hover(this.chosen(position, side));
  }

  click(event, side) {
    const position = this.positionOf(event);
    if (position !== null) this.pane.pin(this.chosen(position, side));
  }

  focused(event, side) {
    const position = this.positionOf(event);
    if (position !== null && event.target.matches(":focus-visible")) this.pane.select(this.chosen(position, side));
  }

  select(followed) {
    const { query } = this.pane.selected;
    if (followed && query !== null) {
      const height = this.scroller.clientHeight;
      const scrollable = this.counts[0] * LINE + 8 - height;
      const y = query * LINE - this.sights[0].offset;
      if (scrollable > 0 && (y < 0 || y + LINE > height)) {
        const offset = clamp(query * LINE - height / 2, 0, scrollable);
        this.scroller.scrollTop = (offset / scrollable) * (this.scroller.scrollHeight - height);
        this.layout();
      }
      if (this.lists[0].contains(document.activeElement)) this.buttons[0].get(query)?.focus({ preventScroll: true });
    }
    this.drawSoon();
  }

  describe(drawing) {
    const { pane } = this;
    const frame = this.frame.getBoundingClientRect();
    const [from, to] = this.ends();
    for (const [row, column, weight] of this.lines()) {
      drawing.curve(from, this.y(0, row), to, this.y(1, column), {
        stroke: pane.colours.accent, "stroke-opacity": 0.12 + 0.88 * weight, "stroke-width": 0.75 + 7 * weight,
      });
    }
    this.lists.forEach((list, side) => {
      for (const [position, word] of this.buttons[side]) {
        if (position < this.sights[side].first + BEYOND - 6 || position >= this.sights[side].last) continue;
        const place = word.getBoundingClientRect();
        const y = this.y(side, position) - place.height / 2;
        const style = getComputedStyle(word);
        drawing.rect(place.left - frame.left, y, place.width, place.height, {
          rx: 6, fill: style.backgroundColor, stroke: pane.colours.line,
        });
        drawing.text(place.left - frame.left + place.width / 2, y + place.height / 2 + 5, word.textContent, {
          "text-anchor": "middle", fill: style.color,
        });
      }
    });
  }

  get hint() {
    return "Point at a word to see where it looks; click to keep it. Arrow keys go from word to word.";
  }
}
