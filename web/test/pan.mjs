// Measures the frames a second of panning over a timeline of so many operations: node test/pan.mjs [OPS]
import { launch } from "./browser.mjs";
import { timelinePage } from "./synthetic.mjs";

const n = Number(process.argv[2] ?? 20000);
const browser = await launch();
try {
  const page = await browser.open(timelinePage(n, 12, 400));
  if (process.env["STYLE"]) await page.addStyleTag({ content: process.env["STYLE"] });
  for (const zoom of [1.6, 20]) {
    const before = await browser.cpu();
    const frames = await page.evaluate(pan, zoom);
    const after = await browser.cpu();
    const cpu = ["renderer", "GPU"].map(
      (p) => `${p} ${((1000 * (after[p] - before[p])) / frames.length).toFixed(1)} ms`,
    );
    frames.sort((a, b) => a - b);
    const mean = frames.reduce((a, b) => a + b, 0) / frames.length;
    console.log(
      `${n} ops, zoom ${zoom}: ${(1000 / mean).toFixed(1)} frames/s, median ${frames[frames.length >> 1].toFixed(1)} ms, ` +
        `p90 ${frames[Math.floor(frames.length * 0.9)].toFixed(1)} ms, n = ${frames.length}; CPU per frame: ${cpu.join(", ")}`,
    );
  }
} finally {
  await browser.close();
}

/** pan pans to and fro for 40 frames, one step a frame, and returns the ms between frames. */
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
  for (let last = await frame(), i = 0; i < 40; i++) {
    wheel({ deltaX: i % 60 < 30 ? 12 : -12 });
    const now = await frame();
    list.push(now - last);
    last = now;
  }
  return list;
}
