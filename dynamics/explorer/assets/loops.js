// The two loops of training: gradient descent, and the flow by collocation in logarithmic time.
//
// They are those of dynamics/loops/kernels (advance, collocation, collocation_equations, path_values
// there), number by number. RADAU has the constants of a step, as collocation_table makes them. A
// problem has size, gradient(state, out), order_parameters(state, slope, out), and jacobian(state,
// out), row by row, or none.

const STAGES = RADAU.points.length, DEGREE = STAGES;

const FIRST_MOVE = 0.2;
const MOST_ITERATIONS = 9;
const CONVERGED = 0.02;
const STALLED = 0.1;
const SAFETY = 0.8;
const SHRINK = 0.2;
const GROW = 4;
const CAREFUL = 1.2;
const HOPELESS = 8;
const QUIET = 1e-3;
const SPACING = 1e-15;
const FARTHEST = 2;
const LEAST_DECAY = 0.03;
const OF_RATE = 0.1;
const SHAKE = 1e-6;
const NOISY = 16;
const SMOOTH = 1e-9;
const LEAST = 2.2250738585072014e-308;

/** The greater, as Python has it where one is not a number. */
function larger(a, b) {
  return b > a ? b : a;
}

/** The smaller, as Python has it where one is not a number. */
function smaller(a, b) {
  return b < a ? b : a;
}

/** The greater; no number if one is none. */
function largest(a, b) {
  return a >= b || a !== a ? a : b;
}

function rowsOf(count, size) {
  return Array.from({ length: count }, () => new Float64Array(size));
}

function allFinite(values) {
  return values.every(Number.isFinite);
}

/** Gradient descent: the steps first, ..., last - 1, with the state in place.
 *
 * Fills `tracked` with the order parameters of every step, and `records` with the states at the steps
 * that are due. Returns `last`, or the step whose successor is not finite.
 */
function advance(problem, state, eta, [first, last], tracked, due, records) {
  const n = state.length, width = tracked.length / (last - first);
  const slope = new Float64Array(n), next = new Float64Array(n);
  let record = 0;
  for (let step = first; step < last; step += 1) {
    if (due[record] === step) records.set(state, n * record++);
    problem.gradient(state, slope);
    for (let i = 0; i < n; i += 1) next[i] = state[i] - eta * slope[i];
    const row = tracked.subarray((step - first) * width, (step - first + 1) * width);
    problem.order_parameters(state, slope, row);
    if (!allFinite(next)) return step;
    if (next.every((value, i) => value === state[i])) {
      // All later steps repeat it.
      for (let later = step + 1; later < last; later += 1) tracked.set(row, (later - first) * width);
      while (record < due.length) records.set(state, n * record++);
      return last;
    }
    state.set(next);
  }
  return last;
}

/** LU factors of a matrix of rows in place; the row that was exchanged with each, or null. */
function factorize(matrix) {
  const size = matrix.length, pivots = new Int32Array(size);
  for (let k = 0; k < size; k += 1) {
    let pivot = k;
    for (let i = k + 1; i < size; i += 1) {
      if (Math.abs(matrix[i][k]) > Math.abs(matrix[pivot][k])) pivot = i;
    }
    pivots[k] = pivot;
    if (!(Math.abs(matrix[pivot][k]) > 0 && Number.isFinite(matrix[pivot][k]))) return null;
    [matrix[k], matrix[pivot]] = [matrix[pivot], matrix[k]];
    const head = matrix[k];
    for (let i = k + 1; i < size; i += 1) {
      const row = matrix[i];
      row[k] /= head[k];
      for (let j = k + 1; j < size; j += 1) row[j] -= row[k] * head[j];
    }
  }
  return pivots;
}

/** Solve the system of `factorize`, in place of the right-hand side. */
function solve(matrix, pivots, values) {
  const size = matrix.length;
  for (let k = 0; k < size; k += 1) {
    [values[k], values[pivots[k]]] = [values[pivots[k]], values[k]];
  }
  for (let i = 0; i < size; i += 1) {
    for (let j = 0; j < i; j += 1) values[i] -= matrix[i][j] * values[j];
  }
  for (let i = size - 1; i >= 0; i -= 1) {
    for (let j = i + 1; j < size; j += 1) values[i] -= matrix[i][j] * values[j];
    values[i] /= matrix[i][i];
  }
}

