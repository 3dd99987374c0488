// The phase plane of two scalars: directions of the flow, nullclines, the run, the moving point.

const ARROWS = 13;

/**
 * @typedef {object} Plane
 * @property {{name: string, letter: Array, from: number, to: number, count: number}} x
 * @property {{name: string, letter: Array, from: number, to: number, count: number}} y
 * @property {ArrayLike|null} dx  @property {ArrayLike|null} dy  row-major, y outer
 * @property {{x: ArrayLike, y: ArrayLike}} run
 * @property {Array<{letter: Array, x: number, y: number}>} events
 * @property {[number, number]|null} point
 */

/** Limits of the axes of the plane: the run, with a margin. */
function plane_range(values) {
  const [low, high] = limits([values], false) || [-1, 1];
  const margin = 0.12 * (high - low);
  return { from: low - margin, to: high + margin };
}

/** The part of a surface that the plane is drawn in, below its legend, and the scales of its axes. */
function plane_place(surface, width, height, colours, plane) {
  const legend = draw_legend(surface, plane_legend(plane, colours), width, colours);
  const area = plot_area(width, height, legend + 16);
  const x = scale(plane.x.from, plane.x.to, area.left, area.right, false);
  const y = scale(plane.y.from, plane.y.to, area.bottom, area.top, false);
  return { area, x, y };
}

/** Draw the plane. */
function draw_phase_plane(surface, width, height, colours, plane) {
  const { area, x, y } = plane_place(surface, width, height, colours, plane);
  surface.clip(area.left, area.top, area.width, area.height, () => {
    if (plane.dx) {
      draw_arrows(surface, plane, x, y, colours);
      draw_nullcline(surface, plane, plane.dx, x, y, nullcline_style(colours, 0));
      draw_nullcline(surface, plane, plane.dy, x, y, nullcline_style(colours, 1));
    }
    const path = Array.from(plane.run.x, (value, k) => [x.at(value), y.at(plane.run.y[k])])
      .filter(([a, b]) => Number.isFinite(a) && Number.isFinite(b));
    surface.line(path, { colour: colours.ink, width: 2.2 });
  });
  draw_axes(surface, area, x, y, colours, plane.x.letter);
  surface.text(area.left - 6, area.top - 6, plane.y.letter, { colour: colours.ink, align: "right" });
  draw_plane_events(surface, area, plane, x, y, colours);
  if (plane.point && plane.point.every(Number.isFinite)) {
    surface.marker("circle", x.at(plane.point[0]), y.at(plane.point[1]), 6,
      { colour: colours.paper, fill: colours.curves[1] });
  }
}

function nullcline_style(colours, k) {
  return { colour: colours.curves[k ? 2 : 0], dash: k ? [7, 3] : [], width: 1.8, marker: "circle" };
}

function plane_legend(plane, colours) {
  const zero = (letter, field) => [...as_runs("d"), ...letter, ...as_runs("/dτ = 0"),
    ...as_runs(field && !changes_sign(field) ? " (not in this window)" : "")];
  return [
    { label: zero(plane.x.letter, plane.dx), look: 0, style: nullcline_style(colours, 0) },
    { label: zero(plane.y.letter, plane.dy), look: 0, style: nullcline_style(colours, 1) },
    { label: as_runs("run"), look: 0, style: { colour: colours.ink, dash: [] } },
    { label: as_runs("now"), look: 0, marked: true, only_marker: true, fill: colours.curves[1],
      style: { colour: colours.paper, dash: [], marker: "circle" } },
  ];
}

function changes_sign(field) {
  return field.some((value) => value > 0) && field.some((value) => value <= 0);
}

/** Directions as arrows of one length. */
function draw_arrows(surface, plane, x, y, colours) {
  const stride = Math.max(1, Math.round((plane.x.count - 1) / (ARROWS - 1)));
  const length = 0.36 * Math.abs(x.at(x.to) - x.at(x.from)) / ARROWS;
  const [unit_x, unit_y] = [x.at(1) - x.at(0), y.at(1) - y.at(0)];
  for (let j = Math.floor(stride / 2); j < plane.y.count; j += stride) {
    for (let i = Math.floor(stride / 2); i < plane.x.count; i += stride) {
      const k = j * plane.x.count + i;
      const [a, b] = [plane.dx[k] * unit_x, plane.dy[k] * unit_y];
      const size = Math.hypot(a, b);
      if (!(size > 0) || !Number.isFinite(size)) continue;
      const middle = grid_point(plane, [i, j], x, y);
      draw_arrow(surface, middle, [(a / size) * length, (b / size) * length], colours.muted);
    }
  }
}

function draw_arrow(surface, [x, y], [a, b], colour) {
  const tip = [x + a, y + b];
  const barb = (side) => [tip[0] - 0.55 * a - side * 0.4 * b, tip[1] - 0.55 * b + side * 0.4 * a];
  surface.line([[x - a, y - b], tip], { colour });
  surface.line([barb(1), tip, barb(-1)], { colour });
}

/** Pixels of a point of the grid, in units of cells. */
function grid_point(plane, [i, j], x, y) {
  const value = (axis, k) => axis.from + ((axis.to - axis.from) * k) / (axis.count - 1);
  return [x.at(value(plane.x, i)), y.at(value(plane.y, j))];
}

function draw_nullcline(surface, plane, field, x, y, style) {
  for (const path of joined(zero_lines(field, plane.x.count, plane.y.count))) {
    surface.line(path.map((point) => grid_point(plane, point, x, y)), style);
  }
}

/** Segments joined to paths, so that dashes run along them. */
function joined(segments) {
  const key = ([a, b]) => `${a.toFixed(6)},${b.toFixed(6)}`;
  const ends = new Map();
  for (const segment of segments) {
    for (const end of segment.map(key)) ends.set(end, [...(ends.get(end) || []), segment]);
  }
  const used = new Set();
  const walk = (path) => {
    for (;;) {
      const next = (ends.get(key(path[path.length - 1])) || []).find((segment) => !used.has(segment));
      if (!next) return path;
      used.add(next);
      path.push(key(next[0]) === key(path[path.length - 1]) ? next[1] : next[0]);
    }
  };
  const paths = [];
  for (const segment of segments) {
    if (used.has(segment)) continue;
    used.add(segment);
    const forth = walk([...segment]);
    paths.push(walk(forth.reverse()));
  }
  return paths;
}

/** Events on the run as hollow points with their letters. */
function draw_plane_events(surface, area, plane, x, y, colours) {
  const boxes = [];
  for (const event of plane.events) {
    const [a, b] = [x.at(event.x), y.at(event.y)];
    if (!(a >= area.left && a <= area.right && b >= area.top && b <= area.bottom)) continue;
    surface.marker("diamond", a, b, 4.5, { colour: colours.ink, fill: colours.marker });
    const width = text_width(event.letter, 12);
    const spots = [[9, 4], [-9 - width, 4], [-width / 2, -9], [-width / 2, 19], [9, -12], [9, 20], [-9 - width, -12],
      [-9 - width, 20]];
    const free = spots.map(([right, down]) => [a + right, b + down]).find(([left, base]) =>
      left > area.left && left + width < area.right && base - 12 > area.top && base < area.bottom &&
      boxes.every((box) => left > box[2] || left + width < box[0] || base - 12 > box[3] || base < box[1]));
    if (!free) continue;
    boxes.push([free[0], free[1] - 12, free[0] + width, free[1]]);
    surface.text(free[0], free[1], event.letter, { colour: colours.ink, halo: colours.paper });
  }
}
