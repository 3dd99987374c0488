// Events of a run, by the rules of theory/events.py; RULES is printed from them.
//
// A rule has `name`, `shape` ("crossing", "exceeds" or "rises"), `after`, and functions of a row of
// order parameters and the constants: `expression` and `guard`, or `quantity` and `bound`.

/** Steps at which the rules hold in a run of descent: rows of all steps, flat. */
function eventsOfDescent(rows, width, count, constants, eta, fate) {
  const found = {}, stepTime = eta;
  const column = (of) =>
    Float64Array.from({ length: count }, (_, k) =>
      of(rows.subarray(k * width, (k + 1) * width), constants)
    );
  for (const rule of RULES) {
    const begin = rule.after === null ? 0 : found[rule.after].step;
    if (begin === null) {
      found[rule.name] = { step: null, reason: `${rule.after} is not reached` };
    } else if (rule.shape === "crossing") {
      found[rule.name] = firstCrossing(rule, column, begin, count, stepTime);
    } else if (rule.shape === "exceeds") {
      const values = column(rule.quantity), level = maximum(column(rule.bound));
      const step = values.findIndex((value, k) => k >= begin && value > level);
      const reason = `never above ${level.toPrecision(6)} in a run to time ${shortest((count - 1) * stepTime)}`;
      found[rule.name] = step < 0 ? { step: null, reason } : { step, reason: "" };
    } else {
      const values = column(rule.quantity).subarray(begin);
      const rise = riseOf(values, rule.relative);
      found[rule.name] =
        rise.lasts && !fate
          ? { step: begin + rise.at, reason: "" }
          : { step: null, reason: fate || rise.reason(rule.after) };
    }
  }
  return found;
}

const AT_REST = "comes to rest: from some time on the sign of the rate is rounding, and decides nothing";

function firstCrossing(rule, column, begin, count, stepTime) {
  const values = column(rule.expression), guards = column(rule.guard);
  let largest = 0, moving = 0;
  for (let k = 0; k < count; k += 1) {
    const value = values[k];
    let holds = rule.strict ? value > 0 : value >= 0;
    if (rule.resolution > 0) {
      if (Math.abs(value) > largest) largest = Math.abs(value);
      if (value !== 0) moving = value;
      // A rate of exactly 0 counts where it stopped at once, not where it has decayed.
      const atOnce = value === 0 && Math.abs(moving) > rule.resolution * largest;
      holds = holds && (atOnce || value > rule.resolution * largest);
    }
    const open = rule.guard_strict ? guards[k] > 0 : guards[k] >= 0;
    if (k >= begin && holds && open) return { step: k, reason: "" };
  }
  const rests = rule.resolution > 0 && Math.abs(moving) <= rule.resolution * largest;
  const reached = `not reached by time ${shortest((count - 1) * stepTime)}`;
  return { step: null, reason: rests ? AT_REST : reached };
}

/** A fall and the rise after it: `theory.events.RisesAgain`. */
function riseOf(values, relative) {
  const first = values[0], last = values[values.length - 1];
  let least = Infinity, at = -1, beyond = false;
  for (let k = 0; k < values.length; k += 1) {
    if (least < first && values[k] > first + relative * Math.abs(first)) {
      beyond = true;
      break;
    }
    if (values[k] < least) [least, at] = [values[k], k];
  }
  const falling = values.length > 1 && values[values.length - 2] > last;
  const share = first !== 0 ? `${Number((last / first).toPrecision(3))} of its value` : "0";
  const reason = (after) => {
    const since = after === null ? "the start" : after;
    if (beyond) return `rises, and falls again, to ${share} at ${since}`;
    if (!(least < first)) return `does not fall below its value at ${since}`;
    if (last > least && !falling) {
      return `rises at the horizon, to ${share} at ${since}: not decidable to this time`;
    }
    return "falls to the horizon";
  };
  return { lasts: beyond && last > first, at, reason };
}

function maximum(values) {
  let largest = -Infinity;
  for (const value of values) if (value > largest) largest = value;
  return largest;
}

/** Times at which the rules begin to hold on a path of the flow.
 *
 * Those of rates are found again on a stretch at each of `tolerances`: the time is that of the last,
 * `spread` how far it is from that of the first.
 */
function eventsOfFlow(path, constants, tolerances) {
  const found = {};
  for (const rule of RULES) {
    const begin = rule.after === null ? 0 : found[rule.after].time;
    if (begin === null) {
      found[rule.name] = { time: null, reason: `${rule.after} is not reached` };
    } else if (rule.shape === "crossing") {
      found[rule.name] = crossingOf(path, rule, begin, constants, tolerances);
    } else if (rule.shape === "exceeds") {
      found[rule.name] = exceedingOf(path, rule, begin, constants);
    } else {
      found[rule.name] = risingOf(path, rule, begin, constants, tolerances);
    }
  }
  return found;
}

