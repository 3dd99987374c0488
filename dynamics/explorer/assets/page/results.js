// The results on the page: charts, matrices and the phase plane of the runs, at a time.

const PLANE_POINTS = { moving: 21, still: 41 };
const SLOW = 12;
const MEANING = 45;

/** The cards of the description, and the runs that they show. */
class Results {
  /** @param {object} description  @param {Requests} requests  @param {Element} place */
  constructor(description, requests, place) {
    this.description = description;
    this.letters = {};
    for (const each of [...description.states, ...description.observables]) {
      this.letters[each.name] = letters(each.mathml, each.name);
    }
    this.marks = Object.fromEntries(description.events.map((event) => [event.name, event_mark(event)]));
    this.flow = null;
    this.descent = null;
    this.ghost = null;
    this.start = null;
    this.view = { time: null, linear: false, horizon: description.run.horizon,
      least_time: description.run.least_time };
    this.figures = description.panels.map((panel) => this.time_figure(panel));
    this.matrices = description.matrices.map((matrix) => new MatrixCard(matrix, requests, this.letters));
    this.plane = description.plane && description.states.length > 1
      ? new PlaneCard(description, requests, this.letters) : null;
    place.append(...this.figures.map(({ element }) => element), ...this.matrices.map(({ figure }) => figure.element));
    if (this.plane) place.append(this.plane.figure.element);
  }

  time_figure(panel) {
    const draw = (surface, width, height, colours) => {
      if (this.flow) draw_time_chart(surface, width, height, colours, this.chart(panel));
    };
    const figure = new Figure(panel.names.join("-"), this.title(panel).textContent, draw,
      (width) => Math.min(Math.max(0.62 * width, 270), 330) + (this.flow ? legend_height(this.chart(panel), width) : 22),
      this.title(panel));
    figure.panel = panel;
    figure.canvas.addEventListener("pointermove", (event) => this.point_at(figure, event));
    figure.canvas.addEventListener("pointerdown", (event) => this.point_at(figure, event));
    return figure;
  }

  /** The title of a panel: letters, with their meaning where it is one that is short. */
  title({ names, title }) {
    if (title && title !== names.join(", ")) return make("span", {}, title);
    const known = [...this.description.states, ...this.description.observables];
    const meanings = names.map((name) => (known.find((each) => each.name === name) || {}).meaning || "");
    const runs = names.flatMap((name, k) => [...(k ? as_runs(", ") : []), ...(this.letters[name] || as_runs(name))]);
    const heading = as_element(runs);
    if (names.length === 1 && meanings[0] && meanings[0].length <= MEANING) heading.append(`: ${meanings[0]}`);
    return heading;
  }

  /** The time below the pointer becomes the time of the page. */
  point_at(figure, event) {
    if (!this.flow) return;
    const axis = time_scale(this.chart(figure.panel), figure.canvas.clientWidth);
    const time = axis.value(event.offsetX);
    if (time >= axis.from && time <= axis.to && this.choose_time) this.choose_time(time);
  }

  /** What the chart of a panel shows now. */
  chart(panel) {
    return {
      curves: panel.names.map((name) => ({ name, letter: this.letters[name] || as_runs(name) })),
      logarithmic: panel.logarithmic,
      linear_time: this.view.linear,
      range: [this.view.least_time, this.view.horizon],
      flow: this.flow,
      flows: this.description.run.horizon !== null,
      descent: this.description.run.horizon === null ? null : this.descent,
      ghost: this.ghost,
      events: this.events().map((event) => ({ letter: this.marks[event.name], time: event.time })),
      cursor: this.view.time,
    };
  }

  /** Events that the flow reached. */
  events() {
    return this.flow.events.filter((event) => has_time(event) && event.name in this.marks);
  }

  /** Show runs; `moving` while a control is being dragged. */
  show(flow, descent, constants, moving) {
    Object.assign(this, { flow, descent, constants });
    this.show_time(this.view.time, moving);
  }

  /** Show the runs at a time. */
  show_time(time, moving = false) {
    this.view.time = time;
    if (!this.flow) return;
    for (const figure of this.figures) {
      figure.redraw();
      figure.describe(this.words(figure.panel));
    }
    const state = this.state_at(time);
    if (!state) return;
    for (const matrix of this.matrices) matrix.show(this.constants, state);
    if (this.plane) this.plane.show(this, state, moving);
  }

  /** All scalars at a time; null where the flow has no such time. */
  state_at(time) {
    const state = {};
    for (const { name } of this.description.states) {
      state[name] = value_at(this.flow.times, this.flow.states[name], time);
      if (!Number.isFinite(state[name])) return null;
    }
    return state;
  }

  words(panel) {
    const names = panel.names.map((name) => spoken(this.letters[name] || as_runs(name))).join(", ");
    const events = this.events().map(({ name, time }) => `${spoken(this.marks[name])} at ${brief(time)}`);
    return `${names} against time up to ${brief(this.view.horizon)}; events: ${events.join(", ") || "none"}`;
  }

  redraw() {
    for (const figure of this.figures) figure.redraw();
    for (const matrix of this.matrices) matrix.figure.redraw();
    if (this.plane) this.plane.figure.redraw();
  }
}

/** The card of a matrix, with the values of its classes. */
class MatrixCard {
  constructor(matrix, requests, letter) {
    this.letters = letter;
    this.name = matrix.name;
    this.classes = matrix.classes;
    this.channel = new Newest(requests);
    this.figure = new Figure(matrix.name, matrix.title, (surface, width, height, colours) => {
      if (this.matrix) draw_matrix(surface, width, height, colours, this.matrix);
    }, (width) => (this.matrix ? matrix_height(this.matrix, width) : 200));
    this.list = make("ul", { class: "classes" });
    this.figure.element.append(make("p", { class: "meaning" }, matrix.meaning), this.list);
  }