/** The next width over that of a step with an error, if the error alone decided. */
function widthFactor(error) {
  return SAFETY * Math.pow(1 / larger(error, 1e-12), 1 / (STAGES + 2));
}

/** A flow that is being integrated: the nodes so far, and w and the polynomial of each step. */
class Integration {
  constructor(problem, { time, state }, horizon, relative) {
    const n = problem.size;
    Object.assign(this, { problem, n, time, horizon, relative });
    this.state = Float64Array.from(state);
    this.rounding = this.state.map((x) => 1e-3 * relative * Math.max(Math.abs(x), 1e-2));
    this.scale = this.width = this.lastWidth = this.lastError = this.growth = 0;
    this.stages = rowsOf(STAGES, n);
    this.slopes = rowsOf(STAGES, n);
    this.jacobians = rowsOf(2, n * n);
    this.last = rowsOf(DEGREE + 1, n);
    this.matrix = rowsOf(STAGES * n, STAGES * n);
    this.change = new Float64Array(STAGES * n);
    this.inner = new Float64Array(n);
    this.floor = new Float64Array(n);
    this.sizes = new Float64Array(n).fill(1);
    this.nodes = [time];
    this.scales = [];
    this.polynomials = [];
  }

  /** Go on to the horizon, or for so many steps: "horizon", "interrupted" or "diverged". */
  proceed(most) {
    if (this.scale <= 0 && !this.begin()) return "diverged";
    while (this.time < this.horizon) {
      if (this.scales.length >= most) return "interrupted";
      const left = Math.log1p((this.horizon - this.time) / this.scale);
      let width = this.width;
      if (width > 0.9 * left) width = left;
      else if (width > 0.55 * left) width = 0.5 * left;
      const span = this.scale * Math.expm1(width);
      if (!(span > SPACING * this.time) || span < 1e-300) return "diverged";
      if (!this.attempt(width)) continue;
      this.last = this.polynomial();
      this.polynomials.push(this.last);
      this.state.set(this.last[0]);
      this.scales.push(this.scale);
      this.time = width === left ? this.horizon : this.time + span;
      this.scale += span;
      this.nodes.push(this.time);
    }
    return "horizon";
  }

  /** Choose the time scale and the width of the first step; false where there is no gradient. */
  begin() {
    this.problem.gradient(this.state, this.slopes[0]);
    if (!(allFinite(this.slopes[0]) && this.differentiate(this.state, 0))) return false;
    const left = this.horizon - this.time;
    let size = 0;
    for (let i = 0; i < this.n; i += 1) {
      let total = 0;
      for (let j = 0; j < this.n; j += 1) total += Math.abs(this.jacobians[0][i * this.n + j]);
      size = larger(size, total);
    }
    this.scale = size > 0 ? smaller(left, FIRST_MOVE / size) : left;
    this.width = Math.log1p(1);
    this.growth = GROW;
    return true;
  }

  /** Note that a step failed, and the width of the next attempt; returns false. */
  reject(width) {
    this.width = width;
    this.growth = CAREFUL;
    return false;
  }

  /** Try a step: on success `stages` are its states less the first, and the next width is chosen. */
  attempt(width) {
    this.findFloor(width);
    this.predict(width);
    for (let k = 0; k < this.n; k += 1) this.inner[k] = this.state[k] + this.stages[STAGES - 1][k];
    if (!this.differentiate(this.inner, 1)) return this.reject(0.25 * width);
    this.measureSizes();
    this.assemble(width);
    const pivots = factorize(this.matrix);
    if (pivots === null) return this.reject(0.5 * width);
    let last = 0, error = 0, iteration = 1;
    for (; iteration <= MOST_ITERATIONS; iteration += 1) {
      if (!this.iterate(width, pivots)) return this.reject(0.25 * width);
      const [moved, found] = this.movedAndError(), rate = last > 0 ? moved / last : 1;
      error = found;
      if (!Number.isFinite(moved + error)) return this.reject(0.25 * width);
      const stalls = iteration > 2 && rate >= 1;
      if (iteration > 1 && moved * smaller(1, rate / larger(1 - rate, 1e-300)) <= CONVERGED) break;
      if (stalls && moved <= STALLED) break;
      const after = MOST_ITERATIONS - iteration;
      if (stalls || (iteration > 2 && (moved * Math.pow(rate, after)) / (1 - rate) > CONVERGED)) {
        this.differentiate(this.state, 0); // that was at a predicted state
        return this.reject(0.5 * width);
      }
      if (error > HOPELESS && error > 3 * moved * (iteration > 1 ? rate : 0.3)) {
        return this.reject(larger(SHRINK, 0.9 * widthFactor(error)) * width);
      }
      last = moved;
    }
    const factor = widthFactor(error);
    if (error > 1) return this.reject(smaller(0.9, larger(SHRINK, factor)) * width);
    this.planNextWidth(width, factor, error, Math.min(iteration, MOST_ITERATIONS));
    this.jacobians[0].set(this.jacobians[1]);
    return true;
  }

