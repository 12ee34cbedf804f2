// A line at the pointer through all figures of time, and the values and operations at that instant.
import { linesOf, type Drawn } from "./axis";
import { opsOf, type Op } from "./brush";
import { element, type Figure } from "./figure";
import { format } from "./units";
import { seconds, type View } from "./view";

const mostOps = 5; // that are named

interface Part {
  top: number;
  bottom: number;
  title: string;
  lines: Drawn[];
}

/** partsOf are the panels of a figure, or itself if it has none. */
function partsOf(figure: Figure): Part[] {
  const panels = [...figure.svg.querySelectorAll<SVGGElement>("g.panel")];
  if (panels.length === 0) {
    return [{ top: 0, bottom: figure.height, title: "", lines: linesOf(figure.svg, figure.left) }];
  }
  const tops = panels.map((p) => Number(p.querySelector("text.label")?.getAttribute("y") ?? 0) - 20);
  return panels.map((p, i) => ({
    top: tops[i] ?? 0,
    bottom: tops[i + 1] ?? figure.height,
    title: p.dataset["instance"] ?? "",
    lines: linesOf(p, figure.left),
  }));
}

let hair: SVGLineElement | undefined; // there is one pointer

export function readout(figure: Figure, view: View): void {
  let parts: Part[] | undefined;
  let ops: Op[] = [];
  const box = document.createElement("div");
  box.className = "readout";
  box.hidden = true;
  box.setAttribute("aria-hidden", "true"); // the values are in the tables
  figure.box.after(box);
  const hide = () => {
    box.hidden = true;
    hair?.remove();
  };
  const move = (e: PointerEvent) => {
    const { x, y } = figure.place(e);
    if (!figure.inPlot(x)) return hide();
    if (!parts) {
      parts = partsOf(figure);
      ops = opsOf(figure.svg);
    }
    const at = figure.timeOf(x, view.range);
    const part = parts.find((p) => y >= p.top && y < p.bottom);
    hair?.remove();
    hair = element("line", { class: "crosshair", x1: x, x2: x, y1: 0, y2: figure.height });
    figure.overlay.append(hair);
    box.replaceChildren(...rows(figure, at, `${seconds(at, view.range)} s`, part, ops));
    box.hidden = false;
    const beside = e.clientX > window.innerWidth / 2 ? e.clientX - box.offsetWidth - 14 : e.clientX + 14;
    box.style.left = `${Math.max(4, beside)}px`;
    box.style.top = `${Math.max(4, Math.min(e.clientY + 14, window.innerHeight - box.offsetHeight - 4))}px`;
  };
  figure.svg.addEventListener("pointermove", move);
  figure.svg.addEventListener("pointerdown", move);
  figure.svg.addEventListener("pointerleave", hide);
  window.addEventListener("scroll", hide, { passive: true });
}

function rows(figure: Figure, at: number, time: string, part: Part | undefined, ops: readonly Op[]): Element[] {
  const list: Element[] = [];
  const add = (text: string, strong = false) => {
    const p = document.createElement(strong ? "strong" : "div");
    p.textContent = text;
    list.push(p);
  };
  add(part?.title ? `${time}, ${part.title}` : time, true);
  const x = figure.xOf(at, figure);
  for (const d of part?.lines ?? []) {
    const y = d.line.at(x);
    if (y !== undefined) add(`${d.title} ≈ ${format(d.scale.at(y), d.unit, d.scale.digits(y))}`);
  }
  const busy = ops.filter((op) => op.from <= at && at <= op.to);
  for (const op of busy.slice(0, mostOps))
    add(`${op.name}: ${op.outcome === "ok" ? "" : `${words(op.outcome)}, `}${format(op.to - op.from, "ns")}`);
  if (busy.length > mostOps) add(`and ${busy.length - mostOps} more ops`);
  return list;
}

function words(outcome: string): string {
  return { error: "failed", late: "timed out or not ended", dropped: "never started" }[outcome] ?? outcome;
}
