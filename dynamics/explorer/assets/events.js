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

const AT_REST = "not decidable: the state comes to rest, and the sign of its rate is then rounding";

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
      return `still rises when the run ends, to ${share} at ${since}: not decidable to this time`;
    }
    return "still decreases when the run ends";
  };
  return { lasts: beyond && last > first, at, reason };
}

function maximum(values) {
  let largest = -Infinity;
  for (const value of values) if (value > largest) largest = value;
  return largest;
}

const UNRESOLVED = "not decidable: the integration error of its time exceeds the time";
const STEPS = 4; // errors of single steps that add up; times the root of their number where there is one path
const LOOKS = 7, MOST_LOOKS = 64, IN_GAP = 8; // at a step, for one function, and of its interpolant between two
const CLOSE = 1e-12, GRID = 32, ROUNDS = 12; // of a root, over its time; points at once, and how often
const ROUNDING = 2 ** -40, ROUNDED = 2 ** -26; // of a gradient at the start; of the time of a minimum
const TINY = 2.2250738585072014e-308;
const PLACES = Float64Array.from({ length: LOOKS }, (_, k) => 0.5 - 0.5 * Math.cos((Math.PI * k) / (LOOKS - 1)));

/** Times at which the rules begin to hold, as `dynamics.training.flow_events` locates them.
 *
 * They are located on `path`, the finer of two; what the other differs is its error. `records` are
 * times at which it is looked at in any case.
 */
function eventsOfFlow(path, other, constants, records) {
  const found = {}, search = new Search(path, other, constants, records);
  for (const rule of RULES) {
    const earlier = rule.after === null ? { time: 0, reason: "", uncertainty: 0 } : found[rule.after];
    if (earlier.time === null) {
      found[rule.name] = missing(`${rule.after} is not reached`);
      continue;
    }
    const event = search[rule.shape](rule, earlier.time, earlier.uncertainty);
    found[rule.name] = rule.after !== null && event.time === earlier.time ? earlier : event;
  }
  return found;
}

const missing = (reason) => ({ time: null, reason, uncertainty: 0 });
const resolved = (time, uncertainty) => (uncertainty < time ? { time, reason: "", uncertainty } : missing(UNRESOLVED));

class Search {
  constructor(path, other, constants, records) {
    Object.assign(this, { path, other, constants, end: path.end, known: new Map() });
    this.records = Array.from(records).filter((time) => time <= path.end);
    const steps = Math.max(1, path.nodes.length - 1); // a path that could not begin has one of no width
    this.times = Array.from({ length: steps }, (_, step) => (path.end > 0 ? this.inside(step, 0, 1) : Array(LOOKS).fill(0)));
  }

  /** Times of the looks at a part of a step. */
  inside(step, low, width) {
    return Array.from(PLACES, (place) => this.path.inside(step, low + width * place));
  }

  /** A function of rows as one of the time, positive where it holds, else negative. */
  signed(f, counts) {
    return { f, counts, at: (time) => f(this.path.row(time), this.constants) || (counts ? TINY : -TINY) };
  }

  /** What errors of the path change in order parameters at a time. */
  changes(time) {
    if (!this.known.has(time)) this.known.set(time, this.changesAt(time));
    return this.known.get(time);
  }

  changesAt(time) {
    const { path } = this, step = path.stepAt(time), row = path.row(time), difference = (x, y) => x.map((value, k) => value - y[k]);
    // The start is exact: in the first step errors grow from 0.
    const part = step > 0 ? 1 : time > 0 ? time / path.nodes[1] : 0, times = this.times[step].map((each) => part * each);
    const both = this.other !== null && times[LOOKS - 1] <= this.other.end;
    const apart = both ? times.map((each) => difference(this.other.row(each), path.row(each))) : [];
    const { state, slope } = path.along(time), several = STEPS * path.tolerance * (both ? 1 : Math.sqrt(step + 1));
    const width = times[LOOKS - 1] - times[0], moved = [];
    for (let bit = 0; 2 ** bit < 2 * state.length; bit += 1) {
      for (const side of [1, -1]) {
        const sign = (k) => ((k >> bit) & 1 ? -side : side), error = (k) => (time > 0 ? several * Math.abs(state[k]) : 0);
        const ofSlope = (k) => (time > 0 ? error(k) / width : ROUNDING * Math.abs(slope[k]));
        const at = state.map((value, k) => value + sign(k) * error(k));
        moved.push(difference(path.rowOf(at, slope.map((value, k) => value + sign(k) * ofSlope(k))), row));
      }
    }
    return [...apart, ...apart.map((change) => change.map((value) => -value)), ...moved];
  }

