// Lines on which a field on a grid is zero, by marching squares with linear interpolation.

/** Pairs of sides of a cell that a line joins, by which of its four corners are positive. */
const CROSSINGS = [
  [], [[3, 0]], [[0, 1]], [[3, 1]], [[1, 2]], [[3, 0], [1, 2]], [[0, 2]], [[3, 2]],
  [[2, 3]], [[2, 0]], [[0, 1], [2, 3]], [[2, 1]], [[1, 3]], [[1, 0]], [[0, 3]], [],
];

/**
 * Segments of the zero line of a field.
 * @param {ArrayLike<number>} field  row-major, y outer
 * @param {number} across  @param {number} down  points of the grid along x and along y
 * @returns {Array<[[number, number], [number, number]]>} in units of cells
 */
function zero_lines(field, across, down) {
  const segments = [];
  for (let j = 0; j + 1 < down; j += 1) {
    for (let i = 0; i + 1 < across; i += 1) {
      const k = j * across + i;
      const corners = [field[k], field[k + 1], field[k + across + 1], field[k + across]];
      if (!corners.every(Number.isFinite)) continue;
      const which = corners.reduce((bits, value, bit) => bits | (value > 0 ? 1 << bit : 0), 0);
      for (const sides of saddle(which, corners)) {
        segments.push(sides.map((side) => crossing(side, corners, i, j)));
      }
    }
  }
  return segments;
}

/** The pairs of sides; of a saddle those that the mean of its corners tells apart. */
function saddle(which, corners) {
  if (which !== 5 && which !== 10) return CROSSINGS[which];
  const positive = corners[0] + corners[1] + corners[2] + corners[3] > 0;
  return positive ? CROSSINGS[15 - which] : CROSSINGS[which];
}

/** Where the line crosses a side: 0 below, 1 on the right, 2 above, 3 on the left. */
function crossing(side, [a, b, c, d], i, j) {
  switch (side) {
    case 0: return [i + a / (a - b), j];
    case 1: return [i + 1, j + b / (b - c)];
    case 2: return [i + d / (d - c), j + 1];
    default: return [i, j + a / (a - d)];
  }
}
