// Positional attention: the law of the random sets at given constants, and the problem on it.
//
// From the page: KERNELS (p -> printed functions), typeProbability, constantsOf, sharesOf, LIMITS.

/** Numbers of patches at +1 and -1 in a set, in the order of the types. */
function typesOf(C) {
  const types = [];
  for (let a = 0; a <= C; a += 1) for (let b = 0; b <= C - a; b += 1) types.push([a, b]);
  return types;
}

/** Probability of every type of a random set. */
function typeProbabilities(types, { C, q, random_sets }) {
  return types.map(([a, b]) => {
    if (random_sets === "mixed" && Math.max(a, b) === C) return 0;
    return typeProbability[random_sets](a, b, C, q);
  });
}

function factorial(n) {
  let product = 1;
  for (let k = 2; k <= n; k += 1) product *= k;
  return product;
}

/** Number of multisets of L - 1 of the types. */
function numberOfConfigurations(D, C) {
  const kinds = ((C + 1) * (C + 2)) / 2;
  let number = 1;
  for (let k = 1; k < D / C; k += 1) number = Math.round((number * (kinds - 1 + k)) / k);
  return number;
}

/** Every multiset of `size` of the kinds 0, 1, ..., as ascending rows, flat. */
function multisets(kinds, size, count) {
  const rows = new Int32Array(count * size), row = new Int32Array(size);
  for (let n = 0; n < count; n += 1) {
    rows.set(row, n * size);
    let last = size - 1;
    while (last >= 0 && row[last] === kinds - 1) last -= 1;
    if (last >= 0) row.fill(row[last] + 1, last);
  }
  return rows;
}

/** The configurations as the kernels read them: see kernels/reduced_data.py, Configurations. */
function configurations(constants) {
  const { D, C } = constants;
  const types = typesOf(C), chance = typeProbabilities(types, constants);
  const sets = D / C - 1, columns = 2 * D - 2 * C + 1, first = 2 * C - D;
  const count = numberOfConfigurations(D, C), rows = multisets(types.length, sets, count);
  const sums = types.map(([a, b]) => a - b);
  const weights = new Float64Array(count), totals = new Int32Array(count), order = [];
  for (let n = 0; n < count; n += 1) {
    let weight = 1, total = C, run = 1;
    for (let i = 0; i < sets; i += 1) {
      const type = rows[n * sets + i];
      run = i > 0 && type === rows[n * sets + i - 1] ? run + 1 : 1;
      weight *= (chance[type] * (i + 1)) / run;
      total += sums[type];
    }
    weights[n] = weight;
    totals[n] = total - first;
    if (weight > 0) order.push(n);
  }
  order.sort((n, m) => totals[n] - totals[m] || n - m);
  const size = order.length, signal = sums.indexOf(C);
  const index = { data: new Int32Array((sets + 1) * size), shape: [sets + 1, size] };
  order.forEach((n, c) => {
    index.data[c] = signal * columns + totals[n];
    for (let i = 0; i < sets; i += 1) {
      index.data[(i + 1) * size + c] = rows[n * sets + i] * columns + totals[n];
    }
  });
  return {
    latents: [
      Float64Array.of(1, -1, 0),
      Float64Array.from({ length: 2 * C + 1 }, (_, k) => k - C),
      Float64Array.from({ length: columns }, (_, k) => k + first),
    ],
    composition: table(types, 3, ([a, b]) => [a, b, C - a - b]),
    multiples: table(types, 3, ([a, b]) => [1, 2 * Math.min(a, b), C - a - b]),
    sum_index: Int32Array.from(sums, (sum) => sum + C),
    index,
    probability: Float64Array.from(order, (n) => weights[n]),
    ...members(index, types.length, columns),
  };
}

function table(rows, width, entries) {
  return { data: Float64Array.from(rows.flatMap(entries)), shape: [rows.length, width] };
}

/** The configurations with a random set of each entry (type, Z), entries by Z, then type. */
function members(index, kinds, columns) {
  const [sets, size] = index.shape, counts = new Int32Array(kinds * columns);
  const rank = (flat) => (flat % columns) * kinds + Math.floor(flat / columns);
  for (const flat of index.data.subarray(size)) counts[rank(flat)] += 1;
  const entries = [], starts = [0], begins = new Int32Array(counts.length);
  counts.forEach((many, k) => {
    if (many === 0) return;
    begins[k] = starts[starts.length - 1];
    entries.push((k % kinds) * columns + Math.floor(k / kinds));
    starts.push(begins[k] + many);
  });
  const listed = new Int32Array((sets - 1) * size);
  for (let c = 0; c < size; c += 1) {
    for (let k = 1; k < sets; k += 1) listed[begins[rank(index.data[k * size + c])]++] = c;
  }
  return {
    entries: Int32Array.from(entries),
    starts: Int32Array.from(starts),
    members: listed,
    cuts: Int32Array.of(0, entries.length),
  };
}

