// Making elements. Text only ever enters as textContent, so that no token can become markup.

const SVG = "http://www.w3.org/2000/svg";

export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key in made && !key.includes("-")) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

export function shape(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function button(text, onclick, properties = {}) {
  return element("button", { type: "button", textContent: text, onclick, ...properties });
}

// A token as it is drawn: nothing invisible, nothing that breaks a line or turns its direction round.
export function shown(token) {
  const text = String(token);
  if (!text.trim()) return text ? "␣".repeat(Math.min(text.length, 8)) : "∅";
  let drawn = "";
  for (const letter of text) {
    const code = letter.codePointAt(0);
    if (code < 0x20) drawn += String.fromCodePoint(0x2400 + code);
    else if (code === 0x7f || (code >= 0xd800 && code <= 0xdfff)) drawn += "\ufffd";
    else if (/\p{Cf}/u.test(letter) && code !== 0x200c && code !== 0x200d) continue;
    else drawn += letter;
  }
  return drawn || "∅";
}

// At most so many letters, the rest behind an ellipsis; letters that are drawn together stay together.
export function shortened(text, length) {
  const letters = [...text];
  return letters.length <= length ? text : `${letters.slice(0, length - 1).join("")}…`;
}

// Within a sentence a token keeps its own reading direction.
export const isolated = (text) => `\u2068${text}\u2069`;
export const quoted = (text) => `“${isolated(text)}”`;
export const digits = (value) => (value === 0 ? "0" : value < 0.0005 ? "<0.001" : value.toFixed(value < 0.0995 ? 3 : 2));
export const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
