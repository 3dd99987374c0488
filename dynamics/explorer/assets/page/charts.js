// Charts against time: curves of the flow, markers of descent, events as lines, phases as shades.

const MARGIN = { left: 58, right: 14, bottom: 42 };
const SPREAD_MARKERS = 26;

/**
 * What one chart shows.
 * @typedef {object} TimeChart
 * @property {Array<{name: string, letter: Array}>} curves
 * @property {boolean} logarithmic  whether the vertical axis is
 * @property {boolean} linear_time
 * @property {[number, number]} range  limits of time
 * @property {{times: ArrayLike, series: object}} flow
 * @property {boolean} flows  whether `flow` is the flow; descent, where there is none
 * @property {{times: ArrayLike, series: object}|null} descent
 * @property {{times: ArrayLike, series: object}|null} ghost  the flow before the controls moved
 * @property {Array<{letter: Array, time: number}>} events
 * @property {number|null} cursor  a time
 */

/** The part of the surface that curves are drawn in. */
function plot_area(width, height, top) {
  const right = width - MARGIN.right;
  const bottom = height - MARGIN.bottom;
  return { left: MARGIN.left, right, top, bottom, width: right - MARGIN.left, height: bottom - top };
}

/** The time scale of a chart of some width. */
function time_scale(chart, width) {
  const [from, to] = chart.range;
  return scale(chart.linear_time ? 0 : from, to, MARGIN.left, width - MARGIN.right, !chart.linear_time);
}

/** Draw a chart; everything that its legend names is above the curves, never on them. */
function draw_time_chart(surface, width, height, colours, chart) {
  const events = placed_labels(chart, width);
  const rows = events.reduce((most, event) => Math.max(most, event.row + 1), 0);
  const legend = draw_legend(surface, time_legend(chart), width, colours);
  const area = plot_area(width, height, legend + 15 * rows + 6);
  const x = time_scale(chart, width);
  const heights = (run) => chart.curves.map(({ name }) => drawn_values(run.series[name] || [], chart.logarithmic));
  const all = [chart.flow, chart.descent, chart.ghost].filter(Boolean);
  const bounds = limits(all.flatMap((run) => heights(run).map((list) => inside(list, run.times, chart.range))),
    chart.logarithmic);
  draw_shades(surface, area, x, chart, colours);
  if (!bounds) {
    draw_axes(surface, area, x, null, colours, "time τ = η × steps");
    surface.text((area.left + area.right) / 2, (area.top + area.bottom) / 2,
      "nothing positive to draw on a logarithmic axis", { colour: colours.muted, align: "center" });
    return area;
  }
  const y = scale(bounds[0], bounds[1], area.bottom, area.top, chart.logarithmic);
  draw_axes(surface, area, x, y, colours, "time τ = η × steps");
  draw_events(surface, area, events, colours, legend);
  surface.clip(area.left, area.top - 2, area.width + 5, area.height + 4, () => {
    const faint = { colour: colours.muted, width: 1 };
    if (chart.ghost) heights(chart.ghost).forEach((list) => draw_curve(surface, x, y, chart.ghost.times, list, faint));
    heights(chart.flow).forEach((list, k) => draw_curve(surface, x, y, chart.flow.times, list, look(k, colours)));
    if (chart.descent) {
      heights(chart.descent).forEach((list, k) =>
        draw_markers(surface, x, y, chart.descent.times, list, look(k, colours), colours));
    }
    if (chart.cursor !== null) draw_cursor(surface, area, x, y, chart, colours);
  });
  return area;
}

/** Values as they are drawn: of a negative one the size where the axis is logarithmic. */
function drawn_values(values, logarithmic) {
  return logarithmic ? Array.from(values, Math.abs) : values;
}

/** Values at times between two limits. */
function inside(values, times, [from, to]) {
  return Array.from(values).filter((_, k) => times[k] >= from * (1 - 1e-9) && times[k] <= to * (1 + 1e-9));
}

function time_legend(chart) {
  const entries = chart.curves.map(({ name, letter }, k) => {
    const series = chart.flow.series[name] || [];
    const sized = chart.logarithmic && Array.from(series).some((value) => value < 0);
    const bar = { text: "|", level: 0, italic: false };
    return { label: sized ? [bar, ...letter, bar] : letter, look: k, marked: chart.flows };
  });
  const kinds = chart.flows ? ["lines: flow", "markers: gradient descent"] : ["lines: gradient descent"];
  if (chart.ghost) kinds.push("thin: before");
  return [...entries, ...kinds.map((kind) => ({ label: as_runs(kind), look: null }))];
}

/**
 * A legend in rows from the left of the plot area on.
 * @returns {number} its height in pixels
 */
function draw_legend(surface, entries, width, colours) {
  let [x, y] = [MARGIN.left, 14];
  for (const entry of entries) {
    const across = (entry.look === null ? 0 : 32) + text_width(entry.label, 12);
    if (x > MARGIN.left && x + across > width - 6) [x, y] = [MARGIN.left, y + 18];
    if (entry.look !== null) {
      const style = entry.style || look(entry.look, colours);
      if (!entry.only_marker) surface.line([[x, y - 4], [x + 25, y - 4]], { ...style, width: 2 });
      if (entry.marked) surface.marker(style.marker, x + 12.5, y - 4, 3.5, { colour: style.colour, fill: entry.fill || colours.marker });
    }
    surface.text(x + (entry.look === null ? 0 : 31), y, entry.label,
      { colour: entry.look === null ? colours.muted : colours.ink });
    x += across + 14;
  }
  return entries.length ? y + 8 : 6;
}

