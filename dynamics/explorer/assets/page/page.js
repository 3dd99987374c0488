// The page: its controls, its clock, its results and its address, put together.

const description = JSON.parse(document.getElementById("description").textContent);
const at = (id) => document.getElementById(id);
const TICKS = 1000;
const PAUSE = 150;

/** The controls of the run, beside those of the constants. */
function run_controls({ eta, steps, horizon, least_time }) {
  const real = { kind: "real", logarithmic: true, ends: "" };
  return [
    { ...real, name: "eta", mathml: "<math><mi>η</mi></math>", meaning: "step size of gradient descent",
      default: eta, minimum: eta / 1000, maximum: eta * 1000 },
    { ...real, name: "steps", kind: "whole", mathml: "", meaning: "steps of gradient descent",
      default: steps, minimum: 1, maximum: Math.max(steps * 100, 1000) },
    { ...real, name: "time", mathml: "<math><mi>τ</mi></math>", meaning: "time of the flow",
      default: horizon, minimum: least_time * 10, maximum: horizon * 1e4 },
  ].filter(({ name }) => name !== "time" || horizon !== null); // a loss with kinks has no flow
}

const runs = run_controls(description.run);
const controls = {};
const usual = { "view.linear": 0, "view.time": description.run.horizon ?? description.run.eta * description.run.steps };
const flows = description.run.horizon !== null;
const event_rows = build_event_table(at("events").querySelector("tbody"), description.events);
if (!description.events.length) at("events").replaceChildren(make("p", { class: "meaning" }, "No events are declared."));
const value_places = build_values();
let last_moved = null;
let settled = null;
let rested = null;
let start = null; // state by name; null for that of the model
let frames = 0;
let descent_after = null;

function build_controls() {
  for (const [place, list] of [["constants", description.constants], ["run", runs]]) {
    for (const constant of list) {
      controls[constant.name] = new Control(constant, moved);
      usual[constant.name] = constant.default;
      at(place).append(controls[constant.name].element);
    }
  }
  if (results.plane) {
    usual.start = "";
    results.plane.choose_start = begin;
    for (const axis of ["x", "y"]) {
      usual[`view.${axis}`] = description.plane[axis];
      results.plane.axes[axis].addEventListener("change", () => {
        results.show_time(results.view.time);
        write_address(state_now(), true);
      });
    }
  }
}

const requests = new Requests(started_worker(), alert_line);
const results = new Results(description, requests, at("figures"));
const training = new Training(requests, description.run.least_time, flows, {
  refused: show_refusal, flow: show_flow, descent: show_descent, progress: show_progress, failed: show_failure,
  no_descent: show_no_descent,
});

/** Values of the constants as the controls have them. */
function constants_now() {
  return Object.fromEntries(description.constants.map(({ name }) => [name, controls[name].value]));
}

/** All that the address holds. */
function state_now() {
  const axes = results.plane ? { "view.x": results.plane.axes.x.value, "view.y": results.plane.axes.y.value } : {};
  const run = Object.fromEntries(runs.map(({ name }) => [name, controls[name].value]));
  const time = results.view.time === null ? usual["view.time"] : Number(results.view.time.toPrecision(6));
  return { ...constants_now(), ...run, "view.time": time, "view.linear": Number(at("linear").checked), ...axes,
    ...(start ? { start: Object.values(start).map(exact).join(",") } : {}) };
}

/** Start at a state; at that of the model where it is null. */
function begin(state) {
  start = state;
  moved(null, true);
}

/** The state that the address names; null where it names none. */
function start_of(text, remarks) {
  const values = text.split(",").map((part) => (part.trim() ? Number(part) : NaN));
  if (values.length === description.states.length && values.every(Number.isFinite)) {
    return Object.fromEntries(description.states.map(({ name }, k) => [name, values[k]]));
  }
  if (text) remarks.push(`The address has start = ${text}, which is not ${description.states.length} numbers; the usual start is shown.`);
  return null;
}

