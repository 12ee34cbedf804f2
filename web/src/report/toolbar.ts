// Buttons, keys, wheel and drag of a figure.
import { element, Figure } from "./figure";
import type { View } from "./view";

const step = 1.6; // of a zoom by button or key
const shift = 0.25; // of a pan

export function toolbar(figure: Figure, view: View): void {
  const bar = document.createElement("div");
  bar.className = "zoom-bar";
  const add = (text: string, label: string, act: () => void) => {
    const b = document.createElement("button");
    b.type = "button";
    b.textContent = text;
    b.title = label;
    b.setAttribute("aria-label", label);
    b.addEventListener("click", act);
    bar.append(b);
    return b;
  };
  add("+", "Zoom in (+)", () => view.zoomBy(step));
  const onlyZoomed = [
    add("−", "Zoom out (−)", () => view.zoomBy(1 / step)),
    add("←", "Earlier (left arrow)", () => view.pan(-shift)),
    add("→", "Later (right arrow)", () => view.pan(shift)),
    add("Reset", "Reset to the whole run (Escape)", () => view.reset()),
  ];
  const shown = document.createElement("span");
  shown.setAttribute("role", "status");
  bar.append(shown);
  view.listen(() => {
    for (const b of onlyZoomed) b.disabled = view.isWhole;
    shown.textContent = view.isWhole
      ? "Drag over the figure to zoom, with Shift for counts only"
      : Figure.text(view.range);
  });
  figure.box.before(bar);
  figure.box.tabIndex = 0;
  figure.box.setAttribute("role", "group");
  figure.box.setAttribute("aria-label", "Figure with zoom: plus, minus, arrow keys, Escape");
  for (const part of [figure.box, bar]) part.addEventListener("keydown", (e) => key(e, view));
  figure.svg.addEventListener("wheel", (e) => wheel(e, figure, view), { passive: false });
  drag(figure, view);
}

function key(e: KeyboardEvent, view: View): void {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const keys: Record<string, () => void> = {
    "+": () => view.zoomBy(step),
    "=": () => view.zoomBy(step),
    "-": () => view.zoomBy(1 / step),
    Escape: () => view.reset(),
  };
  if (!view.isWhole) {
    keys["ArrowLeft"] = () => view.pan(-shift);
    keys["ArrowRight"] = () => view.pan(shift);
  }
  const act = keys[e.key];
  if (!act) return;
  e.preventDefault();
  act();
}

function wheel(e: WheelEvent, figure: Figure, view: View): void {
  const across = e.shiftKey && e.deltaX === 0 ? e.deltaY : e.deltaX;
  if (e.ctrlKey) {
    e.preventDefault();
    view.zoomBy(Math.exp(-e.deltaY / 300), figure.timeOf(figure.place(e).x, view.range));
  } else if (!view.isWhole && Math.abs(across) >= Math.abs(e.shiftKey ? 0 : e.deltaY) && across !== 0) {
    e.preventDefault();
    view.pan(across / 800);
  }
}

const dragged = 4; // pixels from which a press is a drag

/** drag selects a window, which is shown; with Shift only its operations are counted. A finger pans the page. */
function drag(figure: Figure, view: View): void {
  const { svg } = figure;
  let start: { x: number; clientX: number } | undefined;
  let area: SVGRectElement | undefined;
  const end = () => {
    area?.remove();
    start = area = undefined;
  };
  svg.addEventListener("pointerdown", (e) => {
    const { x } = figure.place(e);
    if (e.button === 0 && e.pointerType !== "touch" && figure.inPlot(x)) start = { x, clientX: e.clientX };
  });
  svg.addEventListener("dragstart", (e) => e.preventDefault());
  svg.addEventListener("pointermove", (e) => {
    if (!start) return;
    if (!area) {
      if (Math.abs(e.clientX - start.clientX) < dragged) return;
      svg.setPointerCapture(e.pointerId);
      area = element("rect", { class: "selection", y: 0, height: figure.height });
      figure.overlay.append(area);
    }
    const x = Math.min(figure.right, Math.max(figure.left, figure.place(e).x));
    area.setAttribute("x", String(Math.min(x, start.x)));
    area.setAttribute("width", String(Math.abs(x - start.x)));
  });
  svg.addEventListener("pointerup", (e) => {
    if (start && area) {
      const ends = [start.x, figure.place(e).x].map((x) => figure.timeOf(x, view.range)).sort((a, b) => a - b);
      const range = { from: ends[0] as number, to: ends[1] as number };
      svg.addEventListener("click", (click) => click.preventDefault(), { capture: true, once: true });
      if (e.shiftKey) svg.dispatchEvent(new CustomEvent("brush", { detail: range, bubbles: true }));
      else view.show(range);
    }
    end();
  });
  svg.addEventListener("pointercancel", end);
}
