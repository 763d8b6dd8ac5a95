// Colours of weights: the stops are those of the style sheet, light or dark, and zero is the background itself.

export class Colours {
  constructor(root) {
    const style = getComputedStyle(root);
    const read = (name) => style.getPropertyValue(`--${name}`).trim();
    this.stops = Array.from({ length: 6 }, (_, n) => read(`weight-${n}`));
    for (const name of ["background", "ink", "muted", "line", "outline", "accent", "overlay"]) this[name] = read(name);
    this.font = style.fontFamily;
    const parts = this.stops.map((stop) => [1, 3, 5].map((start) => parseInt(stop.slice(start, start + 2), 16)));
    this.ramp = Array.from({ length: 256 }, (_, n) => {
      const place = (n / 255) * (parts.length - 1);
      const first = Math.min(Math.floor(place), parts.length - 2);
      return parts[first].map((from, part) => Math.round(from + (parts[first + 1][part] - from) * (place - first)));
    });
    // One write a pixel: canvases are little-endian RGBA wherever browsers run.
    this.packed = Uint32Array.from(this.ramp, ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0);
  }

  at(fraction) {
    return `rgb(${this.ramp[place(fraction)].join(" ")})`;
  }

  // Black or white, whichever is easier to read there: never below 4.5 to 1.
  inkOn(fraction) {
    return luminance(this.ramp[place(fraction)]) > 0.179 ? "#000000" : "#ffffff";
  }
}

function luminance(rgb) {
  const [r, g, b] = rgb.map((part) => (part <= 10 ? part / 3294 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

const place = (fraction) => Math.round(Math.min(Math.max(fraction, 0), 1) * 255);

// From a weight to its place on the map; the square root shows thin attention over many positions.
export function scaled(weight, ceiling, squareRoot) {
  const fraction = Math.min(1, weight / ceiling);
  return squareRoot ? Math.sqrt(fraction) : fraction;
}

// Cells as a canvas of one pixel each; rows that are not there yet are left clear.
export function paint(canvas, rows, columns, cell, colours, ceiling, squareRoot) {
  canvas.width = Math.max(1, columns);
  canvas.height = Math.max(1, rows);
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  const pixels = new Uint32Array(image.data.buffer);
  for (let row = 0; row < rows; row++) {
    const weights = cell(row);
    if (!weights) continue;
    for (let column = 0; column < columns; column++) {
      const fraction = Math.min(1, weights[column] / ceiling);
      pixels[row * columns + column] = colours.packed[Math.round((squareRoot ? Math.sqrt(fraction) : fraction) * 255)];
    }
  }
  context.putImageData(image, 0, 0);
}
