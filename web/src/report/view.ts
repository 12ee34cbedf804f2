// The window of time that all figures show, in ns since the start of the run.

export interface Range {
  readonly from: number;
  readonly to: number;
}

// mostZoom bounds the zoom: coordinates of lines are rounded to a tenth of a pixel.
export const mostZoom = 200;

/** clampRange moves a range into the whole one, and makes it at least the whole one's mostZoom-th part. */
export function clampRange(range: Range, whole: Range): Range {
  const all = whole.to - whole.from;
  const length = Math.min(all, Math.max(range.to - range.from, all / mostZoom));
  const middle = (range.from + range.to) / 2;
  const from = Math.min(Math.max(middle - length / 2, whole.from), whole.to - length);
  return { from, to: from + length };
}

/** zoomed is a range after a zoom by a factor (above 1: in) that keeps an instant where it is. */
export function zoomed(range: Range, factor: number, at: number): Range {
  return { from: at - (at - range.from) / factor, to: at + (range.to - at) / factor };
}

/** ticks are about n round instants within a range, with the number of decimals of seconds that tells them apart. */
export function ticks(range: Range, n: number): { at: number[]; decimals: number } {
  const raw = (range.to - range.from) / n;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 5].find((m) => m * power >= raw * (1 - 1e-9)) ?? 10);
  const at: number[] = [];
  for (let i = Math.ceil(range.from / step); i * step <= range.to; i++) at.push(i * step);
  return { at, decimals: Math.max(0, 9 - Math.floor(Math.log10(step) + 1e-9)) };
}

/** seconds writes an instant in seconds, as exactly as a range needs it. */
export function seconds(ns: number, range: Range): string {
  return (ns / 1e9).toFixed(Math.min(9, Math.max(0, 12 - Math.floor(Math.log10(range.to - range.from)))));
}

/** View is the range that is shown; it tells its listeners when that has changed, at most once a frame. */
export class View {
  readonly whole: Range;
  private now: Range;
  private readonly listeners: ((all: boolean) => void)[] = [];
  private pending = 0;

  constructor(from: number, to: number) {
    this.whole = this.now = { from, to };
  }

  get range(): Range {
    return this.now;
  }

  get zoom(): number {
    return (this.whole.to - this.whole.from) / (this.now.to - this.now.from);
  }

  get isWhole(): boolean {
    return this.zoom < 1 + 1e-9;
  }

  /** listen calls a listener now and after each change; with all set it updates even what is not on the screen. */
  listen(listener: (all: boolean) => void): void {
    this.listeners.push(listener);
    listener(false);
  }

  show(range: Range): void {
    this.now = clampRange(range, this.whole);
    this.pending ||= requestAnimationFrame(() => this.flush());
  }

  /** flush calls the listeners at once. */
  flush(all = false): void {
    cancelAnimationFrame(this.pending);
    this.pending = 0;
    for (const listener of this.listeners) listener(all);
  }

  zoomBy(factor: number, at = (this.now.from + this.now.to) / 2): void {
    this.show(zoomed(this.now, factor, at));
  }

  /** pan moves the range by a share of its length. */
  pan(share: number): void {
    const by = share * (this.now.to - this.now.from);
    this.show({ from: this.now.from + by, to: this.now.to + by });
  }

  reset(): void {
    this.show(this.whole);
  }
}
