// Files that a reader takes away: curves as a table, charts as vectors.

/** Hand a text to the reader as a file. */
function download(name, text, type) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = make("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  window.setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/**
 * Records of a run as a table with a line of names first; times are eta times steps.
 * @param {{times: ArrayLike, steps?: ArrayLike, states: object, observables: object}} run
 */
function as_csv(run) {
  const columns = { time: run.times, ...(run.steps ? { step: run.steps } : {}), ...run.states, ...run.observables };
  const names = Object.keys(columns);
  const lines = Array.from(run.times, (_, k) => names.map((name) => columns[name][k]).join(","));
  return `${[names.join(","), ...lines].join("\n")}\n`;
}

/** The command that trains the same on one's own machine. */
function command_line(prefix, constants, run) {
  const flags = Object.entries(constants).map(([name, value]) => `--${name} ${quoted(exact(value))}`);
  return [prefix, ...flags, ...Object.entries(run).map(([name, value]) => `--${name} ${exact(value)}`)].join(" ");
}

/** A word of the command line. */
function quoted(text) {
  return /^[\w.+-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`;
}
