// Constants at which a page holds data: POINTS has a point for each, ENCODED the tables of all.

const ENTRIES = { u1: Uint8Array, i2: Int16Array, i4: Int32Array, f8: Float64Array };
const TABLES = [];

/** Fill TABLES: types and lengths, and the bytes of all, deflated, as base64. */
async function decode({ arrays, data }) {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const all = await new Response(stream).arrayBuffer();
  let first = 0;
  for (const [type, length] of arrays) {
    const values = new ENTRIES[type](all.slice(first, first + length));
    TABLES.push(type === "f8" ? values : Float64Array.from(values));
    first += length;
  }
}

/** Resolves once TABLES are there. */
const READY = decode(ENCODED);

/** The point at some constants; undefined if there is none. */
function pointAt(constants) {
  return POINTS.find((point) => Object.keys(point.at).every((name) => point.at[name] === constants[name]));
}

/** How many of the values differ, and by how much in all. */
function distance(point, constants) {
  return Object.keys(point.at).reduce((sum, name) => {
    const [here, there] = [point.at[name], constants[name]];
    if (here === there) return sum;
    return sum + 1 + (typeof here === "number" ? Math.abs(here - there) / (Math.abs(here) + Math.abs(there)) : 0);
  }, 0);
}

/** The values of the nearest point. */
function nearestTo(constants) {
  return POINTS.reduce((a, b) => (distance(b, constants) < distance(a, constants) ? b : a)).at;
}
