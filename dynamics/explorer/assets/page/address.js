// The state of all controls in the address, so that a picture can be cited.

/**
 * @param {object} state  name -> number or word
 * @returns {string} such as "#D=16&q=0.5"
 */
function address_of(state) {
  const parts = Object.entries(state).map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(exact(value))}`);
  return `#${parts.join("&")}`;
}

/**
 * The state that an address holds.
 * @param {string} hash  @param {object} usual  name -> value where the address says nothing
 * @returns {{state: object, remarks: string[]}} remarks say what of it could not be read
 */
function state_of(hash, usual) {
  const state = { ...usual };
  const remarks = [];
  for (const part of hash.replace(/^#/, "").split("&").filter(Boolean)) {
    const [name, written = ""] = part.split("=").map(decoded);
    if (!Object.hasOwn(usual, name)) {
      remarks.push(`The address has ${name}, which is not a control of this page.`);
    } else if (typeof usual[name] === "number" && (written.trim() === "" || !Number.isFinite(Number(written)))) {
      remarks.push(`The address has ${name} = ${written || "nothing"}, which is not a number; ${exact(usual[name])} is shown.`);
    } else {
      state[name] = typeof usual[name] === "number" ? Number(written) : written;
    }
  }
  return { state, remarks };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Put a state into the address: as a new entry of the history, or in place of the present one. */
function write_address(state, fresh) {
  const hash = address_of(state);
  if (hash === window.location.hash) return;
  try {
    window.history[fresh ? "pushState" : "replaceState"](null, "", hash);
  } catch {
    window.location.replace(hash);
  }
}