/** What divides another constant is offered as its divisors. */
function follow() {
  for (const { name, divides, divisors } of description.constants) {
    const values = divides && divisors[controls[divides].value];
    if (values) controls[name].offer(values, `which divides ${divides} = ${controls[divides].value}`);
  }
}

/** A control moved; gradient descent follows once it is let go. */
function moved(name, done) {
  last_moved = name;
  follow();
  train(done);
  window.clearTimeout(descent_after);
  if (done) descent_after = window.setTimeout(() => { train(true, true); }, PAUSE);
}

/** Put the controls on settings, and those without one on their defaults. */
function choose(settings) {
  for (const [name, control] of Object.entries(controls)) control.show(settings[name] ?? control.constant.default);
  begin(null);
}

/** A button for each of the settings that have a name. */
function build_presets() {
  for (const [name, settings] of Object.entries(description.presets)) {
    const button = make("button", { type: "button" }, name);
    button.addEventListener("click", () => choose(settings));
    at("presets").append(button);
  }
}

/** Whether the numbers of the run can be used; a message stands beside one that cannot. */
function run_is_valid() {
  return runs.map((constant) => {
    const control = controls[constant.name];
    const fits = control.value > 0 && Number.isFinite(control.value) &&
      (constant.kind !== "whole" || Number.isInteger(control.value));
    const allowed = constant.kind === "whole" ? "a whole number from 1 on" : "a number above 0";
    const nearest = control.value > 0 && Number.isFinite(control.value) ? Math.max(1, Math.round(control.value)) : constant.default;
    control.refuse(fits ? "" : `${constant.name} must be ${allowed}.`, `${constant.name} = ${exact(nearest)}`, () => {
      control.show(nearest);
      moved(constant.name, true);
    });
    return fits;
  }).every(Boolean);
}

/** Train with the controls as they are; with descent only where they rest. */
function train(done, rest = false) {
  for (const { name } of description.constants) controls[name].refuse("");
  const unread = description.constants.find(({ name }) => Number.isNaN(controls[name].value));
  if (unread) {
    controls[unread.name].refuse(`${unread.name} must be a number.`, `${unread.name} = ${exact(unread.default)}`, () => {
      controls[unread.name].show(unread.default);
      moved(unread.name, true);
    });
  }
  if (!run_is_valid() || unread) {
    training.stop();
    at("results").classList.add("stale");
    return;
  }
  at("events").setAttribute("aria-busy", String(!rest));
  at("progress").hidden = true;
  const { eta, steps, time } = Object.fromEntries(runs.map(({ name }) => [name, controls[name].value]));
  const horizon = flows ? time : eta * steps;
  training.train({ constants: constants_now(), start, eta, steps, horizon }, rest);
  if (done && !rest) write_address(state_now(), true);
}

/** Say beside the control that moved why its value is refused, and offer the nearest. */
function show_refusal({ message, nearest }) {
  const control = controls[last_moved] && description.constants.some(({ name }) => name === last_moved)
    ? controls[last_moved] : controls[description.constants[0].name];
  const changes = nearest ? Object.entries(nearest).filter(([name, value]) => controls[name] && controls[name].value !== value) : [];
  control.refuse(message, changes.map(([name, value]) => `${name} = ${exact(value)}`).join(", "), () => {
    for (const [name, value] of changes) controls[name].show(value);
    moved(last_moved, true);
  });
  at("results").classList.add("stale");
  at("events").setAttribute("aria-busy", "false");
}

function show_flow(run, asked) {
  alert_line("");
  at("results").classList.remove("stale");
  settled = { flow: run, descent: null, asked };
  keep_ghost(run, asked);
  results.start = asked.start;
  results.view.horizon = asked.horizon;
  results.view.least_time = flows ? description.run.least_time : asked.eta;
  if (results.view.time === null || results.view.time > asked.horizon) results.view.time = asked.horizon;
  results.show(run, null, asked.constants, !asked.done);
  show_numbers();
  const whole = performance.now() - asked.begun;
  frames += 1;
  Object.assign(at("status").dataset, { frame: whole.toFixed(1), count: frames });
  at("status").textContent = `${flows ? "flow" : "descent"}: ${brief(run.milliseconds, 2)} ms, with its pictures ${brief(whole, 2)} ms`;
}