  show(constants, state) {
    this.channel.ask({ kind: "matrix", constants, name: this.name, state }, (reply) => {
      if (reply.error) return;
      this.matrix = reply;
      this.figure.redraw();
      const values = class_values(reply, this.classes);
      this.list.replaceChildren(...values.map(({ label, value, number, colour }) => {
        const item = make("li");
        const swatch = make("span", { class: "swatch" });
        swatch.style.background = colour;
        item.append(swatch, `${label}: `);
        if (value) item.append(as_element(this.letters[value] || as_runs(value)), " = ");
        item.append(brief(number));
        return item;
      }));
      this.figure.describe(`${this.figure.title}, ${reply.rows} × ${reply.columns}: ` +
        values.map(({ label, number }) => `${label} ${brief(number)}`).join(", "));
    });
  }
}

/** The card of the phase plane, with the choice of its axes. */
class PlaneCard {
  constructor(description, requests, letter) {
    this.letters = letter;
    this.channel = new Newest(requests);
    this.slow = false;
    this.figure = new Figure("phase_plane", "phase plane", (surface, width, height, colours) => {
      if (this.plane) draw_phase_plane(surface, width, height, colours, this.plane);
    }, (width) => Math.min(Math.max(0.75 * width, 260), 420));
    const axes = make("p", { class: "row axes" });
    this.axes = {};
    for (const axis of ["x", "y"]) {
      const choice = make("select", { id: `axis-${axis}` });
      for (const { name } of description.states) choice.append(make("option", { value: name },
        letter[name].some(({ level }) => level) ? name : spoken(letter[name])));
      choice.value = description.plane[axis];
      const label = make("label", { for: `axis-${axis}` }, axis === "x" ? "across" : "up");
      axes.append(label, choice);
      this.axes[axis] = choice;
    }
    this.caption = make("p", { class: "meaning" });
    this.origin = make("p", { class: "row origin" });
    this.figure.element.append(axes, this.origin, this.caption);
    this.figure.canvas.classList.add("target");
    this.figure.canvas.addEventListener("click", (event) => this.start_at(event.offsetX, event.offsetY));
  }

  /** Start the run at a point of the canvas, the other scalars as they are now. */
  start_at(across, down) {
    const { plane, state, figure: { canvas } } = this;
    if (!plane || plane.x.name === plane.y.name) return;
    const { area, x, y } = plane_place(BLANK, canvas.clientWidth, canvas.clientHeight, LIGHT, plane);
    if (across < area.left || across > area.right || down < area.top || down > area.bottom) return;
    const short = (axis, pixel) => Number(axis.value(pixel).toPrecision(4));
    this.choose_start({ ...state, [plane.x.name]: short(x, across), [plane.y.name]: short(y, down) });
  }

  /** Say where the run starts, if not where the model does, with a button that goes back there. */
  show_origin(start) {
    this.origin.replaceChildren();
    if (!start) return;
    const button = make("button", { type: "button" }, "usual start");
    button.addEventListener("click", () => this.choose_start(null));
    const parts = Object.entries(start).flatMap(([name, value], k) =>
      [...as_runs(k ? ", " : "from "), ...this.letters[name], ...as_runs(` = ${brief(value)}`)]);
    this.origin.append(as_element(parts), button);
  }

  /** Show the plane of the other scalars at this state. */
  show(results, state, moving) {
    this.state = state;
    this.show_origin(results.start);
    if (!results.start) this.usual_run = results.flow.states;
    const seen = (name) => [...results.flow.states[name], ...(this.usual_run ? this.usual_run[name] : [])];
    const count = moving ? PLANE_POINTS.moving : PLANE_POINTS.still;
    const names = { x: this.axes.x.value, y: this.axes.y.value };
    const axis = (which) => ({ name: names[which], letter: this.letters[names[which]], count,
      ...plane_range(seen(names[which])) });
    const [x, y] = [axis("x"), axis("y")];
    const plane = {
      x, y, dx: null, dy: null,
      run: { x: results.flow.states[x.name], y: results.flow.states[y.name] },
      events: results.events().filter((event) => event.state).map((event) =>
        ({ letter: results.marks[event.name], x: event.state[x.name], y: event.state[y.name] })),
      point: [state[x.name], state[y.name]],
    };
    this.describe(Object.keys(state).length, plane);
    if (x.name === y.name || (moving && this.slow)) {
      this.plane = plane;
      this.figure.redraw();
      return;
    }
    const range = ({ name, from, to }) => ({ name, from, to, count });
    const request = { kind: "plane", constants: results.constants, x: range(x), y: range(y), state };
    this.channel.ask(request, (reply) => {
      this.slow = reply.milliseconds > SLOW && moving;
      this.plane = reply.error ? plane : { ...plane, dx: reply.dx, dy: reply.dy };
      this.figure.redraw();
    });
  }

  describe(scalars, plane) {
    const others = scalars > 2 ? "; the other scalars are as at the chosen time" : "";
    this.caption.textContent = plane.x.name === plane.y.name
      ? "Choose two different scalars."
      : `Arrows: direction of the flow; lines: nullclines, the run, and where it is${others}. Click to start there.`;
    this.figure.describe(`Phase plane of ${spoken(plane.x.letter)} and ${spoken(plane.y.letter)}; now at ` +
      plane.point.map((value) => brief(value)).join(", "));
  }
}