  /** Error of a function at a time, from the errors of the path there or at another time. */
  error(f, time, from = time) {
    const row = this.path.row(time), value = f(row, this.constants);
    const moved = this.changes(from).map((change) => f(row.map((entry, k) => entry + change[k]), this.constants));
    return moved.reduce((most, each) => (Math.abs(each - value) <= most ? most : Math.abs(each - value)), 0);
  }

  /** Times from begin on at which functions are looked at. */
  looks(functions, begin) {
    const times = new Set([begin, ...this.records, this.end]);
    for (const step of this.times) for (const time of step.slice(1, -1)) times.add(time);
    for (const node of this.path.nodes) times.add(node);
    for (const each of functions) for (const time of this.closer(each, begin)) times.add(time);
    return [...times].filter((time) => time >= begin).sort((a, b) => a - b);
  }

  /** Times of more looks, in steps where an interpolant comes near 0. */
  closer({ at, f }, begin) {
    const found = [];
    this.times.forEach((times, step) => {
      if (times[LOOKS - 1] <= begin || !near(times.map(at)).length) return;
      if (times.every((time) => Math.abs(at(time)) <= this.error(f, time, times[LOOKS - 1]))) return;
      const parts = [[0, 1]];
      for (let done = 0; parts.length && done < MOST_LOOKS; ) {
        const [low, width] = parts.shift(), inner = this.inside(step, low, width), values = inner.map(at), places = near(values);
        if (!places.length) continue;
        const more = places.map(({ place }) => this.path.inside(step, low + width * place));
        found.push(...inner, ...more);
        done += inner.length + more.length;
        if (more.every((time, k) => at(time) > 0 !== values[places[k].gap] > 0)) continue;
        parts.push([low, 0.5 * width], [low + 0.5 * width, 0.5 * width]);
      }
    });
    return found;
  }

  crossing(rule, begin, width) {
    const functions = [this.signed(rule.expression, !rule.strict), this.signed(rule.guard, !rule.guard_strict)];
    return this.first(functions, begin, width, rule.resolution);
  }

  /** The first time from begin on, which is known within a width, at which all functions hold. */
  first(functions, begin, width, resolution = 0, added = 0) {
    const after = Math.min(begin + Math.max(width, 4 * CLOSE * begin), this.end), times = this.looks(functions, after);
    const condition = (time) => Math.min(...functions.map(({ at }) => at(time)));
    const [{ f }] = functions, size = (time) => Math.abs(f(this.path.row(time), this.constants));
    let largest = 0, held = false, before = null;
    for (const time of times) {
      if (size(time) > largest) largest = size(time);
      if (!(condition(time) > 0)) {
        before = time;
        continue;
      }
      held = true;
      const sure = functions.every((each, k) => {
        const value = Math.abs(each.f(this.path.row(time), this.constants)), error = this.error(each.f, time) + (k === 0 ? added : 0);
        const clear = k > 0 || resolution === 0 || largest === 0 || value > resolution * largest || (value === 0 && error === 0);
        return value >= error && clear;
      });
      if (!sure) continue;
      if (before === null) return { time: begin, reason: "", uncertainty: width };
      const next = times[times.indexOf(before) + 1], [low, root] = rising(condition, before, next);
      const turning = functions.filter(({ at }) => at(low) < 0);
      const error = Math.max(...turning.map((each) => this.halfWidth(each.f, root, added)));
      if (before === 0 && error >= root) return { time: 0, reason: "", uncertainty: f(this.path.row(0), this.constants) === 0 ? 0 : time };
      return resolved(root, error);
    }
    const least = resolution * largest;
    if (least > 0 && (held || size(this.end) <= Math.max(least, this.error(f, this.end)))) return missing(AT_REST);
    return missing(held ? UNRESOLVED : `not reached by time ${shortest(this.end)}`);
  }

  /** How far from its root, or its minimum, a function that rises from it exceeds its error. */
  halfWidth(f, time, added = 0, flat = false) {
    const at = (when) => f(this.path.row(when), this.constants);
    const error = this.error(f, time) + added, least = flat ? at(time) : 0;
    const beyond = (far) => {
      const left = at(Math.max(time - far, 0)), right = time + far > this.end ? Infinity : at(time + far) - least;
      return Math.min(right, flat ? left - least : -left) - error;
    };
    for (let far = CLOSE * time; far <= time; far *= 2) {
      // At two places: a value that rounds may be beyond its error by chance.
      if (beyond(far) >= 0 && beyond(Math.min(2 * far, time)) >= 0) return far > CLOSE * time ? rising(beyond, far / 2, far)[1] : far;
    }
    return Infinity;
  }

