// What the page of a history shows of a series. The server finds the changes.
import type { Change, History, Series } from "./api";
import { amount, digits } from "./format";

// metricName is the metric with the levels of other factors, as the sentences have it.
export const metricName = (h: History) => [h.metric, ...(h.context ?? []).map((c) => c.level)].join(", ");

const known = (h: History) => (h.values ?? []).filter((v) => v !== null).length;

// needed is the number of further runs from which changes can be found; 0: there are enough.
export function needed(s: Series): number {
  const all = (s.result.history ?? []).map((h) => 2 * h.parameters.minSegment - known(h));
  return all.length > 0 ? Math.max(0, Math.min(...all)) : 0;
}

const most = 6;

// shownFirst are the metrics of objectives and those that changed; without objectives the first ones of which it is
// known what is better.
export function shownFirst(s: Series): History[] {
  const list = s.result.history ?? [];
  const objectives = s.objectives ?? [];
  let first = list.filter((h) => objectives.includes(h.metric));
  if (first.length === 0) first = list.filter((h) => h.direction !== "unknown").slice(0, most);
  if (first.length === 0) first = list.slice(0, most);
  return list.filter((h) => first.includes(h) || (h.changes ?? []).length > 0);
}

export function changeClass(verdict: string): string {
  return { better: "good", worse: "bad", different: "doubt" }[verdict] ?? "soft";
}

const p = (x: number | null) => (x === null ? "p unknown" : x < 0.001 ? "p < 0.001" : `p = ${digits(x)}`);

// changeText says where a change is and how large.
export function changeText(c: Change, unit: string): string {
  const ratio =
    c.ratio === null || c.low === null || c.high === null
      ? "no ratio"
      : `×${c.ratio.toPrecision(3)}, 95 % interval ${c.low.toPrecision(3)} to ${c.high.toPrecision(3)}`;
  return (
    `median ${amount(c.before, unit)} before, ${amount(c.after, unit)} after (${ratio}, ${p(c.p)}); ` +
    (c.from === c.to ? `the change is at ${c.from}` : `the change is between ${c.from} and ${c.to}`) +
    " with 95 % confidence"
  );
}
