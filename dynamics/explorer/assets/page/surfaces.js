// What charts are drawn on: a canvas on the screen, or a file of vectors; both have the same methods.

const FONT = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif";
const SERIF = "'STIX Two Math', 'Latin Modern Math', 'Cambria Math', Georgia, serif";
const RULER = document.createElement("canvas").getContext("2d");

/** Size and family of a run, as a canvas takes it. */
function font(run, size) {
  const pixels = run.level ? size * 0.74 : size;
  return `${run.italic ? "italic " : ""}${pixels}px ${run.italic ? SERIF : FONT}`;
}

/** Where each run of a text begins, from its left end and its base line, and how wide all are. */
function measured_runs(text, size) {
  let [x, lowered, right] = [0, 0, 0];
  const places = as_runs(text).map((run, k, runs) => {
    RULER.font = font(run, size);
    if (run.level < 0 && !(k && runs[k - 1].level < 0)) lowered = x;
    if (run.above) x = lowered;
    if (run.level === 0) x = right;
    const place = { run, x, y: run.level > 0 ? -0.38 * size : run.level < 0 ? 0.24 * size : 0 };
    x += RULER.measureText(run.text).width;
    right = Math.max(right, x);
    return place;
  });
  return { places, width: right };
}

/** Width of a text or of runs in pixels. */
function text_width(text, size) {
  return measured_runs(text, size).width;
}

/** Where each run of a text begins: offsets from where it is aligned. */
function laid_out(text, size, align) {
  const { places, width } = measured_runs(text, size);
  const shift = align === "left" ? 0 : -width * (align === "center" ? 0.5 : 1);
  return places.map((place) => ({ ...place, x: place.x + shift }));
}

/** Corners of a marker of a shape around the origin; null of a circle. */
function marker_corners(shape, radius) {
  const ring = (count, turn) => Array.from({ length: count }, (_, k) => {
    const angle = turn + (2 * Math.PI * k) / count;
    return [radius * Math.sin(angle), -radius * Math.cos(angle)];
  });
  return { square: ring(4, Math.PI / 4), diamond: ring(4, 0), triangle: ring(3, 0),
    inverted: ring(3, Math.PI), pentagon: ring(5, 0) }[shape] || null;
}

/** A canvas. */
class CanvasSurface {
  /** @param {HTMLCanvasElement} canvas  @param {number} width  @param {number} height in pixels of the page */
  constructor(canvas, width, height) {
    const ratio = window.devicePixelRatio || 1;
    const [across, down] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== across || canvas.height !== down) {
      canvas.width = across;
      canvas.height = down;
      canvas.style.height = `${height}px`;
    }
    this.context = canvas.getContext("2d");
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.clearRect(0, 0, width, height);
  }

  /** A filled rectangle. */
  rectangle(x, y, width, height, fill) {
    this.context.fillStyle = fill;
    this.context.fillRect(x, y, width, height);
  }

  /** A line through points [[x, y], ...]. */
  line(points, { colour, width = 1, dash = [] }) {
    if (points.length < 2) return;
    const context = this.context;
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.setLineDash(dash);
    context.lineJoin = "round";
    context.beginPath();
    points.forEach(([x, y], k) => (k ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.stroke();
    context.setLineDash([]);
  }

  /** A marker; hollow ones let what is below be seen. */
  marker(shape, x, y, radius, { colour, fill }) {
    const context = this.context;
    const corners = marker_corners(shape, radius);
    context.beginPath();
    if (corners) corners.forEach(([a, b], k) => (k ? context.lineTo(x + a, y + b) : context.moveTo(x + a, y + b)));
    else context.arc(x, y, radius, 0, 2 * Math.PI);
    context.closePath();
    context.fillStyle = fill;
    context.fill();
    context.strokeStyle = colour;
    context.lineWidth = 1.3;
    context.stroke();
  }

  /** A text or runs with its base line at (x, y). */
  text(x, y, text, { colour, size = 12, align = "left", halo = null }) {
    for (const place of laid_out(text, size, align)) {
      this.context.font = font(place.run, size);
      if (halo) {
        this.context.strokeStyle = halo;
        this.context.lineWidth = 4;
        this.context.lineJoin = "round";
        this.context.strokeText(place.run.text, x + place.x, y + place.y);
      }
      this.context.fillStyle = colour;
      this.context.fillText(place.run.text, x + place.x, y + place.y);
    }
  }

  /** Draw within a rectangle only. */
  clip(x, y, width, height, draw) {
    this.context.save();
    this.context.beginPath();
    this.context.rect(x, y, width, height);
    this.context.clip();
    draw();
    this.context.restore();
  }
}

/** A file of vectors (SVG 1.1), as text. */
class SvgSurface {
  /** @param {number} width  @param {number} height  @param {{paper: string}} colours  @param {string} name */
  constructor(width, height, { paper }, name) {
    this.name = name;
    this.size = [width, height];
    this.parts = [`<rect width="${width}" height="${height}" fill="${paper}"/>`];
    this.clips = 0;
  }

  rectangle(x, y, width, height, fill) {
    this.parts.push(`<rect x="${dot(x)}" y="${dot(y)}" width="${dot(width)}" height="${dot(height)}" fill="${fill}"/>`);
  }

  line(points, { colour, width = 1, dash = [] }) {
    if (points.length < 2) return;
    const path = points.map(([x, y]) => `${dot(x)},${dot(y)}`).join(" ");
    const dashes = dash.length ? ` stroke-dasharray="${dash.join(" ")}"` : "";
    this.parts.push(`<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="${width}"` +
      ` stroke-linejoin="round"${dashes}/>`);
  }

  marker(shape, x, y, radius, { colour, fill }) {
    const corners = marker_corners(shape, radius);
    const look = `fill="${fill}" stroke="${colour}" stroke-width="1.3"`;
    const path = (corners || []).map(([a, b]) => `${dot(x + a)},${dot(y + b)}`).join(" ");
    this.parts.push(corners ? `<polygon points="${path}" ${look}/>`
      : `<circle cx="${dot(x)}" cy="${dot(y)}" r="${radius}" ${look}/>`);
  }

  text(x, y, text, { colour, size = 12, align = "left", halo = null }) {
    const around = halo ? ` stroke="${halo}" stroke-width="4" stroke-linejoin="round" paint-order="stroke"` : "";
    for (const place of laid_out(text, size, align)) {
      const [family, style] = place.run.italic ? [SERIF, ' font-style="italic"'] : [FONT, ""];
      this.parts.push(`<text x="${dot(x + place.x)}" y="${dot(y + place.y)}" fill="${colour}" xml:space="preserve"` +
        ` font-family="${escaped(family)}" font-size="${dot(place.run.level ? size * 0.74 : size)}"${style}${around}>` +
        `${escaped(place.run.text)}</text>`);
    }
  }

  clip(x, y, width, height, draw) {
    const id = `${this.name}-clip-${(this.clips += 1)}`;
    this.parts.push(`<clipPath id="${id}"><rect x="${dot(x)}" y="${dot(y)}" width="${dot(width)}"` +
      ` height="${dot(height)}"/></clipPath><g clip-path="url(#${id})">`);
    draw();
    this.parts.push("</g>");
  }

  /** The whole file; the title is what readers of screens say. */
  document(title) {
    const [width, height] = this.size;
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"` +
      ` viewBox="0 0 ${width} ${height}" role="img">\n<title>${escaped(title)}</title>\n` +
      `${this.parts.join("\n")}\n</svg>\n`;
  }
}

function dot(value) {
  return Number(value.toFixed(2));
}

function escaped(text) {
  return String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
}
