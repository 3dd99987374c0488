// Functions of printed programs that Math does not have.

/** Nearest whole number; halves go to the even one. */
function roundToEven(x) {
  const low = Math.floor(x), rest = x - low;
  if (rest < 0.5) return low;
  if (rest > 0.5) return low + 1;
  return low % 2 === 0 ? low : low + 1;
}

/** log(exp(a) + exp(b)) without overflow. */
function logAddExp(a, b) {
  if (a === b) return a + Math.LN2;
  return Math.max(a, b) + Math.log1p(Math.exp(-Math.abs(a - b)));
}

/** Whether a sorts before b; what is no number comes last. */
function before(a, b) {
  return a < b || (a === a && b !== b);
}

/** erf by its series for |x| < 2, which converges to rounding there; else 1 - erfc. */
function errorFunction(x) {
  if (!(Math.abs(x) < 2)) return x !== x ? x : x > 0 ? 1 - tailOfErf(x) : tailOfErf(-x) - 1;
  const square = x * x;
  let term = x, sum = x;
  for (let n = 1; Math.abs(term) > 1e-18 * Math.abs(sum); n += 1) {
    term *= (2 * square) / (2 * n + 1);
    sum += term;
  }
  return ((2 * Math.exp(-square)) / Math.sqrt(Math.PI)) * sum;
}

/** erfc. */
function complementaryErrorFunction(x) {
  if (x >= 2) return tailOfErf(x);
  return x < -2 ? 2 - tailOfErf(-x) : 1 - errorFunction(x);
}

/** erfc(x) for x >= 2 by its continued fraction, from behind. */
function tailOfErf(x) {
  if (x > 27) return 0;
  let fraction = 0;
  for (let k = 120; k > 0; k -= 1) fraction = k / 2 / (x + fraction);
  return Math.exp(-x * x) / (Math.sqrt(Math.PI) * (x + fraction));
}
