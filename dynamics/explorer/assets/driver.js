// What the worker of a page does: the flow, gradient descent, planes, matrices.
//
// MODEL makes a problem from constants.

const RELATIVE = 1e-8; // tolerance of a step of the flow
const MOVING = 1e-6; // the same while a control moves
const FINER = 1e-10; // of the path on which the events are located, and whose error the other tells
const MOST_STEPS = 200000; // of a flow
const MOST_TRACKED = 2e7; // numbers that descent keeps for its events
const SLICE = 2048; // steps of descent between two looks at the messages

let latest = { key: "", problem: null };

/** The problem at some constants, from a state by name or from its own; the last one is kept. */
function problemAt(constants, start = null) {
  const key = JSON.stringify(constants);
  if (latest.key !== key) {
    const checked = MODEL.check(constants);
    if (!checked.ok) throw new Error(checked.message);
    latest = { key, problem: MODEL.make(constants) };
  }
  const { problem } = latest;
  return start ? { ...problem, start: Float64Array.from(problem.state_names, (name) => start[name]) } : problem;
}

/** The derivative of a flow by the time. */
function slopeAt(time, steps) {
  const [coefficients, position, pace] = placeIn(time, steps);
  return coefficients[DEGREE].map((leading, k) => {
    let value = DEGREE * leading;
    for (let power = DEGREE - 1; power >= 1; power -= 1) value = value * position + power * coefficients[power][k];
    return value * pace;
  });
}

/** Integrate the flow: the path, and how it ended. */
function integrated(problem, horizon, tolerance) {
  const begin = { time: 0, state: problem.start }, run = new Integration(problem, begin, horizon, tolerance);
  const outcome = run.proceed(MOST_STEPS);
  return { path: new Path(problem, run, tolerance), outcome };
}

/** A flow that has been integrated. */
class Path {
  constructor(problem, steps, tolerance) {
    Object.assign(this, { problem, steps, tolerance, nodes: Float64Array.from(steps.nodes), rows: new Map() });
    this.end = this.nodes[this.nodes.length - 1];
  }

  /** The state at a time. */
  state(time) {
    if (time <= this.nodes[0] || this.nodes.length < 2) return Float64Array.from(this.problem.start);
    return Float64Array.from(stateAt(time, this.steps));
  }

  /** The state at a time, and minus its derivative; at the start the gradient. */
  along(time) {
    const state = this.state(time), slope = new Float64Array(state.length);
    if (time <= this.nodes[0] || this.nodes.length < 2) this.problem.gradient(state, slope);
    else slopeAt(time, this.steps).forEach((value, k) => (slope[k] = -value));
    return { state, slope };
  }

  rowOf(state, slope) {
    const row = new Float64Array(this.problem.order_names.length);
    this.problem.order_parameters(state, slope, row);
    return row;
  }

  /** Order parameters at a time, with rates that are derivatives of the path. */
  row(time) {
    if (!this.rows.has(time)) {
      const { state, slope } = this.along(time);
      this.rows.set(time, this.rowOf(state, slope));
    }
    return this.rows.get(time);
  }