function crossingOf(path, rule, begin, constants, tolerances) {
  const conditionOn = (part) => (time) => {
    const row = part.row(time, rule.rates), value = rule.expression(row, constants);
    const guard = rule.guard(row, constants);
    const counted = value === 0 ? (rule.strict ? -1e-300 : 1e-300) : value;
    return Math.min(counted, guard === 0 ? (rule.guard_strict ? -1e-300 : 1e-300) : guard);
  };
  const condition = conditionOn(path);
  let before = begin, largest = 0, rests = false;
  for (const time of path.scan(begin, !rule.rates)) {
    const value = rule.expression(path.row(time, rule.rates), constants);
    rests = false;
    if (rule.resolution > 0) {
      largest = Math.max(largest, Math.abs(value));
      rests = value !== 0 && Math.abs(value) <= rule.resolution * largest;
      if (rests || largest === 0) continue;
    }
    if (condition(time) > 0) {
      // What lies on the boundary at the start, and holds at once, is reached at the start.
      const boundary = begin === 0 && before === 0 && rule.expression(path.row(0, rule.rates), constants) === 0;
      const root = time === begin ? begin : rootBetween(condition, before, time);
      if (boundary && root <= 1e-3 * time) return { time: 0, reason: "" };
      return rule.rates && root > begin ? foundAgain(path, conditionOn, root, tolerances) : { time: root, reason: "" };
    }
    before = time;
  }
  return { time: null, reason: rests ? AT_REST : `not reached by time ${shortest(path.end)}` };
}

function exceedingOf(path, rule, begin, constants) {
  const times = path.scan(0, true);
  const bounds = times.map((time) => rule.bound(path.row(time, false), constants));
  const k = bounds.indexOf(maximum(bounds));
  let level = bounds[k];
  if (k > 0 && k < times.length - 1) {
    const top = (time) => -rule.bound(path.row(time, false), constants);
    level = Math.max(level, -top(leastBetween(top, times[k - 1], times[k + 1])));
  }
  const above = (time) => rule.quantity(path.row(time, false), constants) - level;
  const first = times.findIndex((time) => time >= begin && above(time) > 0);
  if (first < 0) {
    const reason = `never above ${level.toPrecision(6)} in a run to time ${shortest(path.end)}`;
    return { time: null, reason };
  }
  const low = first > 0 ? Math.max(begin, times[first - 1]) : begin;
  return { time: rootBetween(above, low, times[first]), reason: "" };
}

function risingOf(path, rule, begin, constants, tolerances) {
  const times = path.scan(begin, true);
  const at = (time) => rule.quantity(path.row(time, false), constants);
  const rise = riseOf(Float64Array.from(times, at), rule.relative);
  if (!rise.lasts) return { time: null, reason: rise.reason(rule.after) };
  const low = times[Math.max(0, rise.at - 1)], high = times[Math.min(rise.at + 1, times.length - 1)];
  const lowest = leastBetween(at, low, high);
  if (rule.rate === null) return { time: lowest, reason: "" };
  // The root of its own rate is sharper than a minimum.
  const rateOn = (part) => (time) => rule.rate(part.row(time, true), constants);
  const rate = rateOn(path), sharp = rate(low) < 0 && rate(high) > 0;
  if (!sharp) return { time: lowest, reason: "" };
  return foundAgain(path, rateOn, rootBetween(rate, low, high), tolerances);
}

/** An event of rates near a guess, on stretches of a path that are integrated again. */
function foundAgain(path, conditionOn, guess, tolerances) {
  const roots = tolerances.map((relative) => {
    const part = path.again(guess, relative), nodes = part.nodes, condition = conditionOn(part);
    const rises = [];
    for (let k = 1; k < nodes.length; k += 1) {
      if (condition(nodes[k]) > 0 && !(condition(nodes[k - 1]) > 0)) {
        rises.push(rootBetween(condition, nodes[k - 1], nodes[k]));
      }
    }
    const away = (root) => Math.abs(root - guess);
    return rises.length > 0 ? rises.reduce((a, b) => (away(b) < away(a) ? b : a)) : guess;
  });
  const time = roots.length > 0 ? roots[roots.length - 1] : guess;
  return { time, reason: "", spread: roots.length > 0 ? Math.abs(time - roots[0]) : 0 };
}

/** Where a condition turns positive between two times: bisection to the spacing of numbers. */
function rootBetween(condition, low, high) {
  if (condition(low) > 0) return low;
  for (let k = 0; k < 80; k += 1) {
    const middle = 0.5 * (low + high);
    if (middle <= low || middle >= high) break;
    if (condition(middle) > 0) high = middle;
    else low = middle;
  }
  return high;
}

/** Where a function is least between two times: golden sections. */
function leastBetween(f, low, high) {
  const share = (Math.sqrt(5) - 1) / 2;
  let a = high - share * (high - low), b = low + share * (high - low), fa = f(a), fb = f(b);
  while (high - low > 1e-9 * high) {
    if (fa < fb) {
      [high, b, fb] = [b, a, fa];
      a = high - share * (high - low);
      fa = f(a);
    } else {
      [low, a, fa] = [a, b, fb];
      b = low + share * (high - low);
      fb = f(b);
    }
  }
  return 0.5 * (low + high);
}

function shortest(number) {
  return String(Number(number.toPrecision(6)));
}