  exceeds(rule, begin, width) {
    const times = this.looks([], 0), at = (time) => rule.bound(this.path.row(time), this.constants);
    const bounds = times.map(at), k = bounds.indexOf(maximum(bounds));
    const top = lowest((time) => -at(time), times, k), level = Math.max(bounds[k], at(top));
    const above = this.signed((row, constants) => rule.quantity(row, constants) - level, false);
    const event = this.first([above], begin, width, 0, this.error(rule.bound, top));
    if (event.time !== null || event.reason === UNRESOLVED) return event;
    return missing(`never above ${level.toPrecision(6)} in a run to time ${shortest(this.end)}`);
  }

  rises(rule, begin) {
    const at = (time) => rule.quantity(this.path.row(time), this.constants), first = at(begin);
    const level = (value) => this.signed((row, constants) => rule.quantity(row, constants) - value, false);
    const times = this.looks([level(first), level(first + rule.relative * Math.abs(first))], begin);
    const rise = riseOf(Float64Array.from(times, at), rule.relative);
    if (!rise.lasts) return missing(rise.reason(rule.after));
    const rate = rule.rate === null ? null : (time) => rule.rate(this.path.row(time), this.constants);
    const low = times[rise.at - 1], high = times[Math.min(rise.at + 1, times.length - 1)];
    if (rate !== null && rate(low) < 0 && rate(high) > 0) {
      const root = rising(rate, low, high)[1];
      return resolved(root, this.halfWidth(rule.rate, root));
    }
    const time = lowest(at, times, rise.at);
    return resolved(time, this.halfWidth(rule.quantity, time, 0, true) + ROUNDED * time);
  }
}

/** Gaps between looks of the same sign in which the interpolant may change it, and where. */
function near(values) {
  const last = LOOKS - 1, coefficients = [], found = [];
  for (let j = 0; j <= last; j += 1) {
    let sum = 0;
    for (let k = 0; k <= last; k += 1) {
      const part = values[k] * Math.cos(j * Math.PI * (1 - k / last));
      sum += k === 0 || k === last ? 0.5 * part : part;
    }
    coefficients.push(((j === 0 || j === last ? 1 : 2) / last) * sum);
  }
  const tail = coefficients.slice(Math.floor(LOOKS / 2) + 1).reduce((sum, each) => sum + Math.abs(each), 0);
  for (let gap = 0; gap < last; gap += 1) {
    const side = values[gap] > 0 ? -1 : 1;
    if (values[gap] > 0 !== values[gap + 1] > 0) continue;
    let best = -Infinity, place = 0;
    for (let k = 0; k < IN_GAP; k += 1) {
      const at = PLACES[gap] + ((PLACES[gap + 1] - PLACES[gap]) * (k + 0.5)) / IN_GAP, angle = Math.acos(2 * at - 1);
      const value = side * coefficients.reduce((sum, each, j) => sum + each * Math.cos(j * angle), 0);
      if (value > best) [best, place] = [value, at];
    }
    if (best + tail > 0) found.push({ gap, place });
  }
  return found;
}

/** Places next to each other between which a function becomes positive. */
function rising(f, low, high) {
  for (let round = 0; round < ROUNDS && high - low > CLOSE * high; round += 1) {
    const from = low, step = (high - low) / GRID, end = high;
    for (let k = 1; k <= GRID; k += 1) {
      high = k === GRID ? end : from + k * step;
      if (k === GRID || f(high) > 0) break;
      low = high;
    }
  }
  return [low, high];
}

/** The time at which a function is least, next to the k-th of some times. */
function lowest(f, times, k) {
  let low = times[Math.max(k - 1, 0)], high = times[Math.min(k + 1, times.length - 1)];
  for (let round = 0; round < ROUNDS && high - low > ROUNDED * high; round += 1) {
    const grid = Array.from({ length: GRID + 1 }, (_, i) => low + ((high - low) * i) / GRID), values = grid.map(f);
    const best = values.indexOf(Math.min(...values));
    [low, high] = [grid[Math.max(best - 1, 0)], grid[Math.min(best + 1, GRID)]];
  }
  return 0.5 * (low + high);
}

function shortest(number) {
  return String(Number(number.toPrecision(6)));
}
