// A system whose data are laid out in Python: POINTS has them, by the values of the sliders.

/** A value that `dynamics.explorer.prepared.encoded` has written. */
function decoded(value) {
  if (value === null || typeof value !== "object") return value;
  if (value.rows) return value.rows;
  if (value.tuple) return value.tuple.map(decoded);
  if (value.fields) {
    return Object.fromEntries(Object.entries(value.fields).map(([name, of]) => [name, decoded(of)]));
  }
  const whole = value.real === undefined;
  const data = whole ? Int32Array.from(TABLES[value.whole]) : Float64Array.from(TABLES[value.real]);
  return value.shape.length === 1 ? data : { data, shape: value.shape };
}

function check(constants) {
  if (pointAt(constants) !== undefined) return { ok: true, message: "", nearest: null };
  const nearest = nearestTo(constants);
  const wanted = Object.keys(nearest).map((name) => `${name}=${constants[name]}`).join(" ");
  const flags = Object.keys(nearest).map((name) => `--${name} ${constants[name]}`).join(" ");
  const message = `this page has no data for ${wanted}; ${FIXED.command} ${flags} writes them, or says why not`;
  return { ok: false, message, nearest };
}

function make(constants) {
  const point = pointAt(constants);
  const kernels = KERNELS[point.kernels], data = decoded(point.data), start = decoded(point.start);
  const width = FIXED.order_names.length, slope = new Float64Array(start.length);
  const risk = new Float64Array(2);
  const problem = {
    size: start.length,
    start,
    state_names: FIXED.state_names,
    observable_names: FIXED.risk ? [...FIXED.order_names, "risk"] : FIXED.order_names,
    order_names: FIXED.order_names,
    reads_pass: FIXED.reads_pass,
    constants: point.constants,
    gradient: (state, out) => kernels.gradient(state, data, out),
    order_parameters: (state, rate, out) => kernels.order_parameters(state, rate, data, out),
    observables(state, out) {
      kernels.gradient(state, data, slope);
      kernels.order_parameters(state, slope, data, out);
      if (FIXED.risk) {
        kernels.summary(state, data, risk);
        out[width] = risk[0];
      }
    },
    matrix() {
      throw new Error("there is no matrix");
    },
  };
  const of = problem.size;
  if (kernels.hessian) problem.jacobian = (state, out) => kernels.hessian(state, data, { data: out, shape: [of, of] });
  return problem;
}

const MODEL = { check, make };
