// A trained model that answers: a sentence is typed or a picture dropped, heads are changed, and the answers before and
// after stand side by side.

import { button, element } from "./elements.js";
import { MEAN } from "./recording.js";

const WORDS = { mute: "mute", keep: "keep only", uniform: "make uniform", swap: "swap", freeze: "freeze" };

export class Live {
  // `models` have an id, a name, what they read ("text" or "picture"), perhaps an example, and whether they have
  // attention; `ask(id, question)` gives a recording's bytes, `python(id, question)` the lines that do the same.
  constructor(app, { models, ask, python }) {
    Object.assign(this, { app, models, send: ask, python, picture: null, turn: 0, before: null });
    this.edits = parsed(app.state.value.edits);
    this.chooser = element("select", { "aria-label": "Model", onchange: () => this.choose() }, models.map((model, place) => new Option(model.name, place, false, place === app.state.value.model)));
    this.text = element("textarea", { rows: 2, "aria-label": "Sentence", dir: "auto", spellcheck: false, maxLength: 20000 });
    this.file = element("input", { type: "file", accept: "image/*", "aria-label": "Picture", onchange: () => this.take(this.file.files[0]) });
    this.preview = element("span", { className: "dropped" });
    this.submit = element("button", { type: "submit", className: "main", textContent: "Look" });
    this.status = element("p", { className: "status", role: "status" });
    this.form = element("form", { className: "ask" }, element("label", { className: "field" }, element("span", { textContent: "Model" }), this.chooser), this.text, element("label", { className: "file" }, this.file, this.preview), this.submit);
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.ask();
    });
    this.text.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.ask();
    });
    this.other = element("select", { "aria-label": "Head to swap with" });
    this.which = element("span", { className: "which" });
    this.tools = element("div", { className: "edits", role: "group", "aria-label": "Change a head" }, this.which,
      ...["mute", "keep", "uniform", "freeze"].map((edit) => button(capital(WORDS[edit]), () => this.add({ edit }), { value: edit })),
      element("span", { className: "swap" }, button("Swap with", () => this.add({ edit: "swap", other: Number(this.other.value) }), { value: "swap" }), this.other),
      this.copier = button("Copy as Python", () => this.copyPython()));
    this.chips = element("ul", { className: "chips", "aria-label": "Changes" });
    this.element = element("section", { className: "live", "aria-label": "Ask the model" }, this.form, this.status, this.tools, this.chips);
    for (const kind of ["dragover", "drop"]) this.app.root.addEventListener(kind, (event) => this.dropped(event));
    this.text.value = app.state.value.ask ?? this.model.example ?? "";
    this.choose(false);
  }

  get model() {
    return this.models[Math.min(this.app.state.value.model, this.models.length - 1)];
  }

  // Whether there is something to ask.
  get asks() {
    return Boolean(this.model.reads === "text" && this.text.value.trim());
  }

  // At the beginning a link asks again what it was asked; the example is only asked where there is nothing else to see.
  get begins() {
    return this.asks && (this.app.state.value.ask !== null || !this.app.entries.length);
  }

  // Another link: asks what it was asked.
  restore() {
    const { ask, edits, model } = this.app.state.value;
    this.chooser.value = Math.min(model, this.models.length - 1);
    this.text.value = ask;
    this.edits = parsed(edits);
    this.choose(false);
    return this.ask();
  }

  choose(ask = true) {
    if (ask) {
      this.app.state.change({ model: Number(this.chooser.value) });
      this.edits = [];
      this.picture = null;
      this.text.value = this.model.example ?? "";
    }
    const reads = this.model.reads;
    this.chooser.parentElement.hidden = this.models.length < 2;
    this.text.hidden = reads !== "text";
    this.file.parentElement.hidden = reads !== "picture";
    this.preview.textContent = this.picture ? this.picture.name : "Drop a picture here, or choose one";
    this.showEdits();
    if (ask && this.asks) this.ask();
  }

  // Which head the buttons mean.
  update() {
    const { tap, head } = this.app.main;
    this.tools.hidden = false;
    this.which.textContent = `${tap.address}, ${head === MEAN || tap.heads === 1 ? "all heads" : `head ${head}`}:`;
    const others = Array.from({ length: tap.heads }, (_, n) => n).filter((n) => n !== head);
    this.other.replaceChildren(...others.map((n) => new Option(`head ${n}`, n)));
    this.tools.querySelector(".swap").hidden = tap.heads < 2 || head === MEAN;
    this.tools.querySelector('[value="keep"]').hidden = tap.heads < 2 || head === MEAN;
  }

  question(edits) {
    const input = this.model.reads === "text" ? { text: this.text.value } : { picture: this.picture?.data ?? "", name: this.picture?.name };
    return { ...input, edits };
  }

  add({ edit, other }) {
    const { tap, head } = this.app.main;
    const made = { address: tap.address, edit };
    if (edit === "swap") Object.assign(made, { heads: [head, other] });
    else if (head !== MEAN && tap.heads > 1) made.heads = [head];
    if (edit === "freeze") made.like = this.model.reads === "text" ? { text: this.asked } : { picture: this.picture.data, name: this.picture.name };
    this.edits = [...this.edits, made];
    this.showEdits();
    if (edit === "freeze") this.status.textContent = "Frozen as it is now. Ask something else, and it keeps looking where it looked.";
    else this.ask();
  }

  showEdits() {
    this.chips.replaceChildren(...this.edits.map((edit, place) => {
      const heads = edit.heads ? `${edit.heads.length > 1 ? "heads" : "head"} ${edit.heads.join(" and ")}` : "all heads";
      const name = `${WORDS[edit.edit]} ${heads} of ${edit.address}`;
      const gone = button("×", () => {
        this.edits = this.edits.filter((_, n) => n !== place);
        this.showEdits();
        this.ask();
      }, { "aria-label": `Do not ${name}` });
      return element("li", {}, name, gone);
    }));
  }

  // Asks for the answer as the model is, and with the changes if there are any; only the newest question counts.
  async ask() {
    const turn = ++this.turn;
    if (this.model.reads === "picture" && !this.picture) {
      this.status.textContent = "Choose a picture first.";
      return;
    }
    this.submit.disabled = true;
    this.status.textContent = "Asking the model …";
    const { id } = this.model;
    const plain = this.question([]);
    const started = performance.now();
    try {
      const before = await this.send(id, plain);
      const after = this.edits.length ? await this.send(id, this.question(this.edits)) : null;
      if (turn !== this.turn) return;
      this.asked = plain.text;
      this.status.textContent = `Answered in ${((performance.now() - started) / 1000).toFixed(2)} s.`;
      this.present(before, after);
    } catch (error) {
      if (turn === this.turn) this.status.textContent = error.message;
    } finally {
      if (turn === this.turn) this.submit.disabled = false;
    }
  }

  present(before, after) {
    const { app } = this;
    const kept = app.entries.filter((entry) => !entry.live);
    const entry = (name, bytes) => ({ name, live: true, load: async () => bytes });
    const own = [entry(after ? "Before" : this.model.name, before)];
    if (after) own.push(entry("After", after));
    app.entries = [...kept, ...own];
    const edits = this.edits.filter((edit) => !edit.like?.picture);
    const place = kept.length;
    const changes = { recording: place, compare: after ? place + 1 : null, ask: plainText(this), edits: edits.length ? JSON.stringify(edits) : null };
    const moved = app.state.value.recording !== changes.recording || app.state.value.compare !== changes.compare;
    app.state.change(changes);
    if (!moved || !app.recordings) app.load();
  }

  async take(file) {
    if (!file) return;
    const data = await new Promise((resolve, reject) => {
      const reader = new FileReader();
      reader.onload = () => resolve(reader.result);
      reader.onerror = () => reject(reader.error);
      reader.readAsDataURL(file);
    });
    this.picture = { data: data.slice(data.indexOf(",") + 1), name: file.name };
    this.preview.textContent = file.name;
    await this.ask();
  }

  dropped(event) {
    if (this.model.reads !== "picture" || ![...(event.dataTransfer?.types ?? [])].includes("Files")) return;
    event.preventDefault();
    if (event.type === "drop") this.take(event.dataTransfer.files[0]);
  }

  async copyPython() {
    try {
      await this.app.copy(await this.python(this.model.id, this.question(this.edits)), "The lines that do the same are copied.");
    } catch (error) {
      this.status.textContent = error.message;
    }
  }
}

const capital = (text) => text[0].toUpperCase() + text.slice(1);
const plainText = (live) => (live.model.reads === "text" ? live.text.value : null);

// Changes from a link; what is not one is left out.
function parsed(text) {
  try {
    const found = JSON.parse(text ?? "[]");
    return Array.isArray(found) ? found.filter((edit) => edit && edit.edit in WORDS && typeof edit.address === "string") : [];
  } catch {
    return [];
  }
}
