// A toy model with the messages of an explorer's worker: a plateau, then two scalars in turn.
//   dx/dt = x y (1 - x),  dy/dt = q x^p (1 - y) + nu
// so that y waits for x and x for y; risk = (1 - x)^2 / 2 + (1 - y)^2 / 2.
"use strict";

const NAMES = ["x", "y"];
const cancelled = new Set();

function slopes([x, y], { q, p, nu }) {
  return [x * y * (1 - x), q * x ** p * (1 - y) + nu * (1 - y)];
}

function start({ nu }) {
  return [Math.sqrt(nu), nu];
}

function first(constants, given) {
  return given ? NAMES.map((name) => given[name]) : start(constants);
}

function risk([x, y]) {
  return (1 - x) ** 2 / 2 + (1 - y) ** 2 / 2;
}

function check(constants) {
  const { D, C, q } = constants;
  const whole = Number.isInteger(D) && D >= 4 && D <= 24;
  if (!whole) return { ok: false, message: `D = ${D} must be a whole number from 4 to 24; nearest: ${D > 24 ? 24 : 4}`, nearest: { ...constants, D: D > 24 ? 24 : 4 } };
  if (D % C !== 0) {
    let near = C;
    while (D % near) near -= 1;
    return { ok: false, message: `C = ${C} must divide D = ${D}; nearest: ${near}`, nearest: { ...constants, C: near } };
  }
  if (!(q > 0 && q < 1)) return { ok: false, message: `q = ${q} must be above 0 and below 1; nearest: ${q > 0.5 ? 0.999 : 0.001}`, nearest: { ...constants, q: q > 0.5 ? 0.999 : 0.001 } };
  return { ok: true, message: "", nearest: null };
}

function rk4(state, h, constants) {
  const shift = (k, f) => state.map((value, i) => value + f * h * k[i]);
  const a = slopes(state, constants);
  const b = slopes(shift(a, 0.5), constants);
  const c = slopes(shift(b, 0.5), constants);
  const d = slopes(shift(c, 1), constants);
  return state.map((value, i) => value + (h * (a[i] + 2 * b[i] + 2 * c[i] + d[i])) / 6);
}

const EVENTS = [["T0", 0, 0.1], ["T1", 1, 0.5], ["late_event", 0, 0.999]];

function empty(count) {
  return { times: new Float64Array(count), states: { x: new Float64Array(count), y: new Float64Array(count) },
    observables: { risk: new Float64Array(count) } };
}

function record(run, k, time, state) {
  run.times[k] = time;
  NAMES.forEach((name, i) => { run.states[name][k] = state[i]; });
  run.observables.risk[k] = risk(state);
}

function as_state(state) {
  return Object.fromEntries(NAMES.map((name, i) => [name, state[i]]));
}

function flow({ constants, start: given, horizon, records, least_time }) {
  const run = empty(records);
  const times = [0, ...Array.from({ length: records - 1 }, (_, k) => least_time * (horizon / least_time) ** (k / (records - 2)))];
  let [state, time] = [first(constants, given), 0];
  const events = EVENTS.map(([name]) => ({ name, time: null, reason: "not reached by the horizon", uncertainty: 0, state: null }));
  times.forEach((target, k) => {
    while (time < target) {
      const h = Math.min(0.1, target - time);
      const next = rk4(state, h, constants);
      EVENTS.forEach(([, i, level], e) => {
        if (events[e].time === null && state[i] < level && next[i] >= level) {
          const part = (level - state[i]) / (next[i] - state[i]);
          Object.assign(events[e], { time: time + part * h, reason: "", uncertainty: 3e-4, state: as_state(next) });
        }
      });
      [state, time] = [next, h === target - time ? target : time + h];
    }
    record(run, k, time, state);
  });
  return { ...run, events, outcome: "horizon", message: "", tolerance: 1e-6 };
}

function descent(request, reply) {
  const { id, constants, start: given, eta, steps, records } = request;
  const stride = Math.max(1, Math.floor(steps / (records - 1)));
  const run = { ...empty(Math.floor(steps / stride) + 1), steps: new Float64Array(Math.floor(steps / stride) + 1) };
  const events = EVENTS.map(([name]) => ({ name, time: null, step: null, reason: `not reached in ${steps} steps`, uncertainty: 0, state: null }));
  let [state, step] = [first(constants, given), 0];
  record(run, 0, 0, state);
  const go = () => {
    if (cancelled.delete(id)) return;
    for (const last = Math.min(step + 20000, steps); step < last;) {
      const slope = slopes(state, constants);
      const next = state.map((value, i) => value + eta * slope[i]);
      step += 1;
      EVENTS.forEach(([, i, level], e) => {
        if (events[e].time === null && state[i] < level && next[i] >= level) {
          Object.assign(events[e], { time: eta * step, step, reason: "", state: as_state(next) });
        }
      });
      state = next;
      if (step % stride === 0) {
        record(run, step / stride, eta * step, state);
        run.steps[step / stride] = step;
      }
    }
    if (step < steps) {
      reply({ id, kind: "progress", done: step, total: steps });
      setTimeout(go, 0);
    } else reply({ ...run, events, outcome: "horizon", message: "" });
  };
  go();
}

function plane({ constants, x, y, state }) {
  const size = x.count * y.count;
  const [dx, dy] = [new Float64Array(size), new Float64Array(size)];
  for (let j = 0; j < y.count; j += 1) {
    for (let i = 0; i < x.count; i += 1) {
      const point = { ...state, [x.name]: x.from + ((x.to - x.from) * i) / (x.count - 1), [y.name]: y.from + ((y.to - y.from) * j) / (y.count - 1) };
      const slope = slopes([point.x, point.y], constants);
      dx[j * x.count + i] = slope[NAMES.indexOf(x.name)];
      dy[j * x.count + i] = slope[NAMES.indexOf(y.name)];
    }
  }
  return { dx, dy };
}

function matrix({ constants, state }) {
  const { D, C } = constants;
  const labels = Int32Array.from({ length: D * D }, (_, k) => {
    const [i, j] = [Math.floor(k / D), k % D];
    if (i === j) return 0;
    return Math.floor((i * C) / D) === Math.floor((j * C) / D) ? 1 : 2;
  });
  const weights = [Math.E, Math.exp(3 * state.x), Math.exp(-state.y)];
  const counts = [1, D / C - 1, D - D / C];
  const sum = weights.reduce((total, weight, k) => total + weight * counts[k], 0);
  return { rows: D, columns: D, labels, values: Float64Array.from(weights, (weight) => weight / sum) };
}

const ANSWERS = { check: ({ constants }) => check(constants), flow, plane, matrix };

self.onmessage = ({ data }) => {
  const begun = performance.now();
  const reply = (answer) => self.postMessage({ id: data.id, kind: data.kind, milliseconds: performance.now() - begun, ...answer });
  if (data.kind === "cancel") cancelled.add(data.id);
  else if (data.kind === "descent") descent(data, reply);
  else {
    const refused = data.kind === "check" ? null : check(data.constants);
    reply(refused && !refused.ok ? { error: refused.message } : ANSWERS[data.kind](data));
  }
};
