// Controls of the constants and of the run: a slider and a number side by side.

const POSITIONS = 1000;

/**
 * What one control is for; the constants of the description, and those of the run.
 * @typedef {object} Constant
 * @property {string} name  @property {string} mathml  @property {string} meaning
 * @property {"whole"|"real"|"word"} kind
 * @property {number|string} default
 * @property {number|null} minimum  @property {number|null} maximum
 * @property {boolean} [open_minimum]  @property {boolean} [open_maximum]
 * @property {Array|null} [values]  the only ones
 * @property {boolean} [logarithmic]  @property {string} [ends]
 * @property {string} [divides]  constant that it divides  @property {object} [divisors]  value of that -> its own
 */

/** One control; `changed(name, done)` is called at every move, with done at its end. */
class Control {
  /** @param {Constant} constant  @param {function(string, boolean): void} changed */
  constructor(constant, changed) {
    this.constant = constant;
    this.value = constant.default;
    this.element = make("div", { class: "control" });
    const id = `control-${constant.name}`;
    const label = make("label", { for: id });
    label.append(formula(constant.mathml, constant.name), make("span", { class: "meaning" }, constant.meaning));
    this.note = make("p", { class: "note", id: `${id}-note` });
    this.refusal = make("div", { class: "refusal", role: "alert", id: `${id}-refusal` });
    this.element.append(label);
    if (constant.kind === "word") this.add_choice(id, changed);
    else this.add_slider(id, changed);
    this.element.append(this.note, this.refusal);
    this.show(constant.default);
  }

  add_choice(id, changed) {
    this.choice = make("select", { id, "aria-describedby": `${id}-note ${id}-refusal` });
    for (const value of this.constant.values || [this.constant.default]) {
      this.choice.append(make("option", { value }, value));
    }
    this.choice.addEventListener("change", () => {
      this.value = this.choice.value;
      changed(this.constant.name, true);
    });
    this.element.append(this.choice);
  }

  add_slider(id, changed) {
    const { name, meaning } = this.constant;
    this.positions = slider_positions(this.constant);
    const described = `${id}-note ${id}-refusal`;
    this.slider = make("input", { type: "range", id, min: 0, max: this.positions.last, step: 1,
      "aria-describedby": described });
    this.number = make("input", { type: "text", inputmode: "decimal", id: `${id}-number`, autocomplete: "off",
      spellcheck: "false", "aria-label": `${name}: ${meaning}`, "aria-describedby": described });
    const move = (done) => {
      this.value = this.positions.value(Number(this.slider.value));
      this.show(this.value, this.slider);
      changed(name, done);
    };
    this.moving = false;
    this.slider.addEventListener("input", () => {
      this.moving = true;
      move(false);
    });
    const let_go = () => {
      if (this.moving) move(true);
      this.moving = false;
    };
    this.slider.addEventListener("change", let_go);
    // A slider that is dragged to and fro and ends where it began has no event "change".
    for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, () => window.setTimeout(let_go));
    this.number.addEventListener("change", () => {
      this.value = this.number.value.trim() === "" ? NaN : Number(this.number.value);
      this.show(this.value, this.number);
      changed(name, true);
    });
    const row = make("div", { class: "row" });
    const ends = make("div", { class: "ends", "aria-hidden": "true" });
    this.show_ends = (constant) => ends.replaceChildren(...limits_of(constant).map((text) => make("span", {}, text)));
    this.show_ends(this.constant);
    const track = make("div", { class: "track" });
    track.append(this.slider, ends);
    row.append(track, this.number);
    this.element.append(row);
  }

  /** Put a value on the control, but for the part of it that a reader has in hand. */
  show(value, source = null) {
    this.value = value;
    if (this.choice) {
      this.choice.value = value;
    } else {
      if (source !== this.number) this.number.value = exact(value);
      if (source !== this.slider && Number.isFinite(value)) this.slider.value = this.positions.place(value);
      this.slider.setAttribute("aria-valuetext", `${this.constant.name} = ${exact(value)}`);
    }
    const last = this.constant.ends && Number(value) >= Number(this.positions ? this.positions.greatest : NaN);
    this.note.textContent = last ? `The slider ends here: ${this.constant.ends}.` : "";
  }

  /** Offer some values only, and move to the nearest of them; `why` says what they are. */
  offer(values, why) {
    const offered = { ...this.constant, values };
    this.positions = slider_positions(offered);
    this.slider.max = this.positions.last;
    this.show_ends(offered);
    const place = this.positions.place(this.value);
    this.slider.value = place;
    const others = String(values) !== this.offered;
    this.offered = String(values);
    if (Number.isNaN(this.value)) return;
    if (values.includes(this.value)) {
      if (others) this.show(this.value);
      return;
    }
    const before = exact(this.value);
    this.show(values[place]);
    this.note.textContent = `Moved from ${before} to ${exact(values[place])}, ${why}. ${this.note.textContent}`;
  }

  /** Say why a value is refused, with a button for the nearest one; "" takes it back. */
  refuse(message, nearest, accept) {
    this.refusal.textContent = "";
    this.element.classList.toggle("refused", Boolean(message));
    for (const part of [this.slider, this.number, this.choice]) {
      if (part) part.setAttribute("aria-invalid", String(Boolean(message)));
    }
    if (!message) return;
    this.refusal.append(make("p", {}, message));
    if (nearest) {
      const button = make("button", { type: "button" }, `use ${nearest}`);
      button.addEventListener("click", accept);
      this.refusal.append(button);
    }
  }
}

