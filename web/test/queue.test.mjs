// Builds Benchmarks in the form of cnsbench serve DIR --allow-run, and runs, reorders, aborts and repeats them.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { browse, out, program, serve } from "./server.mjs";
import { open as openPage, serious, texts, themes, tooWide, wait, widths } from "./walk.mjs";

const dir = `${out}-queue`;
const results = join(dir, "results");
let server, browser;

before(async () => {
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(join(dir, "shots"), { recursive: true });
  mkdirSync(results);
  server = await serve(results, "--allow-run");
  browser = await browse();
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

const open = (path, options) => openPage(browser, server.login(path), options);
const api = async (path) => (await fetch(`${server.url}api/v1/${path}`, { headers: server.headers })).json();
const submissions = async () => (await api("queue")).submissions;
const text = (page) => page.getByLabel("File", { exact: true }).inputValue();
const valid = (page) => page.locator(".verdict .good").waitFor(wait);

// reaches waits until a submission is in a state, and returns it.
async function reaches(id, state) {
  for (let i = 0; i < 600; i++) {
    const s = (await submissions()).find((s) => s.id === id);
    if (s?.state === state && (state !== "running" || s.begun)) return s;
    await new Promise((done) => setTimeout(done, 200));
  }
  assert.fail(`submission ${id} is not ${state}: ${JSON.stringify(await submissions())}`);
}
const run = (s) => JSON.parse(readFileSync(join(results, s.out, "run.json"), "utf8"));

// fill sets a field of the form and leaves it.
async function fill(page, label, value) {
  const field = page.getByRole("form", { name: "Form" }).getByLabel(label, { exact: true }).first();
  await field.fill(value);
  await field.blur();
}

test("the form and the text are one file, checked as it is typed", async () => {
  const page = await open("/new?from=example%2Fnull-poisson");
  await valid(page);
  const runtime = page.getByLabel("runtime", { exact: true });
  await runtime.fill("5 parsecs");
  await page.locator(".verdict .bad").waitFor(wait);
  assert.equal(await runtime.getAttribute("aria-invalid"), "true");
  const wrong = await text(page);
  const line = wrong.split("\n").findIndex((l) => /^ {2}runtime: "5 parsecs" +# nothing else/.test(l)) + 1;
  assert.ok(line > 0, `the comment is lost: ${wrong}`);
  // What the page says is what validate prints.
  const printed = spawnSync(program, ["validate", "--output", "json", "-"], { input: wrong, encoding: "utf8" });
  const want = JSON.parse(printed.stdout).problems;
  assert.equal(want[0].line, line);
  const said = await texts(page, "ul[aria-label=Problems] li");
  assert.equal(said.length, want.length);
  for (const [i, p] of want.entries()) {
    assert.ok(said[i].includes(`line ${p.line}`) && said[i].includes(p.message), `${said[i]} is not ${p.message}`);
  }
  await page.getByRole("button", { name: `line ${line}`, exact: true }).click();
  const cursor = await page.getByLabel("File", { exact: true }).evaluate((a) => a.selectionStart);
  assert.equal(wrong.slice(0, cursor).split("\n").length, line);
  assert.equal(await page.getByRole("button", { name: "Add to the queue" }).isDisabled(), true);
  await runtime.fill("7s");
  await valid(page);

  // A namespace is that of a cluster.
  const place = page.getByLabel("Namespace", { exact: true });
  assert.equal(await place.count(), 0);
  await page.getByLabel("Engine").selectOption("kubernetes");
  await place.fill("Two Words");
  await page.getByText('invalid namespace "Two Words"').waitFor(wait);
  assert.equal(await page.getByRole("button", { name: "Add to the queue" }).isDisabled(), true);
  const [asked] = await Promise.all([
    page.waitForRequest((r) => r.url().endsWith("/validate") && r.postDataJSON().namespace === "bench"),
    place.fill("bench"),
  ]);
  assert.equal(asked.postDataJSON().engine, "kubernetes");
  await page.getByLabel("Engine").selectOption("local");
  await valid(page);

  // The text is the truth: the form follows it.
  await page.getByLabel("File", { exact: true }).fill((await text(page)).replace("runtime: 7s ", "runtime: 8s "));
  assert.equal(await runtime.inputValue(), "8s");
  await page.getByRole("button", { name: "Add rate" }).click();
  await page.getByLabel("rateName").first().fill("rate-3");
  await page.locator("section[aria-label='rate rate-3']").getByLabel("interval", { exact: true }).fill("2s");
  await valid(page);
  assert.match(await text(page), /- name: rate-3\n +constantRateSpec:\n +interval: 2s\n/);
  const [saved] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Download" }).click(),
  ]);
  assert.equal(saved.suggestedFilename(), "null-poisson.yaml");
  assert.equal(readFileSync(await saved.path(), "utf8"), await text(page));
  await page.reload();
  await page.getByLabel("Start from").selectOption("workload/fio");
  await valid(page);
  await page.getByLabel("iodepth").waitFor({ state: "attached" });
  await page.getByText("more, with their defaults").first().click();
  await fill(page, "iodepth", "0");
  await page.locator(".verdict .bad").waitFor(wait);
  assert.match((await texts(page, "ul[aria-label=Problems] li"))[0], /is less than 1/);
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test("the pages of the form and the queue fit, in each width and theme", async () => {
  for (const theme of themes) {
    for (const width of widths) {
      for (const [name, path, ready] of [
        ["new", "/new?from=workload%2Ffio", ".verdict .good"],
        ["suite", "/new?from=suite%2Ffsync", ".verdict .good, .verdict .bad"],
        ["queue-empty", "/queue", ".message"],
      ]) {
        const page = await open(path, { width, theme });
        await page.waitForSelector(ready, wait);
        await page.screenshot({ path: join(dir, "shots", `${name}-${width}-${theme}.png`), fullPage: true });
        assert.ok((await tooWide(page)) <= 0, `${name} at ${width} is wider than the window`);
        assert.deepEqual(await serious(page), [], `${name} at ${width}, ${theme}`);
        assert.deepEqual(page.wrong, [], `${name} at ${width}, ${theme}`);
        await page.context().close();
      }
    }
  }
});

// submit adds null-poisson to the queue, at a low rate.
async function submit(page, name, runtime) {
  await page.goto(`${server.url}new?from=example%2Fnull-poisson`);
  await valid(page);
  await page.getByLabel("File", { exact: true }).fill((await text(page)).replaceAll("perSecond: 100", "perSecond: 5"));
  await fill(page, "runtime", runtime);
  await page.getByLabel("Name of the results").fill(name);
  await valid(page);
  await page.getByRole("button", { name: "Add to the queue" }).click();
  await page.waitForURL(/\/queue#submission-/);
}

test("submissions run one after another, are moved, aborted and repeated", { timeout: 600_000 }, async () => {
  const page = await open("/queue");
  await submit(page, "first", "20s");
  const live = await open("/");
  const first = await reaches("1", "running");
  // The row of the running submission has the host of its operations: this machine.
  const hosts = page.getByRole("table", { name: "Hosts of first 1" });
  await page.waitForFunction(
    () => Number(document.querySelector("table[aria-label='Hosts of first 1'] td:last-child")?.textContent) > 10,
  );
  assert.deepEqual(await hosts.locator("tbody tr td:first-child").allTextContents(), [hostname()]);
  const counted = (await submissions())[0].hosts;
  assert.deepEqual(
    counted.map((h) => h.name),
    [hostname()],
  );
  await live.goto(`${server.url}runs/${first.out}/`);
  await live.locator(".tiles").waitFor(wait);
  const listed = live.getByRole("table", { name: /^Hosts of / }).locator("tbody td.name");
  await listed.first().waitFor(wait);
  assert.deepEqual(await listed.allTextContents(), [hostname()]);
  for (const [name, runtime] of [
    ["second", "10m"],
    ["third", "10m"],
  ])
    await submit(page, name, runtime);
  assert.deepEqual(
    (await submissions()).map((s) => `${s.name} ${s.state}`),
    ["first running", "second queued", "third queued"],
  );
  await page.getByRole("button", { name: "Move third 3 up" }).click();
  await page.waitForFunction(() => /third[\s\S]*second/.test(document.querySelector("ol")?.textContent ?? ""));
  for (const [width, theme] of [
    [1280, "light"],
    [768, "light"],
    [390, "dark"],
  ]) {
    const other = await open("/queue", { width, theme });
    await other.waitForSelector("ol li");
    await other.screenshot({ path: join(dir, "shots", `queue-${width}-${theme}.png`), fullPage: true });
    assert.ok((await tooWide(other)) <= 0, `the queue at ${width} is wider than the window`);
    assert.deepEqual(await serious(other), [], `queue at ${width}`);
    await other.context().close();
  }
  await page.getByRole("button", { name: "Cancel third 3" }).click();
  await reaches("3", "cancelled");

  // The first ends by itself: its live page becomes the report. The second starts, and is aborted on its live page.
  const done = await reaches("1", "done");
  await live.locator(".cnsbench-bar").waitFor(wait);
  assert.equal(run(done).state, "complete");
  const environment = JSON.parse(readFileSync(join(results, done.out, "environment.json"), "utf8"));
  assert.equal(environment.hostname, hostname());
  const shown = spawnSync(program, ["show", "--output", "json", join(results, done.out)], { encoding: "utf8" });
  const ops = JSON.parse(shown.stdout).actions.reduce((n, a) => n + a.n, 0);
  assert.ok(counted[0].ops > 10 && counted[0].ops <= ops, `${counted[0].ops} of ${ops} operations`);
  assert.equal(done.hosts, undefined);
  assert.equal(await hosts.count(), 0);
  const second = await reaches("2", "running");
  await live.goto(`${server.url}runs/${second.out}/`);
  await live.getByRole("button", { name: "Abort …" }).click();
  assert.deepEqual(await serious(live), []);
  await live.getByRole("button", { name: "Abort the run" }).click();
  await reaches("2", "cancelled");
  await live.locator(".cnsbench-bar").waitFor(wait);
  assert.equal(run(second).state, "interrupted");

  await page.getByRole("button", { name: "Resubmit second 2" }).click();
  const again = await reaches("4", "running");
  assert.notEqual(again.out, second.out);
  assert.equal(readFileSync(join(results, `${again.out}.yaml`), "utf8"), (await api("queue/4")).text);
  await page.getByRole("button", { name: "Abort second 4" }).click();
  await reaches("4", "cancelled");
  assert.equal(run(again).state, "interrupted");
  await page.getByRole("button", { name: "Remove third 3 from the list" }).click();
  await page.waitForFunction(() => !document.body.textContent.includes("third"));
  await page.screenshot({ path: join(dir, "shots", "queue-ended-1280-light.png"), fullPage: true });
  assert.deepEqual(await serious(page), []);
  assert.deepEqual(page.wrong, []);
  const ended = /status of 409/; // of the stream of a run that has ended: the page becomes its report
  assert.deepEqual(
    live.wrong.filter((e) => !ended.test(e)),
    [],
  );
  await page.context().close();
  await live.context().close();
});

test("a study runs as one, and the end of the server ends it", { timeout: 600_000 }, async () => {
  const page = await open("/new?from=example%2Fnull-poisson");
  await valid(page);
  const study = (await text(page))
    .replace("kind: Benchmark", "kind: Study")
    .replace(
      /spec:\n([\s\S]*)$/,
      (_, spec) => `spec:\n  repetitions: 2\n  benchmark:\n${spec.replace(/^(?=.)/gm, "  ")}`,
    )
    .replaceAll("perSecond: 100", "perSecond: 5")
    .replace("runtime: 30s", "runtime: 10m");
  await page.getByLabel("File", { exact: true }).fill(study);
  await page.getByText("Study null-poisson").waitFor(wait);
  await page.getByRole("button", { name: "Add to the queue" }).click();
  await page.waitForURL(/\/queue#submission-5/);
  const s = await reaches("5", "running");
  const trial = await (async () => {
    for (let i = 0; i < 300; i++) {
      const found = readdirSync(join(results, s.out)).find((f) => /_r1$/.test(f));
      if (found && readdirSync(join(results, s.out, found)).includes("run.json")) return found;
      await new Promise((done) => setTimeout(done, 200));
    }
    assert.fail("no trial has begun");
  })();
  await page.context().close();
  await server.stop();
  server = undefined;
  const bundle = JSON.parse(readFileSync(join(results, s.out, trial, "run.json"), "utf8"));
  assert.equal(bundle.state, "interrupted");
  const kept = JSON.parse(readFileSync(join(results, ".queue", "queue.json"), "utf8"));
  assert.equal(kept.submissions.find((x) => x.id === "5").state, "interrupted");
});
