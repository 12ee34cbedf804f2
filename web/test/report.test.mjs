// The page of a report in a browser: what Go writes, with the script and without, and the timeline at any size.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { executablePath, launch } from "./browser.mjs";
import { axis, latency, ops, timelinePage } from "./synthetic.mjs";

const root = new URL("../..", import.meta.url).pathname;
const shots = process.env["SCREENSHOTS"]; // a folder to keep pictures in
const skip = existsSync(executablePath) ? false : `${executablePath} is missing (Debian: chromium)`;
const sizes = [
  { width: 1280, height: 900 },
  { width: 390, height: 844 },
];

let browser;
const pages = {};

before(async () => {
  if (skip) return;
  browser = await launch();
  // Pages of the bundles of the package's own tests.
  execFileSync(
    "go",
    ["test", "./internal/report/html", "-count=1", "-run", "TestWrite$/^(demo|hostile)$", "-keep", browser.dir],
    { cwd: root, stdio: ["ignore", "ignore", "inherit"] },
  );
  // And of a bundle that is kept, by the command.
  execFileSync(
    "go",
    [
      "run",
      "./cmd/cnsbench",
      "report",
      "test/e2e/testdata/kept-2026-11/bundle",
      "--out",
      join(browser.dir, "kept.html"),
    ],
    { cwd: root, stdio: ["ignore", "ignore", "inherit"] },
  );
  for (const name of ["demo", "hostile", "kept"]) pages[name] = readFileSync(join(browser.dir, `${name}.html`), "utf8");
});
after(() => browser?.close());

async function picture(page, name) {
  if (!shots) return;
  mkdirSync(shots, { recursive: true });
  await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true });
}

/** visible is the text that a reader sees. */
const visible = (page) => page.evaluate(() => document.body.innerText);

const shown = (page) => page.locator(".zoom-bar span").first().innerText();

/** drag moves the pressed pointer from one share of the axis to another. */
async function drag(page, from, to) {
  const box = await page.locator("svg[data-left]").first().boundingBox();
  const x = (share) => box.x + ((axis.left + share * (axis.right - axis.left)) / 1180) * box.width;
  await page.mouse.move(x(from), box.y + 30);
  await page.mouse.down();
  await page.mouse.move(x((from + to) / 2), box.y + 30);
  await page.mouse.move(x(to), box.y + 30);
  await page.mouse.up();
}

for (const name of ["demo", "hostile", "kept"]) {
  for (const viewport of sizes) {
    for (const colorScheme of ["light", "dark"]) {
      test(
        `${name} at ${viewport.width} px, ${colorScheme}: the script runs and nothing is cut`,
        { skip },
        async () => {
          const page = await browser.open(pages[name], { viewport, colorScheme });
          assert.equal(await page.locator("html").getAttribute("data-script"), "on");
          assert.equal(await page.locator("script").count(), 1);
          const { scroll, client } = await page.evaluate(() => ({
            scroll: document.documentElement.scrollWidth,
            client: document.documentElement.clientWidth,
          }));
          assert.ok(scroll <= client, `the page is ${scroll} px wide, the window ${client}`);
          await picture(page, `${name}-${viewport.width}-${colorScheme}`);
          assert.deepEqual(page.errors, []);
        },
      );
    }
  }
}

test("without the script all text is there", { skip }, async () => {
  const texts = async (page) =>
    (await page.locator("td, th, h1, h2, p.note, li").allTextContents()).map((s) => s.trim());
  const plain = await browser.open(pages.demo, { javaScriptEnabled: false });
  assert.equal(await plain.locator(".zoom-bar, .filter, .sort").count(), 0);
  const want = await texts(plain);
  assert.deepEqual(await texts(await browser.open(pages.demo)), want);
});

// unfold opens all folded parts.
const unfold = (page) => page.evaluate(() => document.querySelectorAll("details").forEach((d) => (d.open = true)));

