// The table of events: times of the flow with their uncertainty, steps of gradient descent.

/** Fill the table; `descent` is null where none belongs to the flow that is shown. */
function fill_event_table(body, events, flow, descent) {
  const found = (run, name) => (run ? run.events.find((event) => event.name === name) : null);
  body.replaceChildren(...events.map((event) => {
    const row = make("tr", { "data-event": event.name });
    const head = make("th", { scope: "row" });
    head.append(as_element(event_mark(event)));
    if (event.mathml && !is_letter(event.mathml)) {
      const condition = formula(event.mathml, "");
      condition.classList.add("condition");
      head.append(condition);
    }
    head.append(make("span", { class: "meaning" }, event.meaning));
    row.append(head, ...flow_cells(found(flow, event.name)), ...descent_cells(found(descent, event.name), Boolean(descent)));
    return row;
  }));
}

function has_time(event) {
  return Boolean(event) && event.time !== null && Number.isFinite(event.time);
}

function flow_cells(event) {
  if (has_time(event)) {
    return [make("td", { "data-value": event.time, "data-label": "flow" }, measured(event.time, event.uncertainty))];
  }
  return [make("td", { class: "reason", "data-label": "flow" }, (event && event.reason) || "not reached")];
}

function descent_cells(event, ran) {
  if (!ran) return [make("td", { class: "reason", colspan: 2, "data-label": "descent" }, "on release")];
  if (!has_time(event)) {
    return [make("td", { class: "reason", colspan: 2, "data-label": "descent" }, (event && event.reason) || "not reached")];
  }
  return [
    make("td", { "data-value": event.step, "data-label": "step" }, String(event.step)),
    make("td", { "data-value": event.time, "data-label": "η × step" }, brief(event.time, 8)),
  ];
}