  planNextWidth(width, factor, error, iterations) {
    if (this.lastError > 0 && error > QUIET) {
      const trend = Math.pow(this.lastError / error, 1 / (STAGES + 2));
      factor = smaller(factor, ((factor * width) / this.lastWidth) * trend);
    }
    let growth = GROW;
    if (iterations > 3) growth = { 4: 2, 5: 1.4, 6: 1.1, 7: 0.9 }[iterations] ?? 0.7;
    this.width = width * smaller(smaller(growth, this.growth), larger(SHRINK, factor));
    this.lastWidth = width;
    this.lastError = larger(error, QUIET);
    this.growth = GROW;
  }

  /** Fill a Jacobian of the gradient at a state; false where it is not finite. */
  differentiate(state, which) {
    const { problem, n } = this, jacobian = this.jacobians[which];
    if (problem.jacobian !== undefined) {
      problem.jacobian(state, jacobian);
      return allFinite(jacobian);
    }
    const [high, low] = this.slopes, inner = new Float64Array(n);
    const top = state.reduce((found, value) => larger(found, Math.abs(value)), 0);
    const least = top > 0 ? 1e-2 * smaller(top, 1) : 1e-2;
    for (let k = 0; k < n; k += 1) {
      const width = 1e-5 * larger(Math.abs(state[k]), least);
      inner.set(state);
      inner[k] = state[k] + width;
      problem.gradient(inner, high);
      inner[k] = state[k] - width;
      problem.gradient(inner, low);
      for (let i = 0; i < n; i += 1) jacobian[i * n + k] = (high[i] - low[i]) / (2 * width);
    }
    return allFinite(jacobian);
  }

  /** Fill `stages` from the polynomial of the last step; 0 where there is none. */
  predict(width) {
    for (let i = 0; i < STAGES; i += 1) {
      const ahead = this.lastWidth > 0 ? smaller((RADAU.points[i] * width) / this.lastWidth, FARTHEST) : 0;
      for (let k = 0; k < this.n; k += 1) {
        let value = 0;
        for (let power = DEGREE; power > 0; power -= 1) value = (value + this.last[power][k]) * ahead;
        this.stages[i][k] = value;
      }
    }
  }

  /** Fill `floor`: what a step may err in any case in entries that are rounding, else next to none. */
  findFloor(width) {
    const { problem, n, state, relative, rounding } = this;
    this.floor.fill(LEAST);
    if (!state.some((value, k) => relative * Math.abs(value) < rounding[k])) return;
    const top = state.reduce((found, value) => larger(found, Math.abs(value)), 1);
    const span = this.scale * Math.expm1(width), [slope, high, low] = this.slopes;
    problem.gradient(state, slope);
    for (const [side, out] of [[1, high], [-1, low]]) {
      for (let k = 0; k < n; k += 1) {
        let change = smaller(span * Math.abs(slope[k]), top);
        change = state[k] * Math.cos(k + 1e3 * width) + (slope[k] < 0 ? change : -change);
        this.inner[k] = state[k] + side * SHAKE * change;
      }
      problem.gradient(this.inner, out);
    }
    for (let k = 0; k < n; k += 1) {
      const noise = NOISY * span * Math.abs(high[k] - 2 * slope[k] + low[k]);
      const rate = OF_RATE * span * Math.abs(slope[k]);
      const allowed = relative * larger(Math.abs(state[k]), rate);
      if (allowed < rounding[k] && noise > larger(allowed, SMOOTH * rate)) this.floor[k] = rounding[k];
    }
  }

  measureSizes() {
    for (let k = 0; k < this.n; k += 1) {
      const end = Math.abs(this.state[k] + this.stages[STAGES - 1][k]);
      const size = larger(larger(Math.abs(this.state[k]), end), this.floor[k]);
      this.sizes[k] = size > LEAST ? size : 1;
    }
  }

