// A chart in its card: drawn again when its width or its colours change, and written as vectors.

const EXPORT_WIDTH = 640;

/** One chart of the page. */
class Figure {
  /**
   * @param {string} name of the file that it is exported to
   * @param {string} title
   * @param {function(object, number, number, object): void} draw (surface, width, height, colours)
   * @param {function(number): number} height of a width
   * @param {Element|null} heading  the title with its formulas
   */
  constructor(name, title, draw, height, heading = null) {
    this.name = name;
    this.draw = draw;
    this.height = height;
    this.element = make("section", { class: "card", "aria-label": title });
    this.canvas = make("canvas", { role: "img" });
    const head = make("div", { class: "head" });
    this.save = make("button", { type: "button", class: "quiet", "aria-label": `${title} as SVG` }, "SVG");
    this.save.addEventListener("click", () => download(`${name}.svg`, this.svg(), "image/svg+xml"));
    const shown = make("h2", {}, heading ? "" : title);
    if (heading) shown.append(heading);
    head.append(shown, this.save);
    this.title = title;
    this.element.append(head, this.canvas);
    new ResizeObserver(() => this.redraw()).observe(this.canvas);
  }

  /** What readers of screens say of it. */
  describe(text) {
    this.canvas.setAttribute("aria-label", text);
  }

  redraw() {
    const width = this.canvas.clientWidth;
    if (width < 40) return;
    const height = Math.round(this.height(width));
    this.draw(new CanvasSurface(this.canvas, width, height), width, height, theme());
  }

  /** The chart as a file of vectors, on light paper. */
  svg() {
    const height = Math.round(this.height(EXPORT_WIDTH));
    const surface = new SvgSurface(EXPORT_WIDTH, height, LIGHT, this.name);
    this.draw(surface, EXPORT_WIDTH, height, LIGHT);
    return surface.document(this.canvas.getAttribute("aria-label") || this.title);
  }
}
