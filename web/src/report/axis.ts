// Values of drawn lines, read from their points and from the labels of their axis.
import { parse } from "./units";

export interface Label {
  readonly y: number;
  readonly value: number;
}

const pixel = 0.06; // coordinates are rounded to a tenth of a pixel

/** Scale maps places to values. */
export class Scale {
  private constructor(
    private readonly a: Label,
    private readonly b: Label,
    private readonly log: boolean,
  ) {}

  /** of fits a scale to labels; undefined if they do not tell it. */
  static of(labels: readonly Label[], log: boolean): Scale | undefined {
    const a = labels[0],
      b = labels[labels.length - 1];
    if (!a || !b || a.y === b.y || (log && labels.some((l) => l.value <= 0))) return undefined;
    const scale = new Scale(a, b, log);
    const fits = labels.every((l) => Math.abs(scale.place(l.value) - l.y) < 0.3);
    return fits ? scale : undefined;
  }

  private place(value: number): number {
    const f = this.log ? Math.log : (v: number) => v;
    const { a, b } = this;
    return a.y + ((f(value) - f(a.value)) / (f(b.value) - f(a.value))) * (b.y - a.y);
  }

  at(y: number): number {
    const { a, b } = this,
      share = (y - a.y) / (b.y - a.y);
    if (this.log) return a.value * (b.value / a.value) ** share;
    return a.value + share * (b.value - a.value);
  }

  /** digits is how many digits of a value the rounded coordinates give: 1 to 3. */
  digits(y: number): number {
    const error = Math.abs(this.at(y + pixel) - this.at(y - pixel)) / 2;
    const digits = Math.floor(Math.log10(Math.abs(this.at(y)) / error));
    return Math.min(3, Math.max(1, Number.isFinite(digits) ? digits : 1));
  }
}

/** Line is a path of M and L commands. */
export class Line {
  private readonly xs: number[] = [];
  private readonly ys: number[] = [];
  private readonly begins = new Set<number>(); // indexes of points without a line to them

  constructor(d: string) {
    for (const m of d.matchAll(/([ML])([-\d.]+) ([-\d.]+)/g)) {
      if (m[1] === "M") this.begins.add(this.xs.length);
      this.xs.push(Number(m[2]));
      this.ys.push(Number(m[3]));
    }
  }

  /** at is where the line is at x; undefined: it is not there. */
  at(x: number): number | undefined {
    let low = 0,
      high = this.xs.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.xs[middle] as number) <= x) low = middle + 1;
      else high = middle;
    }
    const i = low - 1,
      x0 = this.xs[i],
      x1 = this.xs[low],
      y0 = this.ys[i],
      y1 = this.ys[low];
    if (x0 === undefined || y0 === undefined) return undefined;
    if (x0 === x) return y0;
    if (x1 === undefined || y1 === undefined || this.begins.has(low)) return undefined;
    return y0 + ((x - x0) / (x1 - x0)) * (y1 - y0);
  }

  get bottom(): number {
    return this.ys.reduce((a, b) => Math.max(a, b), -Infinity);
  }
}

/** Drawn is a line with the scale of its axis. */
export interface Drawn {
  readonly title: string;
  readonly line: Line;
  readonly scale: Scale;
  readonly unit: string;
}

const number = (e: Element, name: string) => Number(e.getAttribute(name));

/** linesOf are the lines in a part of a figure whose values can be read; its labels end left of the axis. */
export function linesOf(part: Element, left: number): Drawn[] {
  const bases = [...part.querySelectorAll("line.hair, line.axis")].map((l) => number(l, "y1")).sort((a, b) => a - b);
  const labels = [...part.querySelectorAll("text.tick.end")].flatMap((t) => {
    const amount = parse(t.textContent ?? "");
    return amount && number(t, "x") < left ? [{ y: number(t, "y") - 4, ...amount }] : [];
  });
  return [...part.querySelectorAll("path.line")].flatMap((path) => {
    const title = path.querySelector("title")?.textContent ?? "",
      line = new Line(path.getAttribute("d") ?? "");
    const k = bases.findIndex((y) => y >= line.bottom - 0.2),
      base = bases[k],
      above = bases[k - 1] ?? -Infinity;
    if (!title || base === undefined) return [];
    const own = labels.filter((l) => l.y > above && l.y <= base + 0.2);
    const scale = Scale.of(own, title.endsWith("latency"));
    return scale ? [{ title, line, scale, unit: own.find((l) => l.unit)?.unit ?? "" }] : [];
  });
}
