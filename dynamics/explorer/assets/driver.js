// What the worker of a page does: the flow, gradient descent, planes, matrices.
//
// MODEL makes a problem from constants.

const RELATIVE = 1e-8; // tolerance of a step of the flow
const MOVING = 1e-6; // the same while a control moves
const TIGHT = 1e-12; // of a stretch that is integrated again for an event of rates
const BACK = 8; // steps before such an event from which the stretch begins
const MOST_STEPS = 200000; // of a flow
const MOST_TRACKED = 2e7; // numbers that descent keeps for its events
const SLICE = 2048; // steps of descent between two looks at the messages

let latest = { key: "", problem: null };

/** The problem at some constants; the last one is kept. */
function problemAt(constants) {
  const key = JSON.stringify(constants);
  if (latest.key !== key) {
    const checked = MODEL.check(constants);
    if (!checked.ok) throw new Error(checked.message);
    latest = { key, problem: MODEL.make(constants) };
  }
  return latest.problem;
}

/** Integrate the flow, from its start or from a node: the path, and how it ended. */
function integrated(problem, horizon, relative, begin = { time: 0, state: problem.start }) {
  const run = new Integration(problem, begin, horizon, relative), outcome = run.proceed(MOST_STEPS);
  return { path: new Path(problem, run, begin.state), outcome };
}

/** A flow that has been integrated. */
class Path {
  constructor(problem, steps, start) {
    this.problem = problem;
    this.steps = steps;
    this.nodes = Float64Array.from(steps.nodes);
    this.start = start;
    this.end = this.nodes[this.nodes.length - 1];
    this.rows = new Map();
    this.slope = new Float64Array(problem.size);
  }

  /** The state at a time. */
  state(time) {
    if (time <= this.nodes[0] || this.nodes.length < 2) return Float64Array.from(this.start);
    return stateAt(time, this.steps);
  }

  /** Order parameters at a time; those read off the gradient only with rates. */
  row(time, rates) {
    const key = rates ? time : -1 - time;
    if (!this.rows.has(key)) {
      const state = this.state(time), row = new Float64Array(this.problem.order_names.length);
      this.slope.fill(0);
      if (rates) this.problem.gradient(state, this.slope);
      this.problem.order_parameters(state, this.slope, row);
      this.rows.set(key, row);
    }
    return this.rows.get(key);
  }

  /** Times at which rules are looked at: the nodes and points between, from a time on. */
  scan(begin, interior) {
    const times = [begin];
    for (let k = 0; k + 1 < this.nodes.length; k += 1) {
      const low = this.nodes[k], step = this.nodes[k + 1] - low;
      const inside = interior ? [low, low + step / 3, low + (2 * step) / 3] : [low];
      for (const time of inside) if (time > begin) times.push(time);
    }
    if (this.end > begin) times.push(this.end);
    return times;
  }

  /** The path around a time, from `BACK` steps before it, at another tolerance. */
  again(time, relative) {
    const after = this.nodes.findIndex((node) => node >= time), k = Math.max(0, after - BACK);
    const begin = { time: this.nodes[k], state: this.state(this.nodes[k]) };
    const beyond = Math.max(time + 0.2 * (time - begin.time), this.nodes[after]);
    return integrated(this.problem, beyond, relative, begin).path;
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

/** The flow to a horizon; with `precise`, event times at two tolerances and how they differ.
 *
 * A rate is the gradient at an interpolated state, whose error the fast direction magnifies, by chance
 * more at a small tolerance than at a large one. Events of rates are therefore found again, on
 * stretches of both paths at a tolerance far below theirs.
 */
function flow({ constants, horizon, records, least_time, precise }) {
  const tolerance = precise ? RELATIVE : MOVING;
  const problem = problemAt(constants), { path, outcome } = integrated(problem, horizon, tolerance);
  const found = eventsOfFlow(path, problem.constants, precise ? [TIGHT] : []);
  const times = spaced(least_time, Math.max(path.end, 1e-300), records);
  const states = Array.from(times, (time) => path.state(time));
  let finer = null, finest = path;
  if (precise) {
    finest = integrated(problem, horizon, RELATIVE / 100).path;
    finer = eventsOfFlow(finest, problem.constants, [10 * TIGHT, TIGHT]);
  }
  const events = RULES.map(({ name }) => {
    const { reason } = (finer ?? found)[name], time = (finer ?? found)[name].time;
    const both = finer !== null && time !== null && found[name].time !== null;
    const spread = both ? Math.abs(found[name].time - time) + (finer[name].spread ?? 0) : null;
    const uncertainty = both ? spread + 1e-12 * time : null;
    return { name, time, reason, uncertainty, state: time === null ? null : named(problem, finest.state(time)) };
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
async function descent({ constants, eta, steps, records }, pause) {
  const problem = problemAt(constants), n = problem.size, width = problem.order_names.length;
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