test("a table is sorted by number, back and forth, and filtered", { skip }, async () => {
  const page = await browser.open(pages.demo);
  await unfold(page);
  const table = page.locator("#interference .scroll", { has: page.locator("th", { hasText: /^length$/ }) }).last();
  const column = () =>
    table.locator("tr td:nth-child(2)").evaluateAll((cells) => cells.map((c) => c.firstChild.textContent));
  const before = await column();
  const ms = (text) => parseFloat(text) * { s: 1000, ms: 1, µs: 1e-3 }[text.replace(/[\d.≥ ]+/, "")];
  const head = table.locator("th", { hasText: /^length/ });
  await head.locator("button").click();
  const up = (await column()).map(ms);
  assert.deepEqual(
    up,
    before.map(ms).sort((a, b) => a - b),
  );
  assert.equal(await head.getAttribute("aria-sort"), "ascending");
  await head.locator("button").press("Enter");
  assert.deepEqual((await column()).map(ms), up.toReversed());
  await head.locator("button").click();
  assert.deepEqual(await column(), before);
  const filter = page.locator(".filter input").last();
  await filter.fill("fio-1-data");
  const counts = await page.locator(".filter span").last().innerText();
  const [, some, all] = /^(\d+) of (\d+) rows$/.exec(counts).map(Number);
  assert.ok(some > 0 && some < all, counts);
});

test("print shows the whole run, all rows and all folded parts, and gives back what was", { skip }, async () => {
  const page = await browser.open(timelinePage(500));
  await drag(page, 0.4, 0.5);
  await page.waitForFunction(() => document.querySelector("svg.zoomed"));
  const range = await shown(page);
  await page.emulateMedia({ media: "print" });
  await page.waitForFunction(() => !document.querySelector("svg.zoomed"));
  assert.equal(await page.locator("details:not([open])").count(), 0);
  await picture(page, "print-synthetic");
  await page.emulateMedia({ media: "screen" });
  await page.waitForFunction(() => document.querySelector("svg.zoomed"));
  assert.equal(await shown(page), range);
  assert.equal(await page.locator("details[open]").count(), 0);
  const report = await browser.open(pages.demo);
  await unfold(report);
  await report.locator(".filter input").last().fill("no such row");
  await report.emulateMedia({ media: "print" });
  await report.waitForFunction(() => !document.querySelector("tr[hidden]"));
  await picture(report, "demo-print");
});

test("a drag zooms all panels to the same window, and counts its operations", { skip }, async () => {
  const all = ops(1000);
  const page = await browser.open(timelinePage(1000));
  await drag(page, 0.4, 0.5);
  await page.waitForFunction(() => document.querySelector("svg.zoomed") && document.querySelector(".brushed td"));
  const [, from, to] = /^([\d.]+) s to ([\d.]+) s$/.exec(await shown(page)).map(Number);
  assert.ok(Math.abs(from - 40) < 0.2 && Math.abs(to - 50) < 0.2, `${from} to ${to}`);
  // The bar of op 450 begins at 45 s.
  const place = (selector) => page.locator(selector).evaluate((e) => e.getBoundingClientRect().x);
  const box = await page.locator("svg[data-left]").boundingBox();
  const want = box.x + ((axis.left + ((45 - from) / (to - from)) * (axis.right - axis.left)) / 1180) * box.width;
  assert.ok(Math.abs((await place("#bar-450")) - want) < 1, `bar at ${await place("#bar-450")}, want ${want}`);
  const width = (40e6 / 1e9 / (to - from)) * ((axis.right - axis.left) / 1180) * box.width;
  const drawn = await page.locator("#bar-450").evaluate((e) => e.getBoundingClientRect().width);
  assert.ok(Math.abs(drawn - width) < 0.5, `${drawn} px wide, want ${width}`);
  const labels = await page.locator(".zoom-axis text").allTextContents();
  assert.ok(labels.includes("44") && !labels.includes("60"), labels.join());
  const cells = await page.locator(".brushed td").allTextContents();
  const inside = all.filter((o) => o.to >= from * 1e9 && o.from <= to * 1e9);
  const near = (i, n) => assert.ok(Math.abs(Number(cells[i]) - n) <= 1, `cell ${i} of ${cells}: want about ${n}`);
  assert.equal(cells[0], "snapshots");
  near(1, inside.length);
  near(2, inside.filter((o) => o.outcome === "ok").length);
  near(3, inside.filter((o) => o.outcome === "error").length);
  assert.deepEqual(cells.slice(6), ["40 ms (40 ms … 40 ms)", "40 ms", "needs n ≥ 299"]);
  await picture(page, "zoomed-synthetic");
  assert.deepEqual(page.errors, []);
});

