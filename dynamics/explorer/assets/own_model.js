// A model of one's own: PROGRAMS are lists of its risk, POINTS are values of its whole constants and
// words with their data, FUNCTIONS are those of its real constants.

/** An array as a sum of functions of the constants times tables. */
function arrayAt({ size, parts }, constants) {
  if (parts.length === 1 && parts[0][0] === ONE) return TABLES[parts[0][1]];
  const out = new Float64Array(size);
  for (const [number, table] of parts) {
    const factor = FUNCTIONS[number](constants), values = TABLES[table];
    for (let k = 0; k < size; k += 1) out[k] += factor * values[k];
  }
  return out;
}

function shownValue(value) {
  return typeof value === "string" ? `'${value}'` : `${value}`;
}

function check(moved) {
  const constants = { ...FIXED.others, ...moved };
  const refused = (message, nearest = null) => ({ ok: false, message, nearest });
  for (const name of FIXED.reals) {
    if (!Number.isFinite(constants[name])) return refused(`${name}=${constants[name]} is not a finite number`);
  }
  const point = pointAt(constants), nearest = nearestTo(constants);
  for (const { text, names, holds } of LIMITS) {
    if (!holds(constants)) {
      const there = names.map((name) => `${name}=${shownValue(constants[name])}`).join(" ");
      const near = point === undefined ? { ...moved, ...nearest } : null;
      return refused(`${there} is outside the limits of ${FIXED.name}: ${text}`, near);
    }
  }
  if (point === undefined) {
    const other = Object.keys(nearest).filter((name) => nearest[name] !== constants[name]);
    const held = other.map((name) => `${name} = ${[...new Set(POINTS.map((each) => each.at[name]))].join(", ")}`);
    const flags = other.map((name) => `--${name} ${constants[name]}`).join(" ");
    return refused(`this page holds ${held.join(" and ")}; ${FIXED.command} ${flags} writes another`, { ...moved, ...nearest });
  }
  if (point.law) {
    const weights = arrayAt(point.weights, constants);
    const least = weights.reduce((a, b) => Math.min(a, b), 0), total = weights.reduce((a, b) => a + b, 0);
    if (least < -1e-15) return refused(`law gives the negative probability ${least} to a sample`);
    if (!(Math.abs(total - 1) <= 1e-12)) return refused(`the probabilities of law sum to ${total}, not to 1`);
  }
  return { ok: true, message: "", nearest: null };
}

function make(moved) {
  const constants = { ...FIXED.others, ...moved };
  const point = pointAt(constants);
  const given = Float64Array.from(point.given, (number) => FUNCTIONS[number](constants));
  const rows = point.rows.map((one) => arrayAt(one, constants));
  const weights = point.one_by_one ? arrayAt(point.weights, constants) : [1];
  const total = weights.reduce((a, b) => a + b, 0), shares = weights.map((weight) => weight / total);
  const [gradient, order, observables, change] = point.programs.map((number) => runOf(listOf(number), given, rows, shares));
  const start = Float64Array.from(arrayAt(point.start, constants));
  const problem = {
    size: start.length,
    start,
    state_names: FIXED.state_names,
    observable_names: FIXED.observable_names,
    order_names: FIXED.order_names,
    constants: { ...constants, ...point.constants },
    gradient: (state, out) => gradient(state, null, out),
    order_parameters: order,
    observables: (state, out) => observables(state, null, out),
    matrix(name, state) {
      const { rows, columns, labels, base, along } = point.matrices[name];
      const values = Float64Array.from(arrayAt(base, constants)), n = state.length, by = TABLES[along];
      for (let c = 0; c < values.length; c += 1) for (let k = 0; k < n; k += 1) values[c] += by[c * n + k] * state[k];
      return { rows, columns, labels: Int32Array.from(TABLES[labels]), values };
    },
  };
  // Without that list the integrator takes differences of the gradient.
  if (change !== undefined) problem.jacobian = (state, out) => {
    const n = state.length, direction = new Float64Array(n), column = new Float64Array(n);
    for (let j = 0; j < n; j += 1) {
      direction.fill(0)[j] = 1;
      change(state, direction, column);
      for (let i = 0; i < n; i += 1) out[i * n + j] = column[i];
    }
  };
  return problem;
}

const MODEL = { check, make, ready: READY };