  /** Fill the matrix of the Newton iterations, for changes over the sizes of their entries. */
  assemble(width) {
    const { n, sizes, matrix } = this, [start, end] = this.jacobians;
    for (let j = 0; j < STAGES; j += 1) {
      const weight = width * this.scale * Math.exp(RADAU.points[j] * width);
      for (let m = 0; m < n; m += 1) {
        for (let k = 0; k < n; k += 1) {
          const first = start[m * n + k];
          let entry = weight * (first + RADAU.points[j] * (end[m * n + k] - first));
          entry *= sizes[k] / sizes[m];
          for (let i = 0; i < STAGES; i += 1) matrix[i * n + m][j * n + k] = RADAU.weights[i][j] * entry;
        }
      }
    }
    for (let i = 0; i < STAGES * n; i += 1) matrix[i][i] += 1;
  }

  /** One Newton iteration, which changes `stages` by `change`; false where a state has no gradient. */
  iterate(width, pivots) {
    const { problem, n, stages, slopes, change, sizes } = this;
    for (let j = 0; j < STAGES; j += 1) {
      for (let k = 0; k < n; k += 1) this.inner[k] = this.state[k] + stages[j][k];
      problem.gradient(this.inner, slopes[j]);
      if (!allFinite(slopes[j])) return false;
      const weight = width * this.scale * Math.exp(RADAU.points[j] * width);
      for (let k = 0; k < n; k += 1) slopes[j][k] *= weight;
    }
    for (let i = 0; i < STAGES; i += 1) {
      for (let k = 0; k < n; k += 1) {
        let total = stages[i][k];
        for (let j = 0; j < STAGES; j += 1) total += RADAU.weights[i][j] * slopes[j][k];
        change[i * n + k] = -total / sizes[k];
      }
    }
    solve(this.matrix, pivots, change);
    for (let i = 0; i < STAGES; i += 1) {
      for (let k = 0; k < n; k += 1) {
        change[i * n + k] *= sizes[k];
        stages[i][k] += change[i * n + k];
      }
    }
    return true;
  }

  /** The largest change of an iteration and the estimate of the error, over what is allowed. */
  movedAndError() {
    const { n, stages, slopes, change } = this;
    let moved = 0, error = 0;
    for (let k = 0; k < n; k += 1) {
      let reached = Math.abs(this.state[k] + stages[STAGES - 1][k]);
      reached = larger(reached, OF_RATE * Math.abs(slopes[STAGES - 1][k]));
      const allowed = this.floor[k] + this.relative * reached, sums = [0, 0, 0];
      for (let i = 0; i < STAGES; i += 1) {
        moved = largest(moved, Math.abs(change[i * n + k]) / allowed);
        for (let place = 0; place < 3; place += 1) sums[place] += RADAU.ending[place][i] * stages[i][k];
      }
      const [third, second, last] = sums.map(Math.abs);
      const decay = larger(last / larger(second, 1e-300), Math.sqrt(last / larger(third, 1e-300)));
      error = largest(error, (last / allowed) * smaller(1, larger(LEAST_DECAY, decay)));
    }
    return [moved, error];
  }

  /** Coefficients of the step in powers of (position - 1), by power. */
  polynomial() {
    return RADAU.powers.map((powers, power) =>
      this.state.map((start, k) => {
        if (power === 0) return start + this.stages[STAGES - 1][k];
        let total = 0;
        for (let i = 0; i < STAGES; i += 1) total += powers[i] * this.stages[i][k];
        return total;
      }),
    );
  }
}

/** The step of a flow that ends at a time or later, the position in it, from its end, and its pace. */
function placeIn(time, { nodes, scales, polynomials }) {
  let low = 0, high = polynomials.length - 1;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (nodes[middle + 1] < time) low = middle + 1;
    else high = middle;
  }
  const width = Math.log1p((nodes[low + 1] - nodes[low]) / scales[low]), since = time - nodes[low];
  return [polynomials[low], Math.log1p(since / scales[low]) / width - 1, 1 / (width * (scales[low] + since))];
}

/** The state at a time of a flow with these nodes, values of w and polynomials. */
function stateAt(time, steps) {
  const [coefficients, position] = placeIn(time, steps);
  return coefficients[DEGREE].map((leading, k) => {
    let value = leading;
    for (let power = DEGREE - 1; power >= 0; power -= 1) value = value * position + coefficients[power][k];
    return value;
  });
}
