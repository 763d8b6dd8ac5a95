// A picture with what looks at it, or where its patches look. Positions that are no place in the picture (words, object
// queries, the class token) are buttons beside it.

import { box, label } from "./axes.js";
import { scaled } from "./colours.js";
import { digits, element, shown, shortened } from "./elements.js";
import { ceiling } from "./rows.js";

const MOST_BUTTONS = 1200;
const TALLEST = 500;

// The picture of an example, wherever the recording keeps it.
export function pictureOf(recording, example) {
  const given = recording.record(example).picture;
  return typeof given === "string" ? (given.startsWith("data:image/") ? given : `data:image/png;base64,${given}`) : null;
}

export const hasPlaces = (axis) => axis?.kind === "grid";

export class PictureView {
  constructor(pane) {
    this.pane = pane;
    this.photo = element("img", { alt: "", draggable: false });
    this.canvas = element("canvas", { "aria-hidden": "true" });
    this.board = element("div", {
      className: "board", tabIndex: 0, role: "application", "aria-roledescription": "picture with attention",
      "aria-describedby": pane.readoutId,
    }, this.photo, this.canvas);
    this.positions = element("div", { className: "positions", role: "group" });
    this.element = element("div", { className: "view picture" }, this.board, this.positions);
    this.board.addEventListener("pointermove", (event) => this.point(event));
    this.board.addEventListener("pointerleave", () => this.pane.hover({ query: null, key: null }));
    this.board.addEventListener("click", (event) => this.pane.pin(this.placeAt(event) ?? { query: null, key: null }));
    this.positions.addEventListener("pointerover", (event) => this.overButton(event, (chosen) => this.pane.hover(chosen)));
    this.positions.addEventListener("pointerleave", () => this.pane.hover({ query: null, key: null }));
    this.positions.addEventListener("click", (event) => this.overButton(event, (chosen) => this.pane.pin(chosen)));
    this.positions.addEventListener("focusin", (event) => {
      if (event.target.matches(":focus-visible")) this.overButton(event, (chosen) => this.pane.select(chosen));
    });
    new ResizeObserver(() => this.layout()).observe(this.element);
  }

  update() {
    const { pane } = this;
    const { tap, example } = pane;
    this.queryAxis = tap.queryAxis(example);
    this.keyAxis = tap.keyAxis(example);
    this.grid = hasPlaces(this.keyAxis) ? this.keyAxis : hasPlaces(this.queryAxis) ? this.queryAxis : null;
    const source = pictureOf(pane.recording, example);
    this.photo.hidden = !source;
    if (source && this.photo.src !== source) this.photo.src = source;
    this.board.hidden = !this.grid;
    this.board.setAttribute("aria-label", `${tap.address} over the picture`);
    this.listed = hasPlaces(this.queryAxis) ? "key" : "query";
    this.fill();
    this.layout();
  }

  // Buttons of the side that is not the picture, or of the extra tokens where both are.
  fill() {
    const { tap, example } = this.pane;
    const both = hasPlaces(this.queryAxis) && hasPlaces(this.keyAxis);
    if (both) this.listed = "query";
    const axis = this.listed === "query" ? this.queryAxis : this.keyAxis;
    const count = both ? (axis.extras ?? []).length : this.listed === "query" ? tap.numQueries(example) : tap.numKeys(example);
    const buttons = Array.from({ length: Math.min(count, MOST_BUTTONS) }, (_, position) => {
      const text = label(axis, position);
      const word = element("button", {
        type: "button", className: "word", dir: "auto", title: text, textContent: shortened(shown(text), 40),
        tabIndex: position ? -1 : 0,
      });
      word.dataset.position = position;
      return word;
    });
    const name = this.listed === "query" ? tap.queries : tap.keys;
    this.positions.setAttribute("aria-label", name);
    const extra = count > buttons.length ? [element("small", { textContent: `and ${count - buttons.length} more` })] : [];
    this.positions.replaceChildren(...buttons, ...extra);
    this.positions.hidden = !buttons.length;
  }

  layout() {
    if (!this.grid || !this.element.clientWidth) return;
    const wide = this.element.clientWidth > 640 && !this.positions.hidden;
    const room = wide ? this.element.clientWidth - 240 : this.element.clientWidth;
    const [height, width] = [this.grid.image_height, this.grid.image_width];
    const scale = Math.min(room / width, TALLEST / height);
    this.size = [Math.round(width * scale), Math.round(height * scale)];
    this.board.style.width = `${this.size[0]}px`;
    this.board.style.height = `${this.size[1]}px`;
    this.photo.classList.toggle("coarse", scale > 3);
    this.drawSoon();
  }

