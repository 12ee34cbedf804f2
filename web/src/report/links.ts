// The target of a link is unfolded, brought into the shown range, scrolled to and marked.
import { spanOf, type Figure } from "./figure";
import type { View } from "./view";

export function followLinks(figures: readonly Figure[], view: View | undefined): void {
  const follow = () => {
    let id = "";
    try {
      id = decodeURIComponent(location.hash.slice(1));
    } catch {
      return; // not an id of the page
    }
    const target = id ? document.getElementById(id) : null;
    if (target) reveal(target, figures, view);
  };
  window.addEventListener("hashchange", follow);
  document.addEventListener("click", (e) => {
    const link = (e.target as Element).closest("a");
    if (!e.defaultPrevented && link?.getAttribute("href") === location.hash && location.hash) follow(); // once more
  });
  follow();
  foldAll();
}

function reveal(target: Element, figures: readonly Figure[], view: View | undefined): void {
  for (let at: Element | null = target; at; at = at.parentElement) {
    if (at instanceof HTMLDetailsElement) at.open = true;
  }
  const span = spanOf(target);
  if (view && span && figures.some((f) => f.svg.contains(target))) {
    const { range } = view;
    if (span.to < range.from || span.from > range.to) {
      const half = (range.to - range.from) / 2,
        middle = (span.from + span.to) / 2;
      view.show({ from: middle - half, to: middle + half });
    }
  }
  for (const old of document.querySelectorAll(".hit")) old.classList.remove("hit");
  target.classList.add("hit");
  const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  const wide = target instanceof SVGElement || target.localName === "tr";
  target.scrollIntoView({ behavior: still ? "auto" : "smooth", block: wide ? "center" : "start", inline: "nearest" });
}

/** foldAll adds a button that unfolds all folded parts, and folds them again. */
function foldAll(): void {
  const nav = document.querySelector("nav"),
    parts = document.querySelectorAll("details");
  if (!nav || parts.length < 2) return;
  const button = document.createElement("button");
  button.type = "button";
  const open = () => [...parts].every((d) => d.open);
  const name = () => (button.textContent = open() ? "Fold all" : "Unfold all");
  button.addEventListener("click", () => {
    const unfold = !open();
    for (const d of parts) d.open = unfold;
    name();
  });
  for (const d of parts) d.addEventListener("toggle", name);
  name();
  nav.append(button);
}
