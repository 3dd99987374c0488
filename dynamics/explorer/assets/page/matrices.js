// A matrix whose entries are equal within classes: cells coloured by value, and a bar with numbers.

const BAR = { width: 14, gap: 16, steps: 64 };
const MOST_CELL = 40; // side of a cell, so that a single number does not fill the card

/**
 * @typedef {object} Matrix
 * @property {number} rows  @property {number} columns
 * @property {ArrayLike<number>} labels  class of each entry, row-major; -1 is 0 for good
 * @property {ArrayLike<number>} values  one for each class
 */

/** Side of a cell of a matrix in a frame. */
function cell_side(matrix, width, height) {
  return Math.min(MOST_CELL, width / matrix.columns, height / matrix.rows);
}

/** Height that a matrix takes on some width. */
function matrix_height(matrix, width) {
  const side = Math.min(width - 96, 360);
  return 28 + Math.max(60, cell_side(matrix, side, side) * matrix.rows);
}

/** Draw a matrix with its colour bar. */
function draw_matrix(surface, width, height, colours, matrix) {
  const values = Array.from(matrix.values);
  const map = colour_map(Math.min(...values, Infinity), Math.max(...values, -Infinity));
  const cell = cell_side(matrix, width - 96, height - 24);
  const [left, top] = [10, 12];
  const gap = cell > 6 ? 1 : 0;
  for (let i = 0; i < matrix.rows; i += 1) {
    for (let j = 0; j < matrix.columns;) {
      const label = matrix.labels[i * matrix.columns + j];
      let end = j + 1;
      while (!gap && end < matrix.columns && matrix.labels[i * matrix.columns + end] === label) end += 1;
      const fill = map.colour(label < 0 ? 0 : values[label]);
      surface.rectangle(left + j * cell, top + i * cell, (end - j) * cell - gap, cell - gap, fill);
      j = end;
    }
  }
  surface.line([[left - 1, top - 1], [left + matrix.columns * cell, top - 1],
    [left + matrix.columns * cell, top + matrix.rows * cell], [left - 1, top + matrix.rows * cell], [left - 1, top - 1]],
  { colour: colours.muted });
  draw_bar(surface, left + matrix.columns * cell + BAR.gap, top, Math.max(matrix.rows * cell, 60), map, colours);
}

function draw_bar(surface, left, top, height, map, colours) {
  for (let k = 0; k < BAR.steps; k += 1) {
    const value = map.to - ((map.to - map.from) * (k + 0.5)) / BAR.steps;
    const [from, to] = [Math.floor((k * height) / BAR.steps), Math.floor(((k + 1) * height) / BAR.steps)];
    surface.rectangle(left, top + from, BAR.width, to - from, map.colour(value));
  }
  const y = scale(map.from, map.to, top + height, top, false);
  for (const { value, label } of y.ticks(34)) {
    surface.line([[left + BAR.width, y.at(value)], [left + BAR.width + 4, y.at(value)]], { colour: colours.muted });
    surface.text(left + BAR.width + 7, y.at(value) + 4, label, { colour: colours.muted, size: 11 });
  }
}

/** Colours of classes as small squares of a page: [{label, value, colour}]. */
function class_values(matrix, classes) {
  const values = Array.from(matrix.values);
  const map = colour_map(Math.min(...values, Infinity), Math.max(...values, -Infinity));
  return values.map((value, k) => ({ ...(classes[k] || { label: `class ${k + 1}` }), number: value, colour: map.colour(value) }));
}