/** Keep the run at which the controls rested before they moved. */
function keep_ghost(run, asked) {
  const setting = JSON.stringify([asked.constants, asked.start, flows ? null : asked.eta]);
  if (rested && rested.setting !== setting) results.ghost = rested.run;
  if (asked.done) rested = { run, setting };
}

function show_descent(run, asked) {
  at("progress").hidden = true;
  settled.descent = run;
  results.show(settled.flow, run, asked.constants, false);
  show_numbers();
  at("events").setAttribute("aria-busy", "false");
  if (flows) at("status").textContent += `; descent: ${brief(run.milliseconds, 2)} ms`;
}

function show_no_descent(line) {
  at("progress").hidden = true;
  at("events").setAttribute("aria-busy", "false");
  at("outcome").textContent = `Gradient descent: ${line}`;
}

function show_progress(done, total) {
  at("progress").hidden = false;
  at("progress").max = total;
  at("progress").value = done;
}

function show_failure(line) {
  alert_line(line);
  at("results").classList.add("stale");
  at("events").setAttribute("aria-busy", "false");
}

/** One line above everything; "" takes it away. */
function alert_line(line) {
  at("alert").textContent = line;
  at("alert").hidden = !line;
}

/** Table, outcomes, commands and clock of what is shown. */
function show_numbers() {
  const { flow, descent, asked } = settled;
  fill_event_table(event_rows, flows ? flow : null, descent);
  const outcome = (name, run) => (run && run.outcome !== "horizon" && run.outcome !== "completed"
    ? `${name}: ${run.outcome}${run.message ? ` (${run.message})` : ""}. ` : "");
  at("outcome").textContent = (flows ? outcome("Flow", flow) : "") + outcome("Gradient descent", descent);
  at("command-flow").textContent = command_line(description.command, asked.constants, { time: asked.horizon });
  at("command-descent").textContent = command_line(description.command, asked.constants, { eta: asked.eta, steps: asked.steps });
  at("start-note").textContent = asked.start
    ? `The commands start where the model does; in Python, initial=[${Object.values(asked.start).map(exact).join(", ")}] starts here.` : "";
  at("csv-descent").disabled = !descent;
  at("runs-note").textContent = runs_note(flow, asked);
  show_clock();
}

/** What lines and markers are, and how exact. */
function runs_note({ tolerance }, { eta }) {
  if (!flows) return `Lines are gradient descent at the one step size η = ${exact(eta)}.`;
  const within = tolerance ? ` at relative tolerance ${brief(tolerance)}` : "";
  return `Lines are the gradient flow, integrated${within}; the event table says how far each of its times is known ` +
    `once the controls rest. Markers are gradient descent at the one step size η = ${exact(eta)}.`;
}

/** The time of the page on its slider, and the values there. */
function show_clock() {
  const time = results.view.time;
  const axis = clock_axis();
  at("time").value = Math.round(axis.at(time));
  at("moment").textContent = brief(time);
  at("time").setAttribute("aria-valuetext", `time ${brief(time)}`);
  for (const [name, place] of Object.entries(value_places)) {
    const series = results.flow.series[name];
    place.textContent = ` = ${series ? brief(value_at(results.flow.times, series, time)) : "none"}`;
  }
}

/** Letters of all scalars and observables with places for their values; the places by name. */
function build_values() {
  return Object.fromEntries([...description.states, ...description.observables].map((each) => {
    const [item, place] = [make("span"), make("span")];
    item.append(formula(each.mathml, each.name), place);
    at("values").append(item);
    return [each.name, place];
  }));
}

function clock_axis() {
  const linear = results.view.linear;
  return scale(linear ? 0 : results.view.least_time, results.view.horizon, 0, TICKS, !linear);
}

function choose_time(time) {
  results.show_time(time, false);
  show_clock();
}