test("keys zoom, pan and reset; ctrl and wheel zoom at the pointer", { skip }, async () => {
  const page = await browser.open(timelinePage(100));
  await page.locator(".figure").focus();
  const range = async () => (await shown(page)).match(/[\d.]+/g)?.map(Number) ?? [];
  const settled = (want) =>
    page.waitForFunction((w) => document.querySelector(".zoom-bar span").textContent.startsWith(w), want);
  await page.keyboard.press("+");
  await settled("18.75 s"); // 100 s ÷ 1.6, around 50 s
  await page.keyboard.press("ArrowRight");
  await settled("34.38 s");
  await page.keyboard.press("ArrowLeft");
  await settled("18.75 s");
  await page.keyboard.press("Escape");
  await settled("Drag");
  const box = await page.locator("svg[data-left]").boundingBox();
  const x = box.x + ((axis.left + 0.25 * (axis.right - axis.left)) / 1180) * box.width;
  await page.mouse.move(x, box.y + 40);
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -300);
  await page.keyboard.up("Control");
  await page.waitForFunction(() => document.querySelector("svg.zoomed"));
  const [from, to] = await range();
  assert.ok(Math.abs(from + 0.25 * (to - from) - 25) < 0.2, `${from} to ${to}`); // 25 s stayed where it was
  assert.ok(Math.abs(100 / (to - from) - Math.E) < 0.05, `${from} to ${to}`);
});

test("the crosshair reads the values of the panel and the operations in progress", { skip }, async () => {
  const page = await browser.open(timelinePage(1000));
  const box = await page.locator("svg[data-left]").boundingBox();
  const at = async (second, y) => {
    const x = box.x + ((axis.left + (second / 100) * (axis.right - axis.left)) / 1180) * box.width;
    await page.mouse.move(x, box.y + (y / 1180) * box.width);
    return page.locator(".readout").innerText();
  };
  for (const second of [10, 11, 12]) {
    const text = await at(second + 0.5, 150);
    assert.match(text, new RegExp(`^${second}\\.\\d+ s, fio-0\\n`));
    const value = Number(/latency ≈ ([\d.]+) ms/.exec(text)?.[1] ?? 1000 * Number(/≈ ([\d.]+) s/.exec(text)?.[1]));
    const want = latency(second);
    assert.ok(Math.abs(value / want - 1) < 0.03, `${text}: want about ${want} ms`);
  }
  assert.match(await at(50.02, 20), /snapshots\/500: 40 ms/);
  await picture(page, "crosshair-synthetic");
  await page.mouse.move(5, 5);
  assert.equal(await page.locator(".readout").isVisible(), false);
});

test("the target of a link is brought into the window and marked", { skip }, async () => {
  const page = await browser.open(timelinePage(1000), { reducedMotion: "reduce" });
  await drag(page, 0.1, 0.2);
  await page.waitForFunction(() => document.querySelector("svg.zoomed"));
  await page.locator("#link").click();
  await page.waitForFunction(() => document.querySelector(".hit")?.id === "bar-999");
  await page.waitForFunction(() => document.querySelector(".zoom-bar span").textContent.includes(" to 100.0"));
  const { x, y, width } = await page.locator("#bar-999").evaluate((e) => e.getBoundingClientRect().toJSON());
  const box = await page.locator("svg[data-left]").boundingBox();
  assert.ok(x >= box.x && x + width <= box.x + box.width && y >= 0 && y < 900, `bar at ${x}, ${y}`);
  await page.evaluate(() => (location.hash = "op-1"));
  await page.waitForFunction(
    () => document.querySelector("#op-1").open && document.querySelector(".hit").id === "op-1",
  );
});
