// Training on patterns of the shallow Vision Transformer, by plain loops over count vectors.
// Arrays of rows are flat: W_O (m, d), V, K and Q (d, M), counts (vectors, M).

/** Parts of a state or of its gradient. */
function parts(flat, { m, d, M }) {
  const at = (k) => flat.subarray(m * d + k * d * M, m * d + (k + 1) * d * M);
  return { W_O: flat.subarray(0, m * d), V: at(0), K: at(1), Q: at(2) };
}

/** out[i, j] += sum over k of a[i, k] b[k, j]; strides say how rows and columns lie. */
function addProduct(a, [aRow, aColumn], b, [bRow, bColumn], out, [rows, inner, columns]) {
  for (let i = 0; i < rows; i += 1) {
    for (let k = 0; k < inner; k += 1) {
      const factor = a[i * aRow + k * aColumn];
      for (let j = 0; j < columns; j += 1) out[i * columns + j] += factor * b[k * bRow + j * bColumn];
    }
  }
}

/** Attention of one count vector: key i and query j at i M + j. */
function attention(scores, counts, M) {
  const P = new Float64Array(M * M);
  for (let j = 0; j < M; j += 1) {
    let top = -Infinity, total = 0;
    for (let i = 0; i < M; i += 1) if (counts[i] > 0) top = Math.max(top, scores[i * M + j]);
    for (let i = 0; i < M; i += 1) {
      P[i * M + j] = counts[i] > 0 ? counts[i] * Math.exp(scores[i * M + j] - top) : 0;
      total += P[i * M + j];
    }
    for (let i = 0; i < M; i += 1) P[i * M + j] /= total;
  }
  return P;
}

/** Calls a function of (vector, counts, P, U, output weights, y F) for every count vector. */
function forVectors(state, data, visit) {
  const { m, d, M } = data, { W_O, V, K, Q } = parts(state, data);
  const H = new Float64Array(m * M), B = new Float64Array(M * M);
  addProduct(W_O, [d, 1], V, [M, 1], H, [m, d, M]);
  addProduct(K, [1, M], Q, [M, 1], B, [M, d, M]);
  for (let s = 0; s < data.labels.length; s += 1) {
    const counts = data.counts.data.subarray(s * M, (s + 1) * M), P = attention(B, counts, M);
    const U = new Float64Array(m * M);
    addProduct(H, [M, 1], P, [M, 1], U, [m, M, M]);
    const weight = (i, j) => (counts[j] * (data.own ? data.a.data[(s * M + j) * m + i] : data.a.data[i])) / data.L;
    let F = 0;
    for (let i = 0; i < m; i += 1) for (let j = 0; j < M; j += 1) F += weight(i, j) * Math.max(U[i * M + j], 0);
    visit(s, counts, P, U, weight, data.labels[s] * F, H);
  }
}

function gradient(state, data, out) {
  const { m, d, M } = data, { W_O, V, K, Q } = parts(state, data), slope = parts(out, data);
  const E = new Float64Array(m * M), T = new Float64Array(M * M);
  forVectors(state, data, (s, counts, P, U, weight, reached, H) => {
    if (data.hinge && reached >= data.margin) return;
    const D = new Float64Array(m * M), rho = new Float64Array(M * M), push = -data.labels[s] * data.weights[s];
    for (let i = 0; i < m; i += 1) {
      for (let j = 0; j < M; j += 1) if (U[i * M + j] > 0) D[i * M + j] = push * weight(i, j);
    }
    addProduct(D, [M, 1], P, [1, M], E, [m, M, M]);
    addProduct(H, [1, M], D, [M, 1], rho, [M, m, M]);
    for (let j = 0; j < M; j += 1) {
      let mean = 0;
      for (let i = 0; i < M; i += 1) mean += P[i * M + j] * rho[i * M + j];
      for (let i = 0; i < M; i += 1) T[i * M + j] += P[i * M + j] * (rho[i * M + j] - mean);
    }
  });
  out.fill(0);
  addProduct(E, [M, 1], V, [1, M], slope.W_O, [m, M, d]);
  if (data.values) addProduct(W_O, [1, d], E, [M, 1], slope.V, [d, m, M]);
  if (data.attention) {
    addProduct(Q, [M, 1], T, [1, M], slope.K, [d, M, M]);
    addProduct(K, [M, 1], T, [M, 1], slope.Q, [d, M, M]);
  }
}

/** Risk over the margin, active, error, relevant. */
function order_parameters(state, rate, data, out) {
  const { M, margin, hinge } = data;
  out.fill(0);
  forVectors(state, data, (s, counts, P, U, weight, reached) => {
    const w = data.weights[s], relevant = data.labels[s] > 0 ? 0 : 1;
    out[0] += (w * (hinge ? Math.max(margin - reached, 0) : -reached)) / margin;
    out[1] += reached >= margin ? 0 : w;
    out[2] += reached > 0 ? 0 : w;
    for (let j = 0; j < M; j += 1) out[3] += (w * counts[j] * P[relevant * M + j]) / data.L;
  });
}

const KERNELS = [{ gradient, order_parameters }];
