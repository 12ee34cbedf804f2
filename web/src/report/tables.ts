// Sorting and filtering of tables.
import { parse } from "./units";

const filtered = 9; // rows from which a table has a filter
const sorted = 3; // rows from which a table can be sorted

/** keyOf is what a row is sorted by: the text of a cell without its small print. */
export function keyOf(cell: Element | undefined): string {
  let text = "";
  for (const node of cell?.childNodes ?? []) {
    if (!(node instanceof Element && node.matches(".sub, .needs"))) text += node.textContent;
  }
  return text.trim();
}

/** compare orders texts: numbers with units of one kind by value, others as words; what is no value is last. */
export function compare(a: string, b: string): number {
  const x = parse(a),
    y = parse(b);
  if (x && y) return x.value - y.value;
  if (x || y) return x ? -1 : 1;
  const empty = (s: string) => s === "" || s === "–";
  if (empty(a) || empty(b)) return Number(empty(a)) - Number(empty(b));
  return a.localeCompare(b, "en", { numeric: true });
}

/**
 * enhanceTables adds buttons to the heads of tables, and filters. It returns what clears the filters, whose result undoes
 * that.
 */
export function enhanceTables(root: ParentNode): () => () => void {
  const filters: HTMLInputElement[] = [];
  for (const table of root.querySelectorAll("table")) {
    const rows = [...table.rows];
    const body = rows.filter((r) => r.querySelector("td"));
    const head = rows.filter((r) => !r.querySelector("td")).at(-1);
    if (head && body.length >= sorted && wholeHead(head, body)) addSorting(head, body);
    if (body.length >= filtered) filters.push(addFilter(table, body));
  }
  return () => {
    const values = filters.map((f) => f.value);
    const set = (list: readonly string[]) =>
      filters.forEach((f, i) => {
        f.value = list[i] ?? "";
        f.dispatchEvent(new Event("input"));
      });
    set([]);
    return () => set(values);
  };
}

/** wholeHead reports whether each column has one cell in the head and in each row. */
function wholeHead(head: HTMLTableRowElement, body: readonly HTMLTableRowElement[]): boolean {
  return [head, ...body].every(
    (r) => r.cells.length === head.cells.length && [...r.cells].every((c) => c.colSpan === 1),
  );
}

function addSorting(head: HTMLTableRowElement, body: readonly HTMLTableRowElement[]): void {
  [...head.cells].forEach((cell, column) => {
    if (!cell.textContent?.trim()) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    if (cell.querySelector("a")) {
      // the explanation of a term: a link cannot be in a button
      button.classList.add("beside");
      button.setAttribute("aria-label", `Sort by ${cell.textContent.trim()}`);
    } else {
      button.append(...cell.childNodes);
    }
    cell.append(button);
    button.addEventListener("click", () => {
      const next =
        { none: "ascending", ascending: "descending", descending: "none" }[cell.ariaSort ?? "none"] ?? "ascending";
      for (const c of head.cells) c.removeAttribute("aria-sort");
      if (next !== "none") cell.setAttribute("aria-sort", next);
      const end = body.at(-1)?.parentElement;
      end?.append(...(next === "none" ? body : order(body, column, next === "descending")));
    });
  });
}

/** order sorts rows; rows without a value in the column stay last. */
function order(body: readonly HTMLTableRowElement[], column: number, descending: boolean): HTMLTableRowElement[] {
  const keyed = body.map((row) => ({ row, key: keyOf(row.cells[column]) }));
  const none = (k: string) => Number(k === "" || k === "–");
  keyed.sort((a, b) => none(a.key) - none(b.key) || (descending ? compare(b.key, a.key) : compare(a.key, b.key)));
  return keyed.map((k) => k.row);
}

function addFilter(table: HTMLTableElement, body: readonly HTMLTableRowElement[]): HTMLInputElement {
  const label = document.createElement("label");
  label.className = "filter";
  const input = document.createElement("input");
  input.type = "search";
  input.placeholder = "Filter rows";
  input.setAttribute("aria-label", "Filter the rows of the table below");
  const count = document.createElement("span");
  count.setAttribute("role", "status");
  label.append(input, count);
  (table.closest(".scroll") ?? table).before(label);
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of body) {
      const text = row.textContent?.toLowerCase() ?? "";
      row.hidden = !words.every((w) => text.includes(w));
      shown += Number(!row.hidden);
    }
    count.textContent = words.length > 0 ? `${shown} of ${body.length} rows` : "";
  });
  return input;
}