/**
 * The places of a slider: which value each has, and which is nearest to a value.
 * @param {Constant} constant
 */
function slider_positions(constant) {
  const { values, kind, logarithmic } = constant;
  if (values) {
    const nearest = (value) => values.reduce((best, each, k) =>
      (Math.abs(each - value) < Math.abs(values[best] - value) ? k : best), 0);
    return { last: values.length - 1, value: (k) => values[k], place: nearest, greatest: values[values.length - 1] };
  }
  const [low, high] = ends_of(constant);
  if (kind === "whole" && !logarithmic && high - low <= 10 * POSITIONS) {
    return { last: high - low, value: (k) => low + k, place: (value) => value - low, greatest: high };
  }
  const even = scale(low, high, 0, POSITIONS, Boolean(logarithmic) && low > 0);
  const first = constant.open_minimum ? 1 : 0;
  const last = POSITIONS - (constant.open_maximum ? 1 : 0);
  const value = (k) => {
    const place = Math.min(Math.max(k, first), last);
    if (place === 0) return low;
    if (place === POSITIONS) return high;
    const exactly = even.value(place);
    return kind === "whole" ? Math.round(exactly) : Number(exactly.toPrecision(4));
  };
  return { last: POSITIONS, value, place: (each) => Math.round(even.at(each)), greatest: value(last) };
}

/** Ends of a slider; of a constant without a limit within a factor of 100 of its default. */
function ends_of({ minimum, maximum, default: usual }) {
  const size = Math.abs(usual) || 1;
  return [minimum ?? Math.min(usual, size / 100), maximum ?? Math.max(usual, size * 100)];
}

/** The limits as they are read below a slider. */
function limits_of(constant) {
  if (constant.values) return [constant.values[0], constant.values[constant.values.length - 1]].map((value) => brief(Number(value)));
  const [low, high] = ends_of(constant);
  return [`${constant.open_minimum ? "> " : ""}${brief(low)}`, `${constant.open_maximum ? "< " : ""}${brief(high)}`];
}

/** An element with attributes and a text. */
function make(tag, attributes = {}, text = "") {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text) element.textContent = text;
  return element;
}

/** A formula as an element; its name where it has none. */
function formula(mathml, name) {
  const element = make("span", { class: "formula" });
  if (mathml) element.innerHTML = mathml;
  else element.textContent = name;
  return element;
}