const BLANK = { line() {}, marker() {}, text() {} };

/** Height of the legend of a chart on some width; it does not change while a control moves. */
function legend_height(chart, width) {
  return draw_legend(BLANK, time_legend({ ...chart, ghost: chart.flow }), width, LIGHT);
}

/** Labels of events with the lowest row in which they cover no other. */
function placed_labels(chart, width) {
  const x = time_scale(chart, width);
  const ends = [];
  return chart.events
    .filter(({ time }) => Number.isFinite(time) && time >= Math.min(x.from, x.to) && time <= x.to && time > 0)
    .sort((a, b) => a.time - b.time)
    .map((event) => {
      const half = text_width(event.letter, 12) / 2;
      const at = x.at(event.time);
      const middle = Math.min(Math.max(at, MARGIN.left + half), width - half - 3);
      let row = ends.findIndex((end) => end + 8 < middle - half);
      if (row < 0) row = ends.length;
      ends[row] = middle + half;
      return { ...event, at, middle, row };
    });
}

function draw_events(surface, area, events, colours, legend) {
  for (const { at, row } of events) {
    surface.line([[at, legend + 15 * row + 14], [at, area.bottom]], { colour: colours.muted, width: 1, dash: [4, 3] });
  }
  for (const { middle, row, letter } of events) {
    const half = text_width(letter, 12) / 2;
    surface.rectangle(middle - half - 2, legend + 15 * row, 2 * half + 4, 14, colours.paper);
    surface.text(middle, legend + 15 * row + 11, letter, { colour: colours.ink, align: "center" });
  }
}

/** Shade what is between one event and the next, in turn. */
function draw_shades(surface, area, x, chart, colours) {
  const times = chart.events.map(({ time }) => time).filter((time) => time > x.from && time < x.to);
  const edges = [x.from, ...times.sort((a, b) => a - b), x.to].map(x.at);
  for (let k = 0; k + 1 < edges.length; k += 1) {
    surface.rectangle(edges[k], area.top, edges[k + 1] - edges[k], area.height,
      colours.shades[k % colours.shades.length]);
  }
}

/** Axes with ticks and labels; `y` may be null. */
function draw_axes(surface, area, x, y, colours, label) {
  for (const { value, label: text } of x.ticks()) {
    const at = x.at(value);
    surface.line([[at, area.bottom], [at, area.bottom + 4]], { colour: colours.muted });
    const half = text_width(text, 11) / 2;
    surface.text(Math.min(at, area.right + MARGIN.right - half - 1), area.bottom + 16, text,
      { colour: colours.muted, size: 11, align: "center" });
  }
  for (const { value, label: text } of y ? y.ticks(24) : []) {
    const at = y.at(value);
    surface.line([[area.left - 4, at], [area.left, at]], { colour: colours.muted });
    surface.text(area.left - 7, at + 4, text, { colour: colours.muted, size: 11, align: "right" });
  }
  surface.line([[area.left, area.top], [area.left, area.bottom], [area.right, area.bottom]],
    { colour: colours.muted });
  surface.text((area.left + area.right) / 2, area.bottom + 34, label, { colour: colours.ink, align: "center" });
}

/** A curve; it is interrupted where a value has no place on its scale. */
function draw_curve(surface, x, y, times, values, style) {
  let points = [];
  const draw = () => {
    surface.line(points, { width: 2, ...style });
    points = [];
  };
  for (let k = 0; k < values.length; k += 1) {
    const [a, b] = [x.at(times[k]), y.at(values[k])];
    if (Number.isFinite(a) && Number.isFinite(b)) points.push([a, b]);
    else draw();
  }
  draw();
}

/** About as many markers as have room, evenly spread over the time axis. */
function draw_markers(surface, x, y, times, values, style, colours) {
  const gap = Math.abs(x.at(x.to) - x.at(x.from)) / SPREAD_MARKERS;
  let last = -Infinity;
  for (let k = 0; k < values.length; k += 1) {
    const [a, b] = [x.at(times[k]), y.at(values[k])];
    if (!Number.isFinite(a) || !Number.isFinite(b) || a < x.at(x.from) - 1 || a - last < gap) continue;
    surface.marker(style.marker, a, b, 3.5, { colour: style.colour, fill: colours.marker });
    last = a;
  }
}

function draw_cursor(surface, area, x, y, chart, colours) {
  const at = x.at(chart.cursor);
  if (!(at >= area.left && at <= area.right)) return;
  surface.line([[at, area.top], [at, area.bottom]], { colour: colours.ink, width: 1 });
  chart.curves.forEach(({ name }, k) => {
    const series = chart.flow.series[name];
    const value = series ? value_at(chart.flow.times, series, chart.cursor) : NaN;
    const b = y.at(chart.logarithmic ? Math.abs(value) : value);
    const { colour } = look(k, colours);
    if (Number.isFinite(b)) surface.marker("circle", at, b, 4, { colour: colours.paper, fill: colour });
  });
}

/** A record at a time, linear between records; no number outside of them. */
function value_at(times, values, time) {
  let [low, high] = [0, values.length - 1];
  if (!(time >= times[low] * (1 - 1e-9)) || !(time <= times[high] * (1 + 1e-9))) return NaN;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) low = middle;
    else high = middle;
  }
  const part = (time - times[low]) / (times[high] - times[low] || 1);
  return values[low] + (values[high] - values[low]) * Math.min(Math.max(part, 0), 1);
}
