// Walks the page of a history in Chromium: real runs of a driver that becomes slower, with one outlier.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { browse, hostileName, out, program, serve } from "./server.mjs";
import { open, serious, texts, themes, wait, widths } from "./walk.mjs";

const data = join(out, "series-data");
// In ms: so long that other work on the machine changes little.
const delays = [300, 300, 300, 300, 4000, 300, 300, 300, 300, 1200, 1200, 1200, 1200, 1200, 1200, 1200];
const name = (i) => `run-${String(i).padStart(2, "0")}`;
const outlier = name(4),
  slower = name(9);
let server, browser;

function run(dir, delay) {
  const args = ["run", join(import.meta.dirname, "history.yaml"), "--out", dir];
  execFileSync(program, [...args, "--inject", `rpcs: {CreateVolume: {delay: ${delay}ms}}`], {
    cwd: out,
    stdio: "ignore",
  });
}

/** median returns the median response of a run's volumes, in ms. */
const median = (dir) => {
  const shown = execFileSync(program, ["show", dir, "--output", "json"], { encoding: "utf8", maxBuffer: 64 << 20 });
  return JSON.parse(shown).actions[0].response.p50.ns / 1e6;
};

/**
 * runNear runs until the median is at most a quarter above the injected delay, at most ten times: other work on the
 * machine can delay a run of half a second by seconds, and the series must be one whose change is known.
 */
function runNear(dir, delay) {
  for (let i = 0; i < 10; i++) {
    rmSync(dir, { recursive: true, force: true });
    run(dir, delay);
    if (median(dir) <= 1.25 * delay) return;
  }
  assert.fail(`${dir}: ten runs took more than 1.25 × ${delay} ms: the machine has too much other work`);
}

before(async () => {
  rmSync(data, { recursive: true, force: true });
  mkdirSync(data, { recursive: true });
  mkdirSync(join(out, "shots"), { recursive: true });
  delays.forEach((d, i) => runNear(join(data, "nightly", name(i)), d));
  for (const i of [0, 1, 2]) {
    run(join(data, "few", name(i)), 20);
    const file = join(data, "few", name(i), "run.json");
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), name: hostileName }));
  }
  server = await serve(data, "--auth", "none");
  browser = await browse();
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

const show = (path, options) => open(browser, server.url + path, options);
const compared = () =>
  JSON.parse(
    execFileSync(program, ["compare", "--history", "nightly", "--output", "json"], {
      cwd: data,
      encoding: "utf8",
      maxBuffer: 64 << 20,
    }),
  );

const pages = {
  history: "history?name=series",
  "history-few": `history?name=${encodeURIComponent(hostileName)}`,
  "history-none": "history?name=nothing",
};
for (const [page, path] of Object.entries(pages)) {
  test(`page ${page}`, async () => {
    for (const theme of themes) {
      for (const width of widths) {
        const p = await show(path, { width, theme });
        await p.waitForSelector(page === "history-none" ? ".message.bad" : ".u-over", wait);
        await p.screenshot({ path: join(out, "shots", `${page}-${width}-${theme}.png`), fullPage: true });
        const wide = await p.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
        assert.ok(wide <= 0, `${page} at ${width}: ${wide} pixels wider than the window`);
        assert.deepEqual(await serious(p), [], `${page} at ${width}, ${theme}`);
        assert.deepEqual(
          p.wrong.filter((e) => page !== "history-none" || !/404/.test(e)),
          [],
        );
        assert.equal(await p.evaluate(() => window.hit), undefined);
        await p.context().close();
      }
    }
  });
}

test("the change is that of compare, and the outlier is none", async () => {
  const want = compared();
  const median = want.history.find((h) => h.metric === "p50(volume)");
  assert.deepEqual(
    median.changes.map((c) => [c.run, c.verdict]),
    [[slower, "worse"]],
  );
  const p = await show("history?folder=nightly&metric=p50(volume)");
  await p.waitForSelector(".u-over");
  assert.deepEqual(await p.locator("ul.headline li").allTextContents(), want.sentences);
  const [change] = await texts(p, ".changes li");
  const c = median.changes[0];
  assert.ok(change.startsWith(`worse from ${slower} on: median `), change);
  assert.ok(change.includes(`×${c.ratio.toPrecision(3)}, 95 % interval ${c.low.toPrecision(3)} to`), change);
  const row = (run) => p.locator(".scroll tbody tr", { has: p.getByRole("link", { name: run, exact: true }) });
  assert.equal(await p.locator(".scroll tbody tr").count(), delays.length);
  assert.match(await row(outlier).textContent(), /○/);
  assert.match(await row(slower).textContent(), /●/);
  assert.equal(await p.locator(".scroll tbody :text('●')").count(), 1);
  assert.match(await row(slower).locator(".settings").textContent(), /inject: .*300ms.* → .*1200ms/);
  assert.equal(await row(name(2)).locator(".settings").textContent(), "");
  await p.context().close();
});

test("a point and a row lead to the run, by mouse and by keyboard", async () => {
  const p = await show("history?name=series");
  const plot = p.locator(".u-over").first();
  const box = await plot.boundingBox();
  // The axis is from 0.4 to 16.6.
  await plot.click({ position: { x: (box.width * (10 - 0.4)) / 16.2, y: box.height / 2 } });
  await p.waitForURL(`**/runs/nightly/${slower}/`);
  await p.getByRole("link", { name: "History" }).click();
  await p.waitForSelector(".u-over");
  await p.getByRole("link", { name: outlier, exact: true }).focus();
  await p.keyboard.press("Enter");
  await p.waitForURL(`**/runs/nightly/${outlier}/`);
  await p.context().close();
});

test("metrics are chosen by keyboard, and in the address", async () => {
  const p = await show("history?name=series");
  await p.waitForSelector(".u-over");
  const first = await texts(p, "section h2");
  assert.match(first.join("\n"), /^max\(volume\)/m);
  await p.getByLabel("Metrics").focus();
  await p.keyboard.press("ArrowDown");
  await p.waitForURL(/metric=\*/);
  assert.equal(await p.locator("section").count(), compared().history.length);
  await p.reload();
  await p.waitForSelector(".u-over");
  assert.equal(await p.locator("section").count(), compared().history.length);
  await p.context().close();
});

test("the list and a selection lead to a history", async () => {
  const p = await show("");
  const row = (id) => p.locator(".rows li", { has: p.locator(`a[href="/runs/${id}/"]`) });
  await row("few/run-00").getByRole("link", { name: "history of 3 runs" }).click();
  await p.getByText("7 more runs are needed").waitFor(wait);
  assert.ok((await p.textContent("h1")).includes(hostileName));
  await p.goBack();
  for (const i of [11, 10, 2])
    await row(`nightly/${name(i)}`)
      .getByRole("checkbox")
      .check();
  await p.getByRole("link", { name: "History", exact: true }).click();
  await p.waitForSelector(".u-over");
  assert.deepEqual(await texts(p, ".scroll tbody td.name"), [2, 10, 11].map(name));
  await p.context().close();
});
