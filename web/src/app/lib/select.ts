// Which runs the list shows, and in which order.
import type { Card, Run } from "./api";

export const filters = [
  { name: "all", text: "All" },
  { name: "running", text: "Running" },
  { name: "missed", text: "Objectives not met" },
  { name: "met", text: "Objectives met" },
  { name: "unfinished", text: "Failed or incomplete" },
  { name: "studies", text: "Studies" },
] as const;
export type Filter = (typeof filters)[number]["name"];

export const orders = [
  { name: "newest", text: "Newest first" },
  { name: "oldest", text: "Oldest first" },
  { name: "name", text: "By name" },
  { name: "longest", text: "Longest first" },
  { name: "worst", text: "Worst verdict first" },
] as const;
export type Order = (typeof orders)[number]["name"];

// matches reports whether a run has every word of a text, and is of what the filter shows.
export function matches(r: Run, card: Card | undefined, text: string, filter: Filter): boolean {
  return passes(r, filter) && words(r, card, text);
}

function passes(r: Run, filter: Filter): boolean {
  switch (filter) {
    case "all":
      return true;
    case "studies":
      return r.kind === "study";
    case "running":
      return r.state === "running";
    case "met":
      return r.verdict === "pass";
    case "missed":
      return r.verdict !== undefined && r.verdict !== "pass";
    case "unfinished":
      return r.kind === "broken" || (r.kind === "bundle" && r.state !== "running" && r.state !== "complete");
  }
}

function words(r: Run, card: Card | undefined, text: string): boolean {
  const all = [
    r.id,
    r.name,
    r.runID,
    r.engine,
    r.state,
    r.error,
    ...(r.drivers ?? []),
    ...(r.workloads ?? []),
    ...(r.flags ?? []),
    ...Object.entries(r.labels ?? {}).map((l) => l.join("=")),
    ...(card?.headline ?? []),
  ]
    .join(" ")
    .toLowerCase();
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((w) => all.includes(w));
}

const worst = ["fail", "error", "weak", "noData", "pass"];
const rank = (r: Run) => (r.verdict ? worst.indexOf(r.verdict) : worst.length);

export function sorted(list: Run[], order: Order): Run[] {
  const by: Record<Order, (a: Run, b: Run) => number> = {
    newest: () => 0, // as the server sends it
    oldest: (a, b) => (a.started ?? "").localeCompare(b.started ?? ""),
    name: (a, b) => (a.name || a.id).localeCompare(b.name || b.id),
    longest: (a, b) => (b.durationNs ?? 0) - (a.durationNs ?? 0),
    worst: (a, b) => rank(a) - rank(b),
  };
  return order === "newest" ? list : list.toSorted(by[order]);
}
