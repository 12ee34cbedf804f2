// Measures a page: the time until it can be used, and the frames a second of panning over its timeline.
//
//   node test/pan.mjs [OPS | REPORT.html] [--json]
//
// OPS is the number of operations of a page that is made for it, 20000 without an argument.
import { readFileSync } from "node:fs";
import { launch } from "./browser.mjs";
import { timelinePage } from "./synthetic.mjs";

const args = process.argv.slice(2);
const json = args.includes("--json");
const what = args.find((a) => !a.startsWith("--")) ?? "20000";
const html = what.endsWith(".html") ? readFileSync(what, "utf8") : timelinePage(Number(what), 12, 400);
const loads = 5;

const browser = await launch();
const result = { usableMs: [], pans: [] };
try {
  let page;
  for (let i = 0; i < loads; i++) {
    page = await browser.open(html);
    result.usableMs.push(await page.evaluate(usable));
  }
  if (process.env["STYLE"]) await page.addStyleTag({ content: process.env["STYLE"] });
  for (const zoom of [1.6, 20]) {
    const before = await browser.cpu();
    const frames = await page.evaluate(pan, zoom);
    const after = await browser.cpu();
    const cpu = (kind) => (1000 * (after[kind] - before[kind])) / frames.length;
    frames.sort((a, b) => a - b);
    result.pans.push({
      zoom,
      perSecond: (1000 * frames.length) / frames.reduce((a, b) => a + b, 0),
      p90Ms: frames[Math.floor(frames.length * 0.9)],
      cpuMs: cpu("renderer") + cpu("GPU"),
      frames: frames.length,
    });
  }
} finally {
  await browser.close();
}
if (json) {
  console.log(JSON.stringify(result));
} else {
  const times = result.usableMs.map((ms) => ms.toFixed(0)).join(", ");
  console.log(`${what}: usable after ${times} ms`);
  for (const p of result.pans) {
    console.log(
      `${what}, zoom ${p.zoom}: ${p.perSecond.toFixed(1)} frames/s, p90 ${p.p90Ms.toFixed(1)} ms, n = ${p.frames}; ` +
        `CPU per frame ${p.cpuMs.toFixed(1)} ms`,
    );
  }
}

/** usable is the ms from the request of the page until it has shown what its script does with a wheel's turn. */
async function usable() {
  const svg = document.querySelector("svg[data-left]"),
    r = svg.getBoundingClientRect();
  const init = { bubbles: true, cancelable: true, ctrlKey: true, deltaY: -30, clientX: r.left + r.width / 2 };
  svg.dispatchEvent(new WheelEvent("wheel", { ...init, clientY: r.top + 20 }));
  for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame); // drawn, and shown
  const ms = performance.now();
  if (!svg.classList.contains("zoomed")) throw new Error("the script has not zoomed the timeline");
  return ms;
}

/** pan pans to and fro for 60 frames, one step a frame, and returns the ms between frames. */
async function pan(zoom) {
  const svg = document.querySelector("svg[data-left]"),
    r = svg.getBoundingClientRect();
  const wheel = (init) =>
    svg.dispatchEvent(
      new WheelEvent("wheel", {
        bubbles: true,
        cancelable: true,
        clientX: r.left + r.width / 2,
        clientY: r.top + 20,
        ...init,
      }),
    );
  const frame = () => new Promise(requestAnimationFrame);
  svg.parentElement.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
  wheel({ ctrlKey: true, deltaY: -300 * Math.log(zoom) });
  await frame();
  await frame();
  const list = [];
  for (let last = await frame(), i = 0; i < 60; i++) {
    wheel({ deltaX: i % 60 < 30 ? 12 : -12 });
    const now = await frame();
    list.push(now - last);
    last = now;
  }
  return list;
}
