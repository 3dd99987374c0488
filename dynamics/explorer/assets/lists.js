// Programs of a model: lists of instructions, run forwards as `dynamics/loops/kernels/program.py`
// runs them. OPERATIONS are the names of their codes, PROGRAMS the lists, TABLES their arrays.

/** erf by its series for |x| < 2, which converges to rounding there; else 1 - erfc. */
function erf(x) {
  if (!(Math.abs(x) < 2)) return x !== x ? x : x > 0 ? 1 - tailOfErf(x) : tailOfErf(-x) - 1;
  const square = x * x;
  let term = x, sum = x;
  for (let n = 1; Math.abs(term) > 1e-18 * Math.abs(sum); n += 1) {
    term *= (2 * square) / (2 * n + 1);
    sum += term;
  }
  return ((2 * Math.exp(-square)) / Math.sqrt(Math.PI)) * sum;
}

/** erfc(x) for x >= 2 by its continued fraction, from behind. */
function tailOfErf(x) {
  if (x > 27) return 0;
  let fraction = 0;
  for (let k = 120; k > 0; k -= 1) fraction = k / 2 / (x + fraction);
  return Math.exp(-x * x) / (Math.sqrt(Math.PI) * (x + fraction));
}

/** Nearest whole number; halves go to the even one. */
function roundToEven(x) {
  const low = Math.floor(x), rest = x - low;
  return rest < 0.5 || (rest === 0.5 && low % 2 === 0) ? low : low + 1;
}

const ELEMENTWISE = {
  div: (a, b) => a / b,
  pow: (a, b) => a ** b,
  max: (a, b) => Math.max(a, b),
  select: (which, a, b) => (which !== 0 ? a : b),
  lt: (a, b) => (a < b ? 1 : 0),
  le: (a, b) => (a <= b ? 1 : 0),
  eq: (a, b) => (a === b ? 1 : 0),
  rem: (a, b) => a % b,
  share: (a, b) => Math.exp(a - b),
  rsqrt: (x) => 1 / Math.sqrt(x),
  sigmoid: (x) => 1 / (1 + Math.exp(-x)),
  softplus: (x) => Math.log1p(Math.exp(-Math.abs(x))) + Math.max(x, 0),
  round: roundToEven,
  is_finite: (x) => (Number.isFinite(x) ? 1 : 0),
  erf,
  erfc: (x) => (x >= 2 ? tailOfErf(x) : x < -2 ? 2 - tailOfErf(-x) : 1 - erf(x)),
};

const OF_ROWS = {
  integer_pow: (values, index, count, at) => {
    const x = values[index[at]], exponent = count[at];
    return exponent === 2 ? x * x : exponent === 3 ? x * x * x : x ** exponent;
  },
  largest: (values, index, count, at, length) => {
    let top = -Infinity;
    for (let k = at; k < at + length; k += 1) top = Math.max(top, values[index[k]]);
    return top;
  },
  logsumexp: (values, index, count, at, length) => {
    const top = OF_ROWS.largest(values, index, count, at, length);
    if (!Number.isFinite(top)) return top;
    let total = 0;
    for (let k = at; k < at + length; k += 1) total += count[k] * Math.exp(values[index[k]] - top);
    return top + Math.log(total);
  },
};

/** An operation as a function of a row of a list. */
function ofRow(name) {
  if (OF_ROWS[name]) return OF_ROWS[name];
  const of = ELEMENTWISE[name] ?? Math[name];
  if (of === undefined) return undefined; // never in a list: inputs, constants, sums, products
  if (of.length === 1) return (values, index, count, at) => of(values[index[at]]);
  if (of.length === 2) return (values, index, count, at) => of(values[index[at]], values[index[at + 1]]);
  return (values, index, count, at) => of(values[index[at]], values[index[at + 1]], values[index[at + 2]]);
}

const BY_CODE = OPERATIONS.map(ofRow), SUM = OPERATIONS.indexOf("sum"), MUL = OPERATIONS.indexOf("mul");

/** Compute every result of a list in `values`, which begins with inputs and constants. */
function forward({ instructions, index, count }, values) {
  for (let m = 0, at = 0; m < instructions.length; m += 4) {
    const code = instructions[m], last = instructions[m + 2], length = instructions[m + 3];
    const of = BY_CODE[code];
    for (let v = instructions[m + 1]; v < last; v += 1, at += length) {
      if (code === SUM) {
        let sum = 0;
        for (let k = at; k < at + length; k += 1) sum += count[k] * values[index[k]];
        values[v] = sum;
      } else if (code === MUL) {
        values[v] = values[index[at]] * values[index[at + 1]];
      } else {
        values[v] = of(values, index, count, at, length);
      }
    }
  }
}

/** Make indices of their steps from one result of an instruction to the next, in place. */
function addSteps({ instructions, index }) {
  for (let m = 0, at = 0; m < instructions.length; m += 4) {
    const length = instructions[m + 3], end = at + (instructions[m + 2] - instructions[m + 1]) * length;
    for (let k = at + length; k < end; k += 1) index[k] += index[k - length];
    at = end;
  }
}

const LISTS = new Map();

/** A list of PROGRAMS with its arrays, which are decoded once. */
function listOf(number) {
  if (!LISTS.has(number)) {
    const { size, constants, instructions, index, counts, which, outputs, by_row } = PROGRAMS[number];
    const whole = (table) => Int32Array.from(TABLES[table]), distinct = TABLES[counts];
    const list = { size, constants: TABLES[constants], instructions: whole(instructions), index: whole(index) };
    addSteps(list);
    const count = Float64Array.from(TABLES[which], (k) => distinct[k]);
    LISTS.set(number, { ...list, count, outputs: whole(outputs), by_row: whole(by_row) });
  }
  return LISTS.get(number);
}

/**
 * A function of (state, direction or null, out) that runs a list.
 *
 * Inputs after these are `given`, then a row of each of `rows`. An output that depends on the row is
 * the sum over rows of `shares` times what each gives.
 */
function runOf(list, given, rows, shares) {
  const { size, constants, instructions, outputs, by_row } = list, values = new Float64Array(size);
  values.set(constants, (instructions.length ? instructions[1] : size) - constants.length);
  return (state, direction, out) => {
    const first = direction === null ? state.length : 2 * state.length;
    values.set(state);
    if (direction !== null) values.set(direction, state.length);
    values.set(given, first);
    out.fill(0);
    for (let r = 0; r < shares.length; r += 1) {
      let place = first + given.length;
      for (const row of rows) {
        const width = row.length / shares.length;
        values.set(row.subarray(r * width, (r + 1) * width), place);
        place += width;
      }
      forward(list, values);
      for (let k = 0; k < outputs.length; k += 1) {
        const value = values[outputs[k]];
        out[k] = by_row[k] ? out[k] + shares[r] * value : value;
      }
    }
  };
}
