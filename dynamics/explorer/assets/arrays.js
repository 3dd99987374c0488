// Arrays of the printed kernels: one axis is a typed array, more are {data, shape}, contiguous.

/** An array of zeros; `shape` is a number or a list of numbers. */
function zeros(shape, Entries) {
  if (typeof shape === "number") return new Entries(shape);
  if (shape.length === 1) return new Entries(shape[0]);
  return { data: new Entries(shape.reduce((a, b) => a * b, 1)), shape };
}

/** Row i of an array of two axes. */
function row(a, i) {
  const n = a.shape[1];
  return a.data.subarray(i * n, (i + 1) * n);
}

/** Part i of an array of three and more axes. */
function part(a, i) {
  const n = a.data.length / a.shape[0];
  return { data: a.data.subarray(i * n, (i + 1) * n), shape: a.shape.slice(1) };
}

/** The greater, as Python has it where one is no number. */
function larger(a, b) {
  return b > a ? b : a;
}

/** The smaller, as Python has it where one is no number. */
function smaller(a, b) {
  return b < a ? b : a;
}
