// Reads a .regard file: safetensors whose metadata hold one JSON text under the key `regard`. Whatever is wrong with
// it is said in a sentence; nothing is allocated because a damaged header asks for it.

import { BYTES, Tensor } from "./numbers.js";

const VERSION = 1;
const LONGEST_HEADER = 100_000_000;

export class DamagedRecording extends Error {}

function refuse(condition, sentence) {
  if (condition) throw new DamagedRecording(sentence);
}

// { header, tensors }: the description, and the tensors by name.
export function readFile(bytes) {
  refuse(bytes.length < 10, "This is no recording: the file is too short.");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = Number(view.getBigUint64(0, true));
  refuse(
    length > LONGEST_HEADER || 8 + length > bytes.length,
    "This is no recording, or it was cut off: its header would be longer than the file.",
  );
  const listed = parse(bytes.subarray(8, 8 + length), "the list of its tensors");
  const { __metadata__: metadata, ...entries } = listed;
  refuse(typeof metadata?.regard !== "string", "This is a safetensors file, but no recording of Regard.");
  const header = parse(metadata.regard, "its description");
  refuse(
    header.version !== VERSION,
    `This recording has version ${header.version}; this explorer reads version ${VERSION}. Take the Regard that wrote it.`,
  );
  refuse(!Array.isArray(header.taps) || !header.taps.length, "This recording is damaged: it lists no attention.");
  refuse(typeof header.axes !== "object" || !header.axes, "This recording is damaged: it has no axes.");
  const data = bytes.subarray(8 + length);
  const tensors = new Map();
  for (const [name, entry] of Object.entries(entries)) tensors.set(name, tensor(name, entry, data));
  return { header, tensors };
}

function parse(text, what) {
  try {
    const value = JSON.parse(typeof text === "string" ? text : new TextDecoder("utf-8", { fatal: true }).decode(text));
    if (typeof value === "object" && value && !Array.isArray(value)) return value;
  } catch {
    // said below
  }
  throw new DamagedRecording(`This recording is damaged: ${what} cannot be read.`);
}

function tensor(name, entry, data) {
  const [start, stop] = Array.isArray(entry?.data_offsets) ? entry.data_offsets : [];
  const sizes = Array.isArray(entry?.shape) ? entry.shape : [NaN];
  const whole = (value) => Number.isSafeInteger(value) && value >= 0;
  refuse(
    !(entry?.dtype in BYTES) || ![start, stop, ...sizes].every(whole) || stop < start,
    `This recording is damaged: the entry of the tensor ${name} makes no sense.`,
  );
  refuse(stop > data.length, `This recording was cut off: the tensor ${name} is not all there.`);
  const needed = sizes.reduce((product, size) => product * size, BYTES[entry.dtype]);
  refuse(needed !== stop - start, `This recording is damaged: the tensor ${name} has another size than it says.`);
  return new Tensor(entry.dtype, sizes, data.subarray(start, stop));
}
