// A page with the markup of a report's timeline, of any size, around the script that Go embeds.
import { readFileSync } from "node:fs";

const go = new URL("../../internal/report/html/", import.meta.url);

/** Ends of the axis of time: ns, and pixels of the viewBox. */
export const axis = { from: 0, to: 100e9, left: 120, right: 1164 };

export const px = (ns) => axis.left + ((ns - axis.from) / (axis.to - axis.from)) * (axis.right - axis.left);
const round = (v) => v.toFixed(1).replace(/\.0$/, "");

/** ops are n operations: the i-th begins at i/n of the run and takes 40 ms, each tenth fails. */
export function ops(n) {
  return Array.from({ length: n }, (_, i) => {
    const from = Math.round(axis.from + ((axis.to - axis.from) * i) / n);
    return { id: i, name: `snapshots/${i}`, outcome: i % 10 === 9 ? "error" : "ok", from, to: from + 40e6 };
  });
}

function bar(o) {
  const x = px(o.from),
    w = Math.max(1.5, px(o.to) - x);
  return (
    `<rect x="${round(x)}" y="${9 + (o.id % 6) * 9}" width="${round(w)}" height="7" class="bar ${o.outcome}" ` +
    `id="bar-${o.id}" data-op="${o.id}" data-from="${o.from}" data-to="${o.to}"><title>${o.name} on v: ${o.outcome}, ` +
    `40 ms from ${(o.from / 1e9).toFixed(2)} s</title></rect>`
  );
}

/** latency is the latency in ms that the line of a panel has at a second. */
export const latency = (second) => 10 ** (1 + (second % 3));

function panel(i, points) {
  const top = 80 + i * 130,
    y = (ms) => top + 90 - (Math.log10(ms) / 4) * 80; // 1 ms … 10 s
  const d = Array.from({ length: points }, (_, s) => {
    const a = axis.from + ((axis.to - axis.from) * s) / points,
      b = axis.from + ((axis.to - axis.from) * (s + 1)) / points;
    return `${s ? "L" : "M"}${round(px(a))} ${round(y(latency(s)))}L${round(px(b))} ${round(y(latency(s)))}`;
  }).join("");
  return (
    `<g class="panel" data-instance="fio-${i}"><text x="120" y="${top}" class="label strong">fio-${i}</text>` +
    `<rect x="${round(px(40e9))}" y="${top + 5}" width="2" height="90" class="stall" id="shade-${i}" ` +
    `data-from="40000000000" data-to="40100000000"><title>write stall of 100 ms at 40.00 s</title></rect>` +
    ["1 ms", "100 ms", "10 s"]
      .map(
        (label, k) =>
          `<line x1="120" y1="${y(100 ** k)}" x2="1164" y2="${y(100 ** k)}" ` +
          `class="grid"/><text x="112" y="${y(100 ** k) + 4}" class="tick end">${label}</text>`,
      )
      .join("") +
    `<line x1="120" y1="${top + 90}" x2="1164" y2="${top + 90}" class="hair"/>` +
    `<path d="${d}" class="line c0"><title>read p99 latency</title></path></g>`
  );
}

/** timelinePage is a page with n operations and so many panels. */
export function timelinePage(n, panels = 3, points = 100) {
  const height = 80 + panels * 130 + 40,
    seconds = [0, 20, 40, 60, 80, 100];
  const svg =
    `<svg viewBox="0 0 1180 ${height}" data-from="${axis.from}" data-to="${axis.to}" data-left="${axis.left}" ` +
    `data-right="${axis.right}" role="img" aria-label="Timeline">` +
    seconds
      .map((s) => `<line x1="${px(s * 1e9)}" y1="4" x2="${px(s * 1e9)}" y2="${height - 34}" class="grid"/>`)
      .join("") +
    ops(n).map(bar).join("") +
    Array.from({ length: panels }, (_, i) => panel(i, points)).join("") +
    `<line x1="120" y1="${height - 34}" x2="1164" y2="${height - 34}" class="axis"/>` +
    seconds.map((s) => `<text x="${px(s * 1e9)}" y="${height - 20}" class="tick mid">${s}</text>`).join("") +
    "</svg>";
  return (
    `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>synthetic</title><style>` +
    readFileSync(new URL("style.css", go), "utf8") +
    `</style></head><body><main><nav></nav><section id="timeline">` +
    `<div class="figure wide">${svg}</div></section><section><p><a id="link" href="#bar-${n - 1}">last op</a></p>` +
    `<details><summary>folded</summary><p>text</p></details><details id="op-1"><summary>op 1</summary></details></section>` +
    `</main><script>${readFileSync(new URL("report.js", go), "utf8")}</script></body></html>`
  );
}
