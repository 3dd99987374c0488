// Numbers as text: never more digits than are known.

const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
const MOST_DIGITS = 10;

/** An exponent in raised digits: 10 to the -3 has "⁻³". */
function raised(exponent) {
  return [...String(exponent)].map((letter) => RAISED[letter]).join("");
}

/**
 * A decimal number with a true minus, and with a power of ten where it is very large or small.
 * @param {string} text as `toPrecision` or `toExponential` writes it
 */
function typeset(text) {
  const [mantissa, exponent] = text.split("e");
  if (exponent === undefined) return mantissa.replace("-", "−");
  const ten = `10${raised(Number(exponent))}`;
  if (mantissa === "1" || mantissa === "-1") return mantissa.replace("-", "−").replace("1", ten);
  return `${mantissa.replace("-", "−")}×${ten}`;
}

/** Whether a number is written with a power of ten. */
function isExtreme(value) {
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-3 || size >= 1e6);
}

/**
 * A number to so many significant digits, trailing zeros left out.
 * @param {number} value
 * @param {number} [digits]
 */
function brief(value, digits = 4) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "no number" : value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const text = isExtreme(value)
    ? value.toExponential(digits - 1).replace(/\.?0+e/, "e")
    : String(Number(value.toPrecision(digits)));
  return typeset(text);
}

/**
 * A number with its uncertainty; its last digit is the first one that the uncertainty touches.
 * @param {number} value
 * @param {number} uncertainty absolute; 0 or no number where none is known
 * @returns {string} such as "117.45 ± 0.02"
 */
function measured(value, uncertainty) {
  if (!(uncertainty > 0) || !Number.isFinite(value)) return brief(value);
  const last = Math.floor(Math.log10(uncertainty));
  const first = value === 0 ? last : Math.floor(Math.log10(Math.abs(value)));
  const digits = Math.min(Math.max(first - last + 1, 1), MOST_DIGITS);
  const bound = typeset(isExtreme(uncertainty) ? rounded_up(uncertainty).toExponential(0)
    : String(rounded_up(uncertainty)));
  const text = isExtreme(value) ? value.toExponential(digits - 1)
    : value.toFixed(Math.max(0, digits - 1 - first));
  return `${typeset(text)} ± ${bound}`;
}

/** A positive number to one digit, never less than it is. */
function rounded_up(value) {
  const unit = 10 ** Math.floor(Math.log10(value));
  return Number((Math.ceil(value / unit - 1e-9) * unit).toPrecision(1));
}

/** A number as the command line and an address take it: the shortest text with its exact value. */
function exact(value) {
  if (typeof value !== "number") return String(value);
  if (value !== 0 && value % 1 === 0 && Math.abs(value) >= 1e5) {
    const text = value.toExponential().replace("e+", "e");
    if (text.length < String(value).length) return text;
  }
  return String(value);
}
