// The letters of formulas on charts: MathML as runs of text at three heights.

/**
 * A part of a formula in one size.
 * @typedef {{text: string, level: number, italic: boolean, above?: boolean}} Run
 * level 1 is raised, -1 lowered; `above` begins where the runs before it of another level began
 */

const ACCENTS = { "˙": "\u0307", "^": "\u0302", "¯": "\u0304", "~": "\u0303", ".": "\u0307" };
const SPACED = new Set(["=", "<", ">", "≤", "≥", "+", "→"]);

/** A text as a single run, or runs as they are. */
function as_runs(text) {
  return Array.isArray(text) ? text : [{ text: String(text), level: 0, italic: false }];
}

/**
 * Runs of a formula; of a text without MathML the text.
 * @param {string} mathml
 * @param {string} name what it is called where there is no formula
 * @returns {Run[]}
 */
function letters(mathml, name) {
  if (!mathml) return as_runs(name);
  const holder = document.createElement("template");
  holder.innerHTML = mathml;
  const runs = runs_of(holder.content, 0);
  return runs.length ? runs : as_runs(name);
}

function runs_of(node, level) {
  if (node.nodeType === Node.TEXT_NODE) return [];
  const each = [...node.childNodes].filter((child) => child.nodeType === Node.ELEMENT_NODE);
  const text = node.textContent.trim();
  const upright = node.getAttribute && node.getAttribute("mathvariant") === "normal";
  switch (node.localName) {
    case "annotation":
      return [];
    case "mi":
      return [{ text, level, italic: !upright && [...text].length === 1 }];
    case "mn":
      return [{ text, level, italic: false }];
    case "mtext":
      return [{ text: node.textContent.replace(/\s+/g, " "), level, italic: false }];
    case "mo":
      return [{ text: SPACED.has(text) ? ` ${text} ` : text.replace("-", "−"), level, italic: false }];
    case "mspace":
      return [{ text: " ", level, italic: false }];
    case "msub":
    case "munder":
      return [...runs_of(each[0], level), ...runs_of(each[1], -1)];
    case "msup":
      return [...runs_of(each[0], level), ...runs_of(each[1], 1)];
    case "msubsup":
    case "munderover":
      return [...runs_of(each[0], level), ...runs_of(each[1], -1), ...above(runs_of(each[2], 1))];
    case "mover":
      return accented(runs_of(each[0], level), each[1].textContent.trim());
    case "mfrac":
      return [...runs_of(each[0], level), { text: "/", level, italic: false }, ...runs_of(each[1], level)];
    case "msqrt":
      return [{ text: "√", level, italic: false }, ...each.flatMap((child) => runs_of(child, level))];
    default:
      return each.flatMap((child) => runs_of(child, level));
  }
}

/** Runs that stand above those lowered before them. */
function above(runs) {
  return runs.map((run, k) => ({ ...run, above: k === 0 }));
}

function accented(runs, accent) {
  const mark = ACCENTS[accent] || "";
  return runs.map((run, k) => (k === runs.length - 1 ? { ...run, text: run.text + mark } : run));
}

const NUMBERED = /^([A-Za-z])_?(\d+)(?:_(\w+))?$/;

/**
 * The short mark of an event on charts: its formula where that is not a condition, else its name.
 * @param {{name: string, mathml: string, condition?: string}} event
 * @returns {Run[]} of "T1_paper" a T with a lowered 1, and "paper"
 */
function event_mark({ name, mathml, condition }) {
  const runs = letters(mathml, name);
  const set = runs.some((run) => run.italic || run.level);
  if (mathml && set && (condition || is_letter(mathml))) return runs;
  const [, letter, index, rest] = NUMBERED.exec(name) || [];
  if (!letter) return as_runs(name.replace(/_/g, " "));
  const mark = [{ text: letter, level: 0, italic: true }, { text: index, level: -1, italic: false }];
  return rest ? [...mark, ...as_runs(` ${rest.replace(/_/g, " ")}`)] : mark;
}

/** Whether a formula is one letter, with or without an index. */
function is_letter(mathml) {
  const runs = letters(mathml, "");
  return runs.filter(({ level }) => level === 0).length === 1 && [...spoken(runs)].length <= 4;
}

/** Runs as an element of the page. */
function as_element(runs) {
  const element = make("span", { class: "formula" });
  for (const { text, level, italic } of runs) {
    const part = make(level > 0 ? "sup" : level < 0 ? "sub" : italic ? "i" : "span");
    part.textContent = text;
    element.append(part);
  }
  return element;
}

/** Runs as one plain text, for readers of screens. */
function spoken(runs) {
  return runs.map((run) => run.text).join("").trim();
}