  /** The step that ends at a time or later. */
  stepAt(time) {
    let low = 0, high = this.nodes.length - 2;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.nodes[middle + 1] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The time at a place from 0 to 1 in a step, evenly in logarithmic time. */
  inside(step, place) {
    const low = this.nodes[step], high = this.nodes[step + 1], scale = this.steps.scales[step];
    if (place <= 0 || place >= 1) return place <= 0 ? low : high;
    return Math.min(Math.max(low + scale * Math.expm1(place * Math.log1p((high - low) / scale)), low), high);
  }
}

/** States as columns by name, and observables of each; a state of arrays has no names. */
function columnsOf(problem, states) {
  const of = { states: {}, observables: {} }, out = new Float64Array(problem.observable_names.length);
  problem.state_names.forEach((name, i) => {
    of.states[name] = Float64Array.from(states, (state) => state[i]);
  });
  for (const name of problem.observable_names) of.observables[name] = new Float64Array(states.length);
  states.forEach((state, k) => {
    problem.observables(state, out);
    problem.observable_names.forEach((name, i) => (of.observables[name][k] = out[i]));
  });
  return of;
}

function named(problem, state) {
  return Object.fromEntries(problem.state_names.map((name, i) => [name, state[i]]));
}

function spaced(least, last, count) {
  const first = Math.min(least, last / 10), ratio = Math.log(last / first);
  const times = Float64Array.from({ length: count }, (_, k) => first * Math.exp((ratio * k) / (count - 1)));
  times[count - 1] = last;
  return times;
}

/** The flow to a horizon; with `precise`, events on a finer path, whose error the first tells. */
function flow({ constants, start, horizon, records, least_time, precise }) {
  const tolerance = precise ? RELATIVE : MOVING;
  const problem = problemAt(constants, start), { path, outcome } = integrated(problem, horizon, tolerance);
  const times = spaced(least_time, Math.max(path.end, 1e-300), records);
  const states = Array.from(times, (time) => path.state(time));
  const finest = precise ? integrated(problem, path.end, FINER).path : path;
  const found = eventsOfFlow(finest, precise ? path : null, problem.constants, times);
  const events = RULES.map(({ name }) => {
    const { time, reason, uncertainty } = found[name];
    const known = precise && time !== null;
    return { name, time, reason, uncertainty: known ? uncertainty : null, state: time === null ? null : named(problem, finest.state(time)) };
  });
  const message = outcome === "horizon" ? "" : `ends at time ${shortest(path.end)}: no step can be made there`;
  return { times, ...columnsOf(problem, states), events, outcome, message, tolerance };
}

/** Whether the run ends in a period of two that does not die out: every step reverses a rate. */
function oscillates(rates) {
  const last = rates.length - 1, window = Math.max(50, Math.floor(last / 10));
  if (last < window) return false;
  let early = 0, late = 0;
  for (let k = last - window + 1; k <= last; k += 1) {
    if (!(rates[k] * rates[k - 1] < 0)) return false;
    if (k > last - window / 2) late += Math.abs(rates[k]);
    else early += Math.abs(rates[k]);
  }
  return late > 0.5 * early;
}

/** Gradient descent with one step size; `pause` lets other messages in and says whether to stop. */
async function descent({ constants, start, eta, steps, records }, pause) {
  const problem = problemAt(constants, start), n = problem.size, width = problem.order_names.length;
  if (!(eta > 0)) throw new Error(`eta=${eta} is not positive; eta can be a positive number`);
  if ((steps + 1) * width > MOST_TRACKED) {
    const most = Math.floor(MOST_TRACKED / width) - 1;
    throw new Error(`steps=${steps} is too long for a page; steps can be up to ${most} here`);
  }
  const count = steps + 1, tracked = new Float64Array(count * width);
  const state = Float64Array.from(problem.start);
  const due = [...new Set(Array.from(spaced(1, steps, records), Math.round))].filter((k) => k <= steps);
  const recorded = new Float64Array(due.length * n);
  let reached = 0, done = 0, finite = true;
  while (reached < count && finite) {
    const last = Math.min(count, reached + SLICE);
    const inside = due.filter((step) => step >= reached && step < last);
    const rows = tracked.subarray(reached * width, last * width), kept = recorded.subarray(done * n);
    const stop = advance(problem, state, eta, [reached, last], rows, inside, kept);
    finite = stop === last;
    done += inside.filter((step) => step <= stop).length;
    reached = finite ? last : stop + 1;
    if (await pause(reached, count)) return { outcome: "interrupted" };
  }
  const watched = problem.order_names.findIndex((name) => name.startsWith("d_"));
  const rates = Float64Array.from({ length: reached }, (_, k) => tracked[k * width + watched]);
  const fate = watched >= 0 && oscillates(rates) ? "oscillating" : "";
  const found = eventsOfDescent(tracked, width, reached, problem.constants, eta, fate);
  const events = RULES.map(({ name }) => {
    const { step, reason } = found[name];
    return { name, step, time: step === null ? null : eta * step, reason, state: null };
  });
  const kept = due.slice(0, done), states = kept.map((_, k) => recorded.subarray(k * n, (k + 1) * n));
  const outcome = finite ? (fate === "" ? "horizon" : fate) : "diverged";
  const at = finite ? "" : `the state is not finite after step ${reached - 1}; try a smaller eta`;
  return {
    times: Float64Array.from(kept, (step) => eta * step),
    steps: Float64Array.from(kept),
    ...columnsOf(problem, states),
    events,
    outcome,
    message: fate === "oscillating" ? "every step reverses a rate to the end; try a smaller eta" : at,
  };
}

/** Rates of two scalars on a grid, the others fixed. */
function plane({ constants, x, y, state }) {
  const problem = problemAt(constants), names = problem.state_names;
  const at = Float64Array.from(names, (name) => state[name]), slope = new Float64Array(problem.size);
  const i = names.indexOf(x.name), j = names.indexOf(y.name);
  const dx = new Float64Array(x.count * y.count), dy = new Float64Array(x.count * y.count);
  const position = (axis, k) => axis.from + ((axis.to - axis.from) * k) / (axis.count - 1);
  for (let b = 0; b < y.count; b += 1) {
    for (let a = 0; a < x.count; a += 1) {
      at[i] = position(x, a);
      at[j] = position(y, b);
      problem.gradient(at, slope);
      dx[b * x.count + a] = -slope[i];
      dy[b * x.count + a] = -slope[j];
    }
  }
  return { dx, dy };
}

function matrix({ constants, name, state }) {
  const problem = problemAt(constants);
  return problem.matrix(name, Float64Array.from(problem.state_names, (letter) => state[letter]));
}

const RUNNING = { descent: null };

/** Answer a message of the page. */
async function answer(request, post) {
  const { id, kind } = request, began = performance.now();
  try {
    await MODEL.ready;
    let reply;
    if (kind === "cancel") {
      RUNNING.descent = null;
      return;
    } else if (kind === "check") {
      reply = MODEL.check(request.constants);
    } else if (kind === "descent") {
      RUNNING.descent = id;
      reply = await descent(request, async (done, total) => {
        post({ id, kind: "progress", done, total });
        await new Promise((resume) => setTimeout(resume, 0));
        return RUNNING.descent !== id;
      });
    } else {
      reply = { flow, plane, matrix }[kind](request);
    }
    post({ id, kind, ...reply, milliseconds: performance.now() - began });
  } catch (error) {
    post({ id, kind, error: error.message, milliseconds: performance.now() - began });
  }
}

if (typeof WorkerGlobalScope !== "undefined") {
  self.onmessage = (message) => answer(message.data, (reply) => self.postMessage(reply));
}