  drawSoon() {
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = null;
      if (this.element.isConnected && this.size) this.drawNow();
    });
  }

  // The weight of each position on the picture, or null where nothing is looked at: all queries' mean then.
  shares() {
    const { pane } = this;
    const { query, key } = pane.selected;
    const overKeys = hasPlaces(this.keyAxis);
    if (overKeys) return query === null ? pane.average() : pane.row(query);
    // The picture looks at words: one word's share of each patch's attention.
    return key === null ? null : pane.column(key);
  }

  drawNow() {
    const { pane, canvas } = this;
    const ratio = devicePixelRatio || 1;
    const [width, height] = this.size;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const shares = this.shares();
    const { top, cells } = this.cells(shares);
    for (const [fraction, ...place] of cells) {
      context.globalAlpha = 0.82 * fraction;
      context.fillStyle = pane.colours.overlay;
      context.fillRect(...place);
    }
    context.globalAlpha = 1;
    for (const place of this.frames()) {
      context.strokeStyle = "#ffffff";
      context.lineWidth = 4;
      context.strokeRect(...place);
      context.strokeStyle = pane.colours.outline;
      context.lineWidth = 2.5;
      context.strokeRect(...place);
    }
    this.photo.classList.toggle("dimmed", Boolean(shares));
    pane.showScale(shares ? top : null, false, true);
    this.shade();
  }

  // [fraction, x, y, width, height] of each patch.
  cells(shares) {
    if (!shares) return { top: null, cells: [] };
    const extras = (this.grid.extras ?? []).length;
    let largest = 0;
    for (let n = extras; n < shares.length; n++) if (shares[n] > largest) largest = shares[n];
    const top = ceiling(largest);
    const scale = this.size[0] / this.grid.image_width;
    const cells = [];
    for (let n = extras; n < shares.length; n++) {
      const [left, upper, right, lower] = box(this.grid, n).map((value) => value * scale);
      // Whole pixels, so that no seams show between patches.
      const [x, y] = [Math.round(left), Math.round(upper)];
      cells.push([scaled(shares[n], top, false), x, y, Math.round(right) - x, Math.round(lower) - y]);
    }
    return { top, cells };
  }

  // Outlines of the patch or box that looks, and of the patch that is pointed at.
  frames() {
    const { query, key } = this.pane.selected;
    const scale = this.size[0] / this.grid.image_width;
    const found = [];
    for (const [axis, position] of [[this.queryAxis, query], [this.keyAxis, key]]) {
      const corners = axis && position !== null ? box(axis, position) : null;
      if (!corners) continue;
      const [left, top, right, bottom] = corners.map((value) => value * scale);
      found.push([left + 1, top + 1, right - left - 2, bottom - top - 2]);
    }
    return found;
  }

  shade() {
    const { pane } = this;
    const { query, key } = pane.selected;
    const active = this.listed === "query" ? query : key;
    const weights = this.listed === "key" && query !== null ? pane.row(query) : null;
    const top = weights ? ceiling(weights.reduce((one, other) => Math.max(one, other), 0)) : 1;
    for (const word of this.positions.querySelectorAll(".word")) {
      const position = Number(word.dataset.position);
      const fraction = weights ? scaled(weights[position], top, false) : 0;
      word.style.backgroundColor = fraction ? pane.colours.at(fraction) : "";
      word.style.color = fraction ? pane.colours.inkOn(fraction) : "";
      if (weights?.[position] >= 0.005) word.dataset.weight = digits(weights[position]);
      else delete word.dataset.weight;
      word.classList.toggle("active", position === active);
      word.tabIndex = position === (active ?? 0) ? 0 : -1;
    }
  }

  // The patch under the pointer: as the one that looks where patches look, else as the one that is looked at.
  placeAt(event) {
    const frame = this.board.getBoundingClientRect();
    const column = Math.floor(((event.clientX - frame.left) / frame.width) * this.grid.columns);
    const row = Math.floor(((event.clientY - frame.top) / frame.height) * this.grid.rows);
    if (row < 0 || column < 0 || row >= this.grid.rows || column >= this.grid.columns) return null;
    const position = (this.grid.extras ?? []).length + row * this.grid.columns + column;
    if (hasPlaces(this.queryAxis)) return { query: position, key: null };
    return { query: this.pane.pinned.query, key: position };
  }

  point(event) {
    this.pane.hover(this.placeAt(event) ?? { query: null, key: null });
  }

  overButton(event, use) {
    const word = event.target.closest?.(".word");
    if (!word) return;
    const position = Number(word.dataset.position);
    use(this.listed === "query" ? { query: position, key: null } : { query: this.pane.pinned.query, key: position });
  }

  select(followed) {
    if (followed && this.positions.contains(document.activeElement)) {
      const { query, key } = this.pane.selected;
      this.positions.children[this.listed === "query" ? query : key]?.focus?.();
    }
    this.drawSoon();
  }

  describe(drawing) {
    const { pane } = this;
    const [width, height] = this.size;
    if (!this.photo.hidden) drawing.image(0, 0, width, height, this.photo.src, { style: "filter:grayscale(1)" });
    else drawing.rect(0, 0, width, height, { fill: pane.colours.background, stroke: pane.colours.line });
    for (const [fraction, x, y, w, h] of this.cells(this.shares()).cells) {
      if (fraction > 0) drawing.rect(x, y, w, h, { fill: pane.colours.overlay, "fill-opacity": 0.82 * fraction });
    }
    for (const place of this.frames()) {
      drawing.rect(...place, { fill: "none", stroke: pane.colours.outline, "stroke-width": 2.5 });
    }
  }

  get hint() {
    const both = hasPlaces(this.queryAxis) && hasPlaces(this.keyAxis);
    if (both) return "Point at a patch to see where it looks. Until then: the mean over all patches.";
    return hasPlaces(this.keyAxis)
      ? "Point at a word to see where in the picture it looks. Until then: the mean over all of them."
      : "Point at a patch to see what it looks at.";
  }
}
