// Scales: from values to pixels, linear or logarithmic, with their ticks.

const LEAST_GAP = 46;

/**
 * @typedef {{from: number, to: number, logarithmic: boolean, at: function(number): number,
 *   value: function(number): number, ticks: function(number): Array}} Scale
 * ticks(pixels) are {value, label}, as many as have room on so many pixels.
 */

/**
 * A scale of values between two limits onto pixels between two ends.
 * @returns {Scale}
 */
function scale(from, to, start, end, logarithmic) {
  const forth = logarithmic ? Math.log10 : (x) => x;
  const back = logarithmic ? (x) => 10 ** x : (x) => x;
  const [a, b] = [forth(from), forth(to)];
  const step = (end - start) / (b - a || 1);
  return {
    from, to, logarithmic,
    at: (value) => start + (forth(value) - a) * step,
    value: (pixel) => back(a + (pixel - start) / step),
    ticks: (gap = LEAST_GAP) => {
      const room = Math.max(2, Math.floor(Math.abs(end - start) / gap));
      return logarithmic && b - a > 0.9 ? decades(a, b, room) : even_ticks(from, to, room);
    },
  };
}

/** Ticks at powers of ten, and at 2 and 5 of each where there is room. */
function decades(a, b, room) {
  const wide = b - a;
  const every = Math.max(1, Math.ceil(wide / room));
  const factors = wide * 3 <= room ? [1, 2, 5] : [1];
  const plain = a >= -2.2 && b <= 3.9;
  const ticks = [];
  for (let power = Math.ceil(a / every - 1) * every; power <= b; power += every) {
    for (const factor of factors) {
      const place = power + Math.log10(factor);
      if (place >= a - 1e-9 && place <= b + 1e-9) ticks.push({ value: 10 ** place, label: power_label(factor, power, plain) });
    }
  }
  return ticks;
}

/** A tick in the letters of all others of its axis: all plain, or all with a power of ten. */
function power_label(factor, power, plain) {
  if (plain) return as_runs(String(Number((factor * 10 ** power).toPrecision(1))));
  return [
    { text: factor === 1 ? "10" : `${factor}×10`, level: 0, italic: false },
    { text: String(power).replace("-", "−"), level: 1, italic: false },
  ];
}

/** Ticks at multiples of 1, 2 or 5 times a power of ten, with as many digits as tell them apart. */
function even_ticks(from, to, room) {
  const rough = (to - from) / room;
  if (!(rough > 0)) return [{ value: from, label: as_runs(brief(from, 3)) }];
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * unit).find((size) => size >= rough * 0.999);
  const ticks = [];
  for (let k = Math.ceil(from / step - 1e-9); k * step <= to + 1e-9 * step; k += 1) {
    ticks.push({ value: k * step, label: as_runs(tick_text(k * step, step)) });
  }
  return ticks;
}

function tick_text(value, step) {
  if (value === 0) return "0";
  const digits = Math.max(1, Math.floor(Math.log10(Math.abs(value))) - Math.floor(Math.log10(step) + 1e-9) + 1);
  const size = Math.abs(value);
  const text = size < 1e-3 || size >= 1e5 ? value.toExponential(digits - 1) : String(Number(value.toPrecision(digits)));
  return typeset(text);
}

/** Limits of values with a margin; null where there is none to draw. */
function limits(lists, logarithmic) {
  let [low, high] = [Infinity, -Infinity];
  for (const values of lists) {
    for (const value of values) {
      if (!Number.isFinite(value) || (logarithmic && value <= 0)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  if (low > high) return null;
  if (logarithmic) return [low / 1.25, Math.max(high * 1.25, low * 2)];
  const margin = 0.06 * (high - low) || 0.06 * Math.abs(high) || 1;
  return [low - margin, high + margin];
}
