// A figure with a time axis. Zoom and pan change the transform of a few groups; no mark is laid out again.
import { seconds, ticks, type Range, type View } from "./view";

const ns = "http://www.w3.org/2000/svg";

/** element makes an SVG element. */
export function element<K extends keyof SVGElementTagNameMap>(
  name: K,
  attributes: Record<string, string | number>,
  text = "",
): SVGElementTagNameMap[K] {
  const e = document.createElementNS(ns, name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, String(value));
  if (text) e.textContent = text;
  return e;
}

/** spanOf is the time of a mark, if the page gives it. */
export function spanOf(mark: Element): Range | undefined {
  const from = mark.getAttribute("data-from"),
    to = mark.getAttribute("data-to");
  return from === null || to === null ? undefined : { from: Number(from), to: Number(to) };
}

interface Narrow {
  mark: Element;
  width: number; // by its time
  least: number; // that is drawn
}

let clips = 0;

export class Figure {
  readonly from: number;
  readonly to: number;
  readonly left: number;
  readonly right: number;
  readonly width: number;
  readonly height: number;
  readonly overlay = element("g", { class: "overlay" });
  readonly box: HTMLElement; // the element around the figure
  private readonly groups: SVGGElement[] = [];
  private readonly narrow: Narrow[] = [];
  private readonly axis = element("g", { class: "zoom-axis" });
  private readonly gridTop: number;
  private readonly gridBottom: number; // NaN: the figure has no vertical grid
  private readonly labelY: number;
  private exact = false;
  private zoom = 1;
  private near = true; // the window of the browser, or in it

  constructor(readonly svg: SVGSVGElement) {
    const number = (name: string) => Number(svg.getAttribute(name));
    this.from = number("data-from");
    this.to = number("data-to");
    this.left = number("data-left");
    this.right = number("data-right");
    this.width = svg.viewBox.baseVal.width;
    this.height = svg.viewBox.baseVal.height;
    this.box = svg.parentElement as HTMLElement;
    const grid = [...svg.querySelectorAll("line.grid")].filter((l) => l.getAttribute("x1") === l.getAttribute("x2"));
    const labels = [...svg.querySelectorAll("text.tick.mid")];
    for (const e of [...grid, ...labels]) e.classList.add("time");
    this.gridTop = Number(grid[0]?.getAttribute("y1") ?? NaN);
    this.gridBottom = Number(grid[0]?.getAttribute("y2") ?? NaN);
    this.labelY = Number(labels[0]?.getAttribute("y") ?? this.height);
    this.group();
    svg.prepend(this.axis);
    svg.append(this.overlay);
  }

  /** group puts the marks of each parent into a group of their own, which is cut at the ends of the axis. */
  private group(): void {
    const clip = element("clipPath", { id: `zoom-${++clips}` });
    clip.append(element("rect", { x: this.left, y: 0, width: this.right - this.left, height: this.height }));
    const marks = new Map<Element, Element[]>();
    for (const mark of this.svg.querySelectorAll("rect, path.line")) {
      if (mark.localName === "rect" && !mark.hasAttribute("data-from") && !mark.firstElementChild) continue;
      this.note(mark);
      const unit = mark.closest("a") ?? mark;
      const parent = unit.parentElement as Element;
      const list = marks.get(parent);
      if (list) list.push(unit);
      else marks.set(parent, [unit]);
    }
    this.svg.prepend(clip);
    for (const list of marks.values()) {
      const outer = element("g", { "clip-path": `url(#${clip.id})` }),
        inner = element("g", {});
      outer.append(inner);
      list[list.length - 1]?.after(outer);
      for (const unit of list) inner.append(unit);
      this.groups.push(inner);
    }
  }

  /** note remembers a mark that is drawn wider than its time. */
  private note(mark: Element): void {
    const span = spanOf(mark);
    if (!span) return;
    const width = this.length(span.to - span.from),
      drawn = Number(mark.getAttribute("width"));
    if (drawn > width + 0.06) this.narrow.push({ mark, width, least: drawn });
  }

  private length(time: number): number {
    return (time / (this.to - this.from)) * (this.right - this.left);
  }

  /** follow shows the range of a view from now on. */
  follow(view: View): void {
    const update = (all: boolean) => (all || this.near) && this.apply(view.range, view.isWhole);
    new IntersectionObserver(
      (entries) => {
        this.near = entries.at(-1)?.isIntersecting ?? true;
        update(false);
      },
      { rootMargin: "50%" },
    ).observe(this.svg);
    view.listen(update);
  }

  private apply(range: Range, whole: boolean): void {
    const zoom = (this.to - this.from) / (range.to - range.from);
    const start = this.left + this.length(range.from - this.from);
    if (!whole && !this.exact) this.setExact();
    if (Math.abs(zoom - this.zoom) > 1e-9 * zoom) {
      for (const n of this.narrow) n.mark.setAttribute("width", String(Math.max(n.width, n.least / zoom)));
      this.zoom = zoom;
    }
    const transform = whole ? "" : `matrix(${zoom} 0 0 1 ${this.left - start * zoom} 0)`;
    for (const g of this.groups) {
      if (whole) g.removeAttribute("transform");
      else g.setAttribute("transform", transform);
    }
    this.svg.classList.toggle("zoomed", !whole);
    this.drawAxis(range, whole);
  }

  /** setExact places marks by their time: in the page their places are rounded. */
  private setExact(): void {
    this.exact = true;
    for (const mark of this.svg.querySelectorAll("rect[data-from]")) {
      const span = spanOf(mark);
      if (span) mark.setAttribute("x", String(Math.max(this.left, this.left + this.length(span.from - this.from))));
    }
  }

  private drawAxis(range: Range, whole: boolean): void {
    const marks: Element[] = [];
    const list = whole ? { at: [], decimals: 0 } : ticks(range, 10);
    for (const at of list.at) {
      const x = this.xOf(at, range);
      if (!Number.isNaN(this.gridBottom)) {
        marks.push(element("line", { x1: x, y1: this.gridTop, x2: x, y2: this.gridBottom, class: "grid" }));
      }
      marks.push(element("text", { x, y: this.labelY, class: "tick mid" }, (at / 1e9).toFixed(list.decimals)));
    }
    this.axis.replaceChildren(...marks);
  }

  /** xOf is where an instant of the shown range is drawn. */
  xOf(at: number, range: Range): number {
    return this.left + ((at - range.from) / (range.to - range.from)) * (this.right - this.left);
  }

  /** timeOf is the instant at a place of the viewBox, within the shown range. */
  timeOf(x: number, range: Range): number {
    const share = (x - this.left) / (this.right - this.left);
    return range.from + Math.min(1, Math.max(0, share)) * (range.to - range.from);
  }

  /** place is where a pointer is, in the viewBox. */
  place(event: MouseEvent): { x: number; y: number } {
    const r = this.svg.getBoundingClientRect();
    return {
      x: ((event.clientX - r.left) / r.width) * this.width,
      y: ((event.clientY - r.top) / r.height) * this.height,
    };
  }

  /** inPlot reports whether a place lies between the ends of the axis. */
  inPlot(x: number): boolean {
    return x >= this.left && x <= this.right;
  }

  /** text is a range for people. */
  static text(range: Range): string {
    return `${seconds(range.from, range)} s to ${seconds(range.to, range)} s`;
  }
}
