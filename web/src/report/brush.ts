// Counts and quantiles of the operations in a window of time.
import { Figure, spanOf } from "./figure";
import { format } from "./units";
import type { Range, View } from "./view";

export interface Op extends Range {
  readonly name: string; // snapshots/7
  readonly outcome: string; // class of its bar: ok, error, late, dropped
}

/** opsOf are the operations that a figure draws one by one. */
export function opsOf(root: ParentNode): Op[] {
  return [...root.querySelectorAll("rect[data-op]")].flatMap((mark) => {
    const span = spanOf(mark);
    const name = mark.querySelector("title")?.textContent?.split(" on ", 1)[0];
    const outcome = ["ok", "error", "late"].find((c) => mark.classList.contains(c)) ?? "dropped";
    return span && name ? [{ ...span, name, outcome }] : [];
  });
}

export interface Counts {
  action: string;
  n: number;
  by: Record<string, number>; // outcome
  ok: number[]; // lengths in ns, ascending
}

/** within counts the operations that were in progress in a range, by action. */
export function within(ops: readonly Op[], range: Range): Counts[] {
  const list = new Map<string, Counts>();
  for (const op of ops) {
    if (op.to < range.from || op.from > range.to) continue;
    const action = op.name.slice(0, op.name.lastIndexOf("/"));
    let c = list.get(action);
    if (!c) list.set(action, (c = { action, n: 0, by: {}, ok: [] }));
    c.n++;
    c.by[op.outcome] = (c.by[op.outcome] ?? 0) + 1;
    if (op.outcome === "ok") c.ok.push(op.to - op.from);
  }
  for (const c of list.values()) c.ok.sort((a, b) => a - b);
  return [...list.values()].sort((a, b) => (a.action < b.action ? -1 : 1));
}

/**
 * quantile is the value of rank ⌈q·n⌉, as in the tables of the report. Where n is too small for an interval at 95 %,
 * that is, the greatest value is below the quantile with a probability above 5 %, it says how many are needed.
 */
export function quantile(sorted: readonly number[], q: number): string {
  const needs = Math.ceil(Math.log(0.05) / Math.log(q));
  if (sorted.length < needs) return `needs n ≥ ${needs}`;
  return format(sorted[Math.max(1, Math.ceil(q * sorted.length - 1e-9)) - 1] ?? NaN, "ns");
}

function typical(ok: readonly number[]): string {
  if (ok.length === 0) return "–";
  const value = (i: number) => format(ok[i] ?? NaN, "ns");
  return `${value(Math.ceil(ok.length / 2) - 1)} (${value(0)} … ${value(ok.length - 1)})`;
}

interface Cell extends Range {
  action: string;
  n: number;
}

/** cellsOf are the counts of the heat maps of actions without bars. */
function cellsOf(figures: readonly Figure[], drawn: ReadonlySet<string>): Cell[] {
  return figures.flatMap(({ svg }) => {
    const action = svg.getAttribute("data-action");
    if (!action || drawn.has(action)) return [];
    return [...svg.querySelectorAll("rect[data-from]")].flatMap((mark) => {
      const n = parseInt(mark.querySelector("title")?.textContent ?? "", 10),
        span = spanOf(mark);
      return span && n > 0 ? [{ action, n, ...span }] : [];
    });
  });
}

/** brush shows the counts of the window that is zoomed to or was selected, below the first figure of the timeline. */
export function brush(figures: readonly Figure[], view: View): void {
  const at = figures.find((f) => f.svg.querySelector("rect[data-op]") || f.svg.closest("#timeline")) ?? figures[0];
  if (!at) return;
  const ops = figures.flatMap((f) => opsOf(f.svg));
  const cells = cellsOf(figures, new Set(ops.map((op) => op.name.slice(0, op.name.lastIndexOf("/")))));
  const box = document.createElement("div");
  box.className = "brushed";
  box.setAttribute("aria-live", "polite");
  at.box.after(box);
  const show = (range: Range) => box.replaceChildren(...describe(within(ops, range), cells, range));
  let timer = 0;
  view.listen(() => {
    window.clearTimeout(timer);
    if (view.isWhole) box.replaceChildren();
    else timer = window.setTimeout(() => show(view.range), 150); // not while it moves
  });
  document.addEventListener("brush", (e) => show((e as CustomEvent<Range>).detail));
}

function describe(counts: readonly Counts[], cells: readonly Cell[], range: Range): Element[] {
  const title = document.createElement("h3");
  title.textContent = `Ops in progress from ${Figure.text(range)}`;
  const parts: Element[] = [title];
  const note = (text: string) => {
    const p = document.createElement("p");
    p.className = "note";
    p.textContent = text;
    parts.push(p);
  };
  if (counts.length > 0) {
    const rows = counts.map((c) => [
      c.action,
      `${c.n}`,
      ...["ok", "error", "late", "dropped"].map((o) => `${c.by[o] ?? 0}`),
      typical(c.ok),
      quantile(c.ok, 0.9),
      quantile(c.ok, 0.99),
    ]);
    parts.push(
      table(
        [
          "action",
          "ops",
          "ok",
          "failed",
          "timed out or not ended",
          "never started",
          "median (min … max)",
          "p90",
          "p99",
        ],
        rows,
      ),
    );
    note("Times are from start to end, of the operations that were ok.");
  }
  for (const action of new Set(cells.map((c) => c.action))) {
    const inside = cells.filter((c) => c.action === action && c.from < range.to && c.to > range.from);
    const n = inside.reduce((sum, c) => sum + c.n, 0);
    if (n === 0) continue;
    const bins = { from: Math.min(...inside.map((c) => c.from)), to: Math.max(...inside.map((c) => c.to)) };
    note(`${action}: ${n} ops were due from ${Figure.text(bins)}, the bins of its heat map that the window touches.`);
  }
  if (parts.length === 1) note("None.");
  return parts;
}

function table(head: readonly string[], rows: readonly string[][]): Element {
  const t = document.createElement("table");
  for (const [cells, name] of [[head, "th"] as const, ...rows.map((r) => [r, "td"] as const)]) {
    const row = t.insertRow();
    cells.forEach((text, i) => {
      const cell = document.createElement(name);
      cell.className = i === 0 ? (name === "td" ? "name" : "") : "n";
      cell.textContent = text;
      row.append(cell);
    });
  }
  const scroll = document.createElement("div");
  scroll.className = "scroll";
  scroll.append(t);
  return scroll;
}
