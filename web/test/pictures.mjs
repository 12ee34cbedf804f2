// Makes the pictures of docs/pictures from runs of this machine; see hack/pictures.sh. Its arguments are the folder of runs
// and that of the series of a history, which has a server of its own: its runs would fill the list.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { browse, program, serve } from "./server.mjs";

const root = resolve(import.meta.dirname, "../..");
const runs = resolve(process.argv[2]);
const to = join(root, "docs/pictures");
mkdirSync(to, { recursive: true });

const browser = await browse();
const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });

/** shot writes a picture of a locator or the window, at most high pixels of it. */
async function shot(name, locator, high = 1100) {
  const path = join(to, `${name}.png`);
  if (!locator) return page.screenshot({ path });
  await locator.scrollIntoViewIfNeeded();
  const box = await locator.boundingBox();
  const scrolled = await page.evaluate(() => scrollY);
  await page.screenshot({
    path,
    fullPage: true,
    clip: { x: 0, y: box.y + scrolled, width: 1280, height: Math.min(box.height, high) },
  });
}

/** distributions returns the lower end of the distributions of compared runs, beneath the table of metrics. */
async function distributions() {
  const figures = page.locator(".figures");
  await figures.locator("svg").first().waitFor();
  const box = await figures.boundingBox();
  return box.y + box.height + 16;
}

const colours = { 31: "#b3261e", 32: "#1a7f37", 33: "#8a6100" };

/** screen writes a picture of a terminal's text with its sequences for bold and colours. */
async function screen(name, text) {
  let style = {};
  const html = text.split(/(\x1b\[[0-9;]*m)/).map((part) => {
    const codes = /^\x1b\[([0-9;]*)m$/.exec(part);
    if (codes) {
      for (const code of codes[1].split(";").map(Number))
        if (code === 0) style = {};
        else if (code === 1) style.bold = true;
        else if (code === 39) delete style.colour;
        else if (colours[code]) style.colour = colours[code];
      return "";
    }
    const safe = part.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
    return `<span style="font-weight:${style.bold ? 700 : 400};color:${style.colour ?? "inherit"}">${safe}</span>`;
  });
  await page.setContent(`<body style="margin:0"><pre style="display:inline-block;margin:0;padding:16px;font:14px/1.35
    'DejaVu Sans Mono',monospace;background:#fbfbfa;color:#1d1d1b">${html.join("")}</pre></body>`);
  await page.locator("pre").screenshot({ path: join(to, `${name}.png`) });
}

for (const name of ["terminal-live", "terminal-result"])
  await screen(name, readFileSync(join(runs, `${name}.txt`), "utf8").trimEnd());

await page.goto(`file://${join(runs, "quickstart/report.html")}`);
await shot("report");
await shot("report-timeline", page.locator("#timeline"));
await shot("report-operations", page.locator("#ops"), 900);
await shot("report-interference", page.locator("#interference"), 800);
await page
  .locator("#logs details")
  .first()
  .evaluate((d) => (d.open = true));
await shot("report-operation", page.locator("#logs details").first(), 700);

const series = await serve(process.argv[3], "--auth", "none");
const server = await serve(runs, "--allow-run");
const live = join(runs, "live");
const run = spawn(program, ["run", join(root, "web/test/live.yaml"), "--out", live], { stdio: "ignore" });
const ended = new Promise((done) => run.once("exit", done));
try {
  while (!existsSync(join(live, "run.json"))) await sleep(100);
  await sleep(12_000);
  for (const [name, path] of [
    ["web-live", "/runs/live/"],
    ["web-list", "/"],
    ["web-study", "/studies/study/"],
    ["web-compare", "/compare?run=quickstart&run=again"],
    ["web-history", new URL("/history?folder=nightly", series.url)],
    ["web-new", "/new?from=workload%2Ffio"],
  ]) {
    await page.goto(path instanceof URL ? path.href : server.login(path));
    await sleep(3000); // figures of a run in progress are two seconds behind
    const figures = name === "web-compare" ? await distributions() : undefined;
    await shot(name, figures && page.locator("body"), figures);
  }
} finally {
  await ended;
  await series.stop();
}

/** submit adds an example to the queue. */
async function submit(name, runtime) {
  const text = readFileSync(join(root, "examples/null-poisson.yaml"), "utf8")
    .replaceAll("perSecond: 100", "perSecond: 5")
    .replace("runtime: 30s", `runtime: ${runtime}`);
  const answer = await fetch(new URL("/api/v1/queue", server.url), {
    method: "POST",
    headers: { "Content-Type": "application/json", ...server.headers },
    body: JSON.stringify({ text, engine: "local", name }),
  });
  if (!answer.ok) throw new Error(await answer.text());
}
try {
  await submit("smoke", "2s");
  for (const name of ["null-evening", "null-night", "null-morning"]) await submit(name, "10m");
  await page.goto(new URL("/queue", server.url).href);
  await page.getByText("null-evening-").waitFor(); // it runs
  await sleep(3000);
  await shot("web-queue");
} finally {
  await server.stop(); // it interrupts the run
}
execFileSync(program, ["study", "report", join(runs, "study"), "--out", join(runs, "study.html")]);
await page.goto(`file://${join(runs, "study.html")}`);
await shot("study-report");
await browser.close();
