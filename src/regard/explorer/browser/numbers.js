// Numbers as a .regard file holds them, decoded to float32 when they are read.

export const BYTES = { F64: 8, F32: 4, F16: 2, BF16: 2, I64: 8, I32: 4, I16: 2, I8: 1, U8: 1, BOOL: 1 };

const PLAIN = {
  F64: Float64Array, F32: Float32Array, I32: Int32Array, I16: Int16Array, I8: Int8Array, U8: Uint8Array, BOOL: Uint8Array,
};

let halves = null;

// All 65,536 half-precision numbers.
function halfTable() {
  if (halves) return halves;
  halves = new Float32Array(65536);
  for (let bits = 0; bits < 65536; bits++) {
    const sign = bits & 0x8000 ? -1 : 1;
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    if (exponent === 31) halves[bits] = fraction ? NaN : sign * Infinity;
    else if (exponent === 0) halves[bits] = sign * fraction * 2 ** -24;
    else halves[bits] = sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  }
  return halves;
}

export class Tensor {
  constructor(dtype, shape, bytes) {
    Object.assign(this, { dtype, shape, bytes });
    this.length = shape.reduce((product, size) => product * size, 1);
  }

  // The numbers from `start` to `stop` in their flat order; a view where nothing has to be decoded.
  values(start = 0, stop = this.length) {
    const width = BYTES[this.dtype];
    const part = aligned(this.bytes.subarray(start * width, stop * width), width);
    const count = stop - start;
    if (this.dtype in PLAIN) return new PLAIN[this.dtype](part.buffer, part.byteOffset, count);
    if (this.dtype === "I64") {
      return Float64Array.from(new BigInt64Array(part.buffer, part.byteOffset, count), Number);
    }
    const bits = new Uint16Array(part.buffer, part.byteOffset, count);
    const decoded = new Float32Array(count);
    if (this.dtype === "BF16") {
      const words = new Uint32Array(decoded.buffer);
      for (let n = 0; n < count; n++) words[n] = bits[n] << 16;
    } else {
      const table = halfTable();
      for (let n = 0; n < count; n++) decoded[n] = table[bits[n]];
    }
    return decoded;
  }
}

function aligned(bytes, width) {
  return bytes.byteOffset % width ? bytes.slice() : bytes;
}