/** Let the time run from the first record to the last; in few steps where motion is unwelcome. */
function play() {
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  const [stride, wait] = calm ? [TICKS / 10, 1000] : [4, 30];
  at("play").setAttribute("aria-pressed", "true");
  at("play").textContent = "pause";
  let place = Number(at("time").value) >= TICKS ? 0 : Number(at("time").value);
  playing = window.setInterval(() => {
    place = Math.min(place + stride, TICKS);
    choose_time(clock_axis().value(place));
    if (place >= TICKS) pause();
  }, wait);
}

let playing = null;

function pause() {
  window.clearInterval(playing);
  playing = null;
  at("play").setAttribute("aria-pressed", "false");
  at("play").textContent = "play";
  write_address(state_now(), false);
}

/** Show what the address says. */
function restore() {
  const { state, remarks } = state_of(window.location.hash, usual);
  for (const [name, control] of Object.entries(controls)) {
    const { values, kind, default: standard } = control.constant;
    if (kind === "word" && !(values || [standard]).includes(state[name])) {
      remarks.push(`The address has ${name} = ${state[name]}, which is none of ${(values || [standard]).join(", ")}; ${standard} is shown.`);
      state[name] = standard;
    }
    control.show(state[name]);
  }
  at("linear").checked = state["view.linear"] !== 0;
  results.view.linear = state["view.linear"] !== 0;
  results.view.time = state["view.time"] > 0 ? state["view.time"] : null;
  if (results.plane) {
    start = start_of(state.start, remarks);
    for (const axis of ["x", "y"]) {
      const choice = results.plane.axes[axis];
      const [named, standard] = [state[`view.${axis}`], usual[`view.${axis}`]];
      choice.value = named;
      if (!choice.value) {
        choice.value = standard;
        remarks.push(`The address has view.${axis} = ${named}, which is not a scalar; ${standard} is shown.`);
      }
    }
  }
  at("remarks").textContent = remarks.join(" ");
  last_moved = null;
  follow();
  train(true, true);
}

function build_texts() {
  if (!flows) {
    for (const id of ["flow-row", "csv-flow"]) at(id).hidden = true;
  }
  at("equations").innerHTML = description.derivation;
  const named = [...description.constants, ...description.states, ...description.observables, ...description.events];
  for (const each of named) {
    const term = make("dt");
    term.append(formula(each.mathml, each.name));
    at("symbols").append(term, make("dd", {}, each.meaning));
  }
}

function copy(button) {
  const what = button.dataset.copy;
  if (what === "address") write_address(state_now(), false);
  const text = what === "address" ? window.location.href : at(what).textContent;
  const before = button.textContent;
  navigator.clipboard.writeText(text).then(() => "copied", () => "press Ctrl+C").then((word) => {
    if (word !== "copied" && what !== "address") window.getSelection().selectAllChildren(at(what));
    button.textContent = word;
    window.setTimeout(() => { button.textContent = before; }, 1500);
  });
}

function listen() {
  results.choose_time = choose_time;
  at("time").addEventListener("input", () => choose_time(clock_axis().value(Number(at("time").value))));
  at("time").addEventListener("change", () => write_address(state_now(), false));
  at("linear").addEventListener("change", () => {
    results.view.linear = at("linear").checked;
    results.redraw();
    show_clock();
    write_address(state_now(), true);
  });
  at("play").addEventListener("click", () => (playing === null ? play() : pause()));
  at("fold").addEventListener("click", () => {
    const folded = at("controls").classList.toggle("folded");
    at("fold").setAttribute("aria-expanded", String(!folded));
    at("fold").textContent = folded ? "show sliders" : "hide sliders";
  });
  at("reset").addEventListener("click", () => choose({}));
  const save = (name, run) => download(`${description.name}_${name}.csv`, as_csv(run), "text/csv");
  at("csv-flow").addEventListener("click", () => settled && save("flow", settled.flow));
  at("csv-descent").addEventListener("click", () => settled && settled.descent && save("descent", settled.descent));
  for (const button of document.querySelectorAll("[data-copy]")) button.addEventListener("click", () => copy(button));
  window.addEventListener("popstate", restore);
  night.addEventListener("change", () => results.redraw());
  print.addEventListener("change", () => results.redraw());
}

build_controls();
build_presets();
build_texts();
listen();
restore();
