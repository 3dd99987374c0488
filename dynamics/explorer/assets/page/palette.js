// Colours that colour-blind readers tell apart (Okabe and Ito 2008), on light and dark paper.

const LIGHT = {
  paper: "#ffffff", ink: "#1d2328", muted: "#5a636b", rule: "#d9dee2", marker: "#ffffff",
  shades: ["#DCEAF4", "#FBEBD3", "#DFF1EA", "#F3E4EE"],
  curves: ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"],
};
const DARK = {
  paper: "#171c21", ink: "#e8ecef", muted: "#a3adb5", rule: "#3a434b", marker: "#171c21",
  shades: ["#1c2c3a", "#372c1a", "#1a3128", "#33242e"],
  curves: ["#56B4E9", "#E69F00", "#00B386", "#CC79A7", "#F0E442", "#F0743A", "#ffffff"],
};
const DASHES = [[], [8, 3], [2.5, 2.5], [9, 3, 2, 3]];
const MARKERS = ["circle", "square", "triangle", "diamond", "inverted", "pentagon"];

// Cividis (Nunez, Anderton, Renslow 2018): even steps of lightness for every colour vision.
const SEQUENTIAL = ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74",
  "#c3b369", "#e1cc55", "#fee838"];
const DIVERGING = ["#0072B2", "#7fb8d8", "#f4f4f4", "#eaae7f", "#D55E00"];

const night = window.matchMedia("(prefers-color-scheme: dark)");

const print = window.matchMedia("print");

/** Colours of the screen as it is now; print is on light paper. */
function theme() {
  return night.matches && !print.matches ? DARK : LIGHT;
}

/** Colour, dash and marker of curve k; the first 28 differ in colour or dash. */
function look(k, colours) {
  return {
    colour: colours.curves[k % colours.curves.length],
    dash: DASHES[k % DASHES.length],
    marker: MARKERS[k % MARKERS.length],
  };
}

/**
 * The colour map of values between two limits; a range with both signs is symmetric about 0.
 * @returns {{from: number, to: number, colour: function(number): string}}
 */
function colour_map(low, high) {
  const both = low < 0 && high > 0;
  const size = Math.max(Math.abs(low), Math.abs(high));
  const from = both ? -size : Math.min(low, 0);
  const to = both ? size : Math.max(high, 0) || (low < 0 ? 0 : 1);
  const anchors = both ? DIVERGING : SEQUENTIAL;
  return { from, to, colour: (value) => between(anchors, to > from ? (value - from) / (to - from) : 0) };
}

/** The colour at part t of a list of colours. */
function between(anchors, t) {
  const place = Math.min(Math.max(t, 0), 1) * (anchors.length - 1);
  const k = Math.min(Math.floor(place), anchors.length - 2);
  const mix = [1, 3, 5].map((at) => {
    const [a, b] = [anchors[k], anchors[k + 1]].map((hex) => parseInt(hex.slice(at, at + 2), 16));
    return Math.round(a + (b - a) * (place - k));
  });
  return `rgb(${mix.join(",")})`;
}