/** Configurations and scratch, as ReducedData of kernels/reduced_data.py. */
function reducedData(constants) {
  const rows = configurations(constants), grid = rows.latents.map((latent) => latent.length);
  const cells = rows.sum_index.length * grid[2], parts = zeros([4, ...grid], Float64Array);
  return {
    constants: Float64Array.from(constantsOf(constants)),
    share: Float64Array.from(sharesOf(constants)),
    configurations: rows,
    work: {
      parts,
      parts_at: new Float64Array(3).fill(NaN),
      flat_parts: { data: parts.data, shape: [12, grid[1], grid[2]] },
      table: zeros([rows.sum_index.length, grid[2]], Float64Array),
      total: new Float64Array(cells),
      weights: zeros(grid, Float64Array),
      chance: new Float64Array(rows.probability.length),
    },
    certificate: null,
  };
}

/** One line as `dynamics.validation.refuse` has it. */
function refusal(name, value, problem, allowed, nearest) {
  const message = `${name}=${value} ${problem}; ${name} can be ${allowed}; nearest: ${nearest}`;
  return { ok: false, message, nearest: { [name]: nearest } };
}

function divisors(D) {
  const all = [];
  for (let c = 2; c <= D / 2; c += 1) if (D % c === 0) all.push(c);
  return all;
}

function check(constants) {
  const { D, C } = constants;
  const allowed = divisors(D);
  if (allowed.length === 0) {
    return refusal("D", D, "has no divisor C with 2 <= C < D", "a composite number", D + 1);
  }
  if (!allowed.includes(C)) {
    const near = allowed.reduce((a, b) => (Math.abs(b - C) < Math.abs(a - C) ? b : a));
    const problem = C === D ? `equals D=${D}` : `does not divide D=${D}`;
    return refusal("C", C, problem, allowed.join(", "), near);
  }
  const number = numberOfConfigurations(D, C);
  if (number > LIMITS.configurations) {
    const sizes = Array.from({ length: D - 3 }, (_, k) => D - k).filter(
      (size) => size % C === 0 && size > C && numberOfConfigurations(size, C) <= LIMITS.configurations
    );
    const problem = `at C=${C} has ${number.toLocaleString("en")} configurations`;
    const most = `sizes of at most ${LIMITS.configurations.toLocaleString("en")} configurations in a browser`;
    if (sizes.length) return refusal("D", D, problem, most, sizes[0]);
    return { ok: false, message: `D=${D} ${problem}; D can be ${most}`, nearest: { D: 16, C: 4 } };
  }
  return { ok: true, message: "", nearest: null };
}

const STATES = ["alpha", "gamma", "rho"];

function make(constants) {
  const kernels = KERNELS[constants.p], data = reducedData(constants);
  const slope = new Float64Array(3), rates = new Float64Array(3), risk = new Float64Array(2);
  return {
    size: 3,
    start: Float64Array.of(constants.alpha0 ?? startOf(constants), 0, 0),
    state_names: STATES,
    observable_names: [...OBSERVABLES, "risk", "error"],
    order_names: ORDER,
    constants,
    gradient: (state, out) => kernels.gradient(state, data, out),
    jacobian: (state, out) => kernels.hessian(state, data, { data: out, shape: [3, 3] }),
    order_parameters: (state, rate, out) => kernels.order_parameters(state, rate, data, out),
    observables(state, out) {
      kernels.gradient(state, data, slope);
      for (let k = 0; k < 3; k += 1) rates[k] = -slope[k];
      kernels.reported(state, rates, data.constants, out);
      kernels.summary(state, data, risk);
      out.set(risk, OBSERVABLES.length);
    },
    matrix(name, state) {
      const { D, C } = constants, values = new Float64Array(OBSERVABLES.length + 2);
      this.observables(state, values);
      const set = (i) => Math.floor(i / C);
      const labels = Int32Array.from({ length: D * D }, (_, k) => {
        const i = Math.floor(k / D), j = k % D;
        return i === j ? 0 : set(i) === set(j) ? 1 : 2;
      });
      const of = ["Lambda", "Gamma", "Xi"].map((letter) => values[OBSERVABLES.indexOf(letter)]);
      return { rows: D, columns: D, labels, values: Float64Array.from(of) };
    },
  };
}

const MODEL = { check, make };
