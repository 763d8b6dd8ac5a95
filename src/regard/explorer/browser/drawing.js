// What is seen as an SVG file, and from that as PNG: every view describes itself to a `Drawing`.

const escaped = (text) =>
  String(text).replace(/[&<>"]/g, (letter) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[letter]).replace(
    /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "\ufffd",
  );

export class Drawing {
  constructor(colours) {
    this.colours = colours;
    this.parts = [];
    this.width = 1;
    this.height = 1;
    this.left = 0;
    this.top = 0;
  }

  // What follows is placed from here.
  move(left, top) {
    this.left = left;
    this.top = top;
  }

  covers(right, bottom) {
    this.width = Math.max(this.width, Math.ceil(this.left + right));
    this.height = Math.max(this.height, Math.ceil(this.top + bottom));
  }

  add(name, attributes, text = "") {
    const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${escaped(value)}"`).join("");
    this.parts.push(`<${name}${written}>${text}</${name}>`);
  }

  rect(x, y, width, height, attributes) {
    this.add("rect", { x: round(x + this.left), y: round(y + this.top), width: round(width), height: round(height), ...attributes });
    this.covers(x + width, y + height);
  }

  line(x1, y1, x2, y2, attributes) {
    const [left, top] = [this.left, this.top];
    this.add("line", { x1: round(x1 + left), y1: round(y1 + top), x2: round(x2 + left), y2: round(y2 + top), ...attributes });
  }

  curve(x1, y1, x2, y2, attributes) {
    const [left, top] = [this.left, this.top];
    const middle = round((x1 + x2) / 2 + left);
    const path = `M${round(x1 + left)} ${round(y1 + top)}C${middle} ${round(y1 + top)} ${middle} ${round(y2 + top)} ${round(x2 + left)} ${round(y2 + top)}`;
    this.add("path", { d: path, fill: "none", "stroke-linecap": "round", ...attributes });
  }

  circle(x, y, r, attributes) {
    this.add("circle", { cx: round(x + this.left), cy: round(y + this.top), r, ...attributes });
    this.covers(x + r, y + r);
  }

  text(x, y, text, { turn = 0, ...attributes } = {}) {
    const [left, top] = [round(x + this.left), round(y + this.top)];
    const turned = turn ? { transform: `rotate(${turn} ${left} ${top})` } : {};
    this.add("text", { x: left, y: top, fill: this.colours.ink, ...turned, ...attributes }, escaped(text));
  }

  image(x, y, width, height, source, attributes = {}) {
    const place = { x: round(x + this.left), y: round(y + this.top), width: round(width), height: round(height) };
    this.add("image", { ...place, preserveAspectRatio: "none", href: source, ...attributes });
    this.covers(x + width, y + height);
  }

  svg(margin = 16) {
    const [width, height] = [this.width + 2 * margin, this.height + 2 * margin];
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="${-margin} ${-margin} ${width} ${height}" font-family="${escaped(this.colours.font)}" font-size="13"><rect x="${-margin}" y="${-margin}" width="${width}" height="${height}" fill="${this.colours.background}"/>${this.parts.join("")}</svg>`;
  }
}

const round = (value) => Math.round(value * 100) / 100;

// The SVG as PNG, twice as fine as on the screen, and less where that would be too large for a canvas.
export async function toPNG(svg) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const scale = Math.min(2, 8000 / Math.max(image.width, image.height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(image.width * scale);
  canvas.height = Math.round(image.height * scale);
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

export function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
