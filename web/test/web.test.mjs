// Walks the pages of cnsbench serve DIR in Chromium, and compares what they show with what the program prints.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import http from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { browse, data, hostileName, json, makeData, out, program, serve } from "./server.mjs";
import { open as openPage, serious, texts, themes, tooWide, wait, widths } from "./walk.mjs";

let server, browser;

before(async () => {
  makeData();
  server = await serve(data, "--auth", "none");
  browser = await browse();
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

// open opens a page of the server.
const open = (path, options) => openPage(browser, server.url + path.replace(/^\//, ""), options);

// Each page, in each width and theme: nothing is wider than the window, no error, no serious finding of axe-core.
const pages = {
  list: { path: "/", ready: ".rows li svg" },
  empty: { path: "/?q=nothing+has+this", ready: ".message" },
  compare: { path: "/compare?run=before&run=after", ready: "table" },
  refused: { path: "/compare?run=before&run=linked", ready: ".message.bad" },
  study: { path: "/studies/study/", ready: ".matrix" },
  "study-report": { path: "/study-report/study/", ready: ".cnsbench-bar" },
  run: { path: "/runs/before/", ready: ".cnsbench-bar" },
  new: { path: "/new?from=example%2Fquickstart", ready: ".verdict .good, .verdict .bad" },
  "new-unknown": { path: "/new?from=nothing", ready: ".message.bad + dl a" },
  queue: { path: "/queue", ready: ".message" },
  missing: { path: "/runs/nothing/", ready: ".message.bad", errors: /404/ },
};
for (const [name, { path, ready, errors = /^$/ }] of Object.entries(pages)) {
  test(`page ${name}`, async () => {
    for (const theme of themes) {
      for (const width of widths) {
        const page = await open(path, { width, theme });
        await page.waitForSelector(ready, wait);
        await page.screenshot({ path: join(out, "shots", `${name}-${width}-${theme}.png`), fullPage: name !== "run" });
        const wide = await tooWide(page);
        assert.ok(wide <= 0, `${name} at ${width}: ${wide} pixels wider than the window`);
        assert.deepEqual(await serious(page), [], `${name} at ${width}, ${theme}`);
        const wrong = page.wrong.filter((e) => !errors.test(e) && !/status of (422|500)/.test(e));
        assert.deepEqual(wrong, [], `${name} at ${width}, ${theme}`);
        await page.context().close();
      }
    }
  });
}

// The least of a few loads: others use the machine, too.
test("the first paint of the list is within a second", async () => {
  const times = [];
  for (let i = 0; i < 5; i++) {
    const page = await open("/");
    await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint").length > 0);
    times.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime));
    await page.context().close();
  }
  assert.ok(Math.min(...times) <= 1000, `first paints after ${times} ms`);
});

test("the list and the report show what show prints", async () => {
  const want = json("show", "before");
  const list = await open("/");
  const row = list.locator(".rows li", { has: list.locator('a[href="/runs/before/"]') });
  await row.locator("svg").waitFor(wait);
  const sentences = want.headline.filter((h) => !/\bobjectives?\b/.test(h));
  assert.deepEqual(await row.locator(".headline span").allTextContents(), sentences);
  assert.match(await row.textContent(), new RegExp(`run ${want.runID}`));
  assert.match(
    await row.locator('[title="objectives"]').textContent(),
    new RegExp(`^${want.verdicts.filter((v) => v.status === "pass").length} met`),
  );
  await row.locator("a").click();
  await list.waitForSelector(".cnsbench-bar");
  assert.match(await list.textContent("h1"), new RegExp(`^${want.name}`));
  const shown = (await list.textContent("body")).replace(/\s+/g, " ");
  for (const h of want.headline) assert.ok(shown.includes(h.replace(/\s+/g, " ")), `the report does not say ${h}`);
  await list.context().close();
});

test("a Benchmark begins from a name of the library, or from its list", async () => {
  const page = await open("/new?from=workload%2Fnothing");
  await page.getByText("The library has no “workload/nothing”").waitFor(wait);
  await page.getByRole("link", { name: "null-poisson", exact: true }).click();
  await page.locator(".verdict .good, .verdict .bad").waitFor(wait);
  assert.match(page.url(), /from=example%2Fnull-poisson$/);
  await page.goto(new URL("/new?from=null-poisson", server.url).href);
  await page.locator(".verdict .good, .verdict .bad").waitFor(wait);
  assert.match(page.url(), /from=example%2Fnull-poisson$/);
  await page.context().close();
});

test("search, filter, sort and selection are in the address", async () => {
  const page = await open("/");
  await page.waitForSelector(".rows li");
  await page.keyboard.press("/");
  await page.keyboard.type("after001");
  await page.waitForFunction(() => document.querySelectorAll(".rows li").length === 1);
  assert.match(page.url(), /q=after001/);
  await page.getByLabel("Search").fill("");
  await page.getByLabel("Show", { exact: true }).selectOption("studies");
  await page.waitForFunction(() => document.querySelectorAll(".rows li").length === 1);
  assert.deepEqual(await texts(page, ".rows li .tag"), ["study"]);
  await page.getByLabel("Show", { exact: true }).selectOption("all");
  for (const id of ["before", "after"]) {
    await page
      .locator(".rows li", { has: page.locator(`a[href="/runs/${id}/"]`) })
      .getByRole("checkbox")
      .focus();
    await page.keyboard.press("Space");
  }
  await page.getByRole("link", { name: "Compare" }).click();
  await page.waitForSelector("table");
  assert.match(page.url(), /compare\?run=before&run=after/);
  await page.context().close();
});

test("the comparison is that of compare", async () => {
  const want = json("compare", "before=before", "after=after");
  const page = await open("/compare?run=before&run=after");
  await page.waitForSelector("table");
  assert.deepEqual(await page.locator("ul.headline li").allTextContents(), want.sentences);
  const ratios = await texts(page, "table:first-of-type td:nth-last-child(3)");
  const of = want.comparisons.map((c) => (c.ratio === null ? "–" : `×${c.ratio.toPrecision(3)}`));
  for (const r of of) assert.ok(ratios.includes(r), `no ratio ${r}`);
  // Each action that both runs have is drawn, a line for each run with the number of its operations.
  const actions = json("show", "before").actions.filter((a) => a.n >= 3);
  await page.locator("figure svg path").first().waitFor(wait);
  assert.deepEqual((await texts(page, "figcaption")).sort(), actions.map((a) => a.name).sort());
  for (const a of actions) {
    const figure = page.locator("figure", { has: page.getByText(a.name, { exact: true }) });
    assert.deepEqual(await figure.locator("path title").allTextContents(), ["before", "after"]);
    assert.deepEqual(await texts(figure, ".key > span"), [`before, n = ${a.n}`, `after, n = ${a.n}`]);
  }
  await page.context().close();
});

test("the study's page has its trials", async () => {
  const want = json("study", "status", "study");
  const page = await open("/studies/study/");
  await page.waitForSelector(".matrix a");
  assert.match(await page.textContent(".lead"), new RegExp(`${want.done} of ${want.of} trials? done`));
  assert.equal(await page.locator(".matrix a").count(), want.done);
  await page.locator(".matrix a").first().click();
  await page.waitForSelector(".cnsbench-bar");
  await page.context().close();
});

test("hostile names are text", async () => {
  const page = await open("/");
  await page.getByText(hostileName).waitFor(wait);
  await page.getByRole("link", { name: hostileName }).click();
  await page.waitForSelector(".cnsbench-bar");
  assert.ok((await page.textContent("h1")).includes(hostileName));
  assert.equal(await page.evaluate(() => window.hit), undefined);
  await page.context().close();
});

// ask sends one request with headers that fetch does not allow.
const ask = (path, headers = {}, most = Infinity) =>
  new Promise((done, fail) => {
    const u = new URL(server.url);
    const r = http.get({ host: u.hostname, port: u.port, path, headers }, (answer) => {
      let text = "";
      answer.on("data", (b) => {
        text += b;
        if (text.length >= most || (most < Infinity && text.includes("\n\n"))) r.destroy();
      });
      answer.on("close", () => done({ status: answer.statusCode, headers: answer.headers, text }));
    });
    r.on("error", (e) => e.code === "ECONNRESET" || fail(e));
  });

test("requests from elsewhere and paths out of the directory are refused", async () => {
  assert.equal((await ask("/api/v1/runs", { Host: "evil.example" })).status, 403);
  assert.equal((await ask("/api/v1/runs", { Origin: "http://evil.example" })).status, 403);
  for (const id of ["..", "%2Fetc", "..%2F..%2Fetc", "linked"]) {
    const answer = await ask(`/api/v1/runs/${id.replace(/^\.\.$/, "%2e%2e")}/summary`);
    assert.ok(answer.status >= 400 || answer.status === 307, `${id}: ${answer.status}`);
    assert.doesNotMatch(answer.text, /root:/);
  }
  const page = await ask("/");
  assert.match(page.headers["content-security-policy"], /script-src 'self';/);
  assert.doesNotMatch(page.headers["content-security-policy"], /unsafe-inline/);
  assert.doesNotMatch((await ask("/runs/before/")).headers["content-security-policy"], /script-src[^;]*unsafe-inline/);
});

test("a live run is followed, resumed, and becomes its report", { timeout: 600_000 }, async () => {
  const bundle = join(data, "live");
  const run = spawn(program, ["run", join(import.meta.dirname, "live.yaml"), "--out", bundle], {
    cwd: out,
    stdio: "ignore",
  });
  const ended = new Promise((done) => run.once("exit", done));
  try {
    const list = await open("/?show=running");
    await list.locator('a[href="/runs/live/"]').waitFor(wait);
    await list.context().close();
    const page = await open("/runs/live/");
    await page.waitForFunction(() => document.querySelectorAll(".u-over").length === 3, null, wait);
    await page.waitForFunction(() => /snap/.test(document.querySelector("table")?.textContent ?? ""), null, wait);
    await page.screenshot({ path: join(out, "shots", "live-1280-light.png"), fullPage: true });
    assert.deepEqual(await serious(page), []);
    const id = /^id: (\S+)-(\d+)$/m.exec((await ask("/api/v1/runs/live/events", {}, 1 << 20)).text);
    const more = (await ask("/api/v1/runs/live/events", { "Last-Event-ID": `${id[1]}-${id[2]}` }, 1 << 20)).text;
    const update = JSON.parse(/^data: (.*)$/m.exec(more)[1]);
    const points = JSON.parse(
      /^data: (.*)$/m.exec((await ask("/api/v1/runs/live/events", {}, 1 << 20)).text)[1],
    ).points;
    assert.ok(
      update.points.length < points.length && points[0].at === 0,
      "a resumed stream begins after the last event",
    );
    for (const [width, theme] of [
      [390, "light"],
      [768, "light"],
      [1280, "dark"],
    ]) {
      const other = await open("/runs/live/", { width, theme });
      await other.waitForSelector(".u-over");
      await other.screenshot({ path: join(out, "shots", `live-${width}-${theme}.png`), fullPage: true });
      assert.ok(
        await other.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth),
        `live at ${width}`,
      );
      assert.deepEqual(other.wrong, []);
      await other.context().close();
    }
    assert.deepEqual(page.wrong, []);
    assert.equal(await ended, 0);
    await page.waitForSelector(".cnsbench-bar", wait);
    const shown = (await page.textContent("body")).replace(/\s+/g, " ");
    for (const h of json("show", "live").headline) assert.ok(shown.includes(h.replace(/\s+/g, " ")), h);
    await page.context().close();
  } finally {
    if (run.exitCode === null) run.kill("SIGINT");
    await ended;
  }
});
