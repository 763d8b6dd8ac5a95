// Queries and keys that a page keeps rounded (see regard.explorer.rounding): back to float32, in place of what they were.
// They are whole numbers times one step for each dimension of each head, dimension after dimension, low bytes first.

import { readFile } from "./file.js";

// The bytes of a recording whose rounded attention has become plain dot products again.
export function unrounded(bytes) {
  const { header, tensors } = readFile(bytes);
  if (!header.taps.some((tap) => tap.fields?.rounded)) return bytes;
  const kept = new Map();
  for (const [name, tensor] of tensors) {
    const [number, part] = [name.split("/")[0], name.slice(name.indexOf("/") + 1)];
    const shape = header.taps[number]?.fields?.rounded?.[part];
    if (!shape) {
      if (!part.endsWith(".steps")) kept.set(name, tensor);
      continue;
    }
    kept.set(name, { dtype: "F32", shape, bytes: new Uint8Array(restored(tensor.values(), tensors.get(`${name}.steps`).values(), shape).buffer) });
  }
  return written(header, kept);
}

function restored(planes, steps, [examples, heads, positions, width]) {
  const count = examples * heads * positions * width;
  const values = new Float32Array(count);
  let place = 0;
  for (let head = 0; head < examples * heads; head++) {
    for (let dimension = 0; dimension < width; dimension++) {
      const step = steps[head * width + dimension];
      for (let position = 0; position < positions; position++, place++) {
        const folded = planes[place] | (planes[place + count] << 8);
        // Positive and negative numbers take turns, so that small ones have an empty high byte.
        values[(head * positions + position) * width + dimension] = (folded & 1 ? -((folded + 1) >> 1) : folded >> 1) * step;
      }
    }
  }
  return values;
}

function written(header, tensors) {
  const entries = { __metadata__: { regard: JSON.stringify(header) } };
  let place = 0;
  for (const [name, { dtype, shape, bytes }] of tensors) {
    entries[name] = { dtype, shape, data_offsets: [place, (place += bytes.length)] };
  }
  const text = new TextEncoder().encode(JSON.stringify(entries));
  const start = 8 + Math.ceil(text.length / 8) * 8;
  const file = new Uint8Array(start + place);
  new DataView(file.buffer).setBigUint64(0, BigInt(start - 8), true);
  file.fill(32, 8, start);
  file.set(text, 8);
  let at = start;
  for (const { bytes } of tensors.values()) {
    file.set(bytes, at);
    at += bytes.length;
  }
  return file;
}
