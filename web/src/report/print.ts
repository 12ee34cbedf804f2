// On paper there is the whole run, with all rows and all folded parts.
import type { View } from "./view";

export function whilePrinting(view: View | undefined, clearFilters: () => () => void): void {
  let undo: (() => void) | undefined;
  const begin = () => {
    if (undo) return;
    const range = view?.range,
      folded = [...document.querySelectorAll("details")].filter((d) => !d.open);
    const restoreFilters = clearFilters();
    for (const d of folded) d.open = true;
    view?.reset();
    view?.flush(true);
    undo = () => {
      restoreFilters();
      for (const d of folded) d.open = false;
      if (range) view?.show(range);
    };
  };
  const end = () => {
    undo?.();
    undo = undefined;
  };
  window.addEventListener("beforeprint", begin);
  window.addEventListener("afterprint", end);
  window.matchMedia("print").addEventListener("change", (e) => (e.matches ? begin() : end()));
}
