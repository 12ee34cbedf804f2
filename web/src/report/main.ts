// Adds zoom, crosshair, filters, sorting and links to a report. Without it the page has all figures and tables.
//
// What it reads from the page:
//   svg[data-from][data-to][data-left][data-right]
//                       a figure with a time axis: its ends in ns, and in pixels of the viewBox
//   rect[data-from][data-to], rect with a title, path.line
//                       what is drawn along that axis
//   rect[data-op]       an operation; its title begins with "ACTION/INSTANCE on", its class has the outcome
//   rect.heat           a cell of a heat map; its title begins with the number of its operations
//   g.panel             the lines of one instance; text.tick.end is a label of an axis of values
//
// The styles of what the script adds are in internal/report/html/style.css.
import { brush } from "./brush";
import { Figure } from "./figure";
import { followLinks } from "./links";
import { whilePrinting } from "./print";
import { readout } from "./readout";
import { enhanceTables } from "./tables";
import { toolbar } from "./toolbar";
import { View } from "./view";

const figures = [...document.querySelectorAll<SVGSVGElement>("svg[data-left]")].map((svg) => new Figure(svg));
const first = figures[0];
let view: View | undefined;
if (first) {
  view = new View(first.from, first.to);
  const all = view;
  for (const figure of figures) {
    figure.follow(all);
    toolbar(figure, all);
    readout(figure, all);
  }
  brush(figures, all);
}
const clearFilters = enhanceTables(document);
followLinks(figures, view);
whilePrinting(view, clearFilters);
document.documentElement.dataset["script"] = "on";
