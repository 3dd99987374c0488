// The table of events: times of the flow with their uncertainty, steps of gradient descent.

const AT_START = 1e-12;

/** Rows of the table with their heads; returns them by the name of the event. */
function build_event_table(body, events) {
  return Object.fromEntries(events.map((event) => {
    const row = make("tr", { "data-event": event.name });
    const head = make("th", { scope: "row" });
    head.append(as_element(event_mark(event)));
    if (event.condition || (event.mathml && !is_letter(event.mathml))) {
      const condition = formula(event.condition || event.mathml, "");
      condition.classList.add("condition");
      head.append(condition);
    }
    head.append(make("span", { class: "meaning" }, event.meaning));
    row.append(head);
    body.append(row);
    return [event.name, row];
  }));
}

/** Fill the rows; `flow` is null where there is none, `descent` where none belongs to the flow. */
function fill_event_table(rows, flow, descent) {
  for (const [kind, run] of [["flow", flow], ["descent", descent]]) {
    const head = document.querySelector(`#events thead [data-run="${kind}"]`);
    if (head) head.textContent = `${kind === "flow" ? "time" : "step"}, ${labelled(kind, run)}`;
  }
  const found = (run, name) => (run ? run.events.find((event) => event.name === name) : null);
  for (const [name, row] of Object.entries(rows)) {
    const cells = flow ? flow_cells(found(flow, name), labelled("flow", flow))
      : [make("td", { class: "reason", "data-label": "flow" }, "no flow")];
    row.replaceChildren(row.firstChild, ...cells,
      ...descent_cells(found(descent, name), descent));
  }
}

/** A kind of run with the time to which it went: events of the whole run depend on it. */
function labelled(kind, run) {
  return run ? `${kind} to time ${brief(run.times[run.times.length - 1])}` : kind;
}

function has_time(event) {
  return Boolean(event) && event.time !== null && Number.isFinite(event.time);
}

function flow_cells(event, label) {
  if (has_time(event)) {
    return [make("td", { "data-value": event.time, "data-label": label },
      event.time < AT_START ? "at the start" : measured(event.time, event.uncertainty))];
  }
  return [make("td", { class: "reason", "data-label": label }, (event && event.reason) || "not reached")];
}

function descent_cells(event, run) {
  if (!run) return [make("td", { class: "reason", colspan: 2, "data-label": "descent" }, "on release")];
  if (!has_time(event)) {
    return [make("td", { class: "reason", colspan: 2, "data-label": labelled("descent", run) }, (event && event.reason) || "not reached")];
  }
  return [
    make("td", { "data-value": event.step, "data-label": labelled("step", run) }, String(event.step)),
    make("td", { "data-value": event.time, "data-label": "η × step" }, brief(event.time, 8)),
  ];
}
