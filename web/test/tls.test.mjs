// Walks the pages of cnsbench serve with TLS and a token in Chromium, a live run included.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import http2 from "node:http2";
import https from "node:https";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";

import { browse, out, program, serve } from "./server.mjs";
import { open, wait } from "./walk.mjs";

const data = join(out, "tls-data");
const token = "correct horse battery staple";
const kept = resolve(import.meta.dirname, "../../test/e2e/testdata/kept-2026-11");
const credentials = (password) => ({ ignoreHTTPSErrors: true, httpCredentials: { username: "anyone", password } });
let server, browser;

before(async () => {
  rmSync(data, { recursive: true, force: true });
  mkdirSync(data, { recursive: true });
  for (const id of ["one", "two"]) cpSync(join(kept, "bundle"), join(data, id), { recursive: true });
  cpSync(join(kept, "study"), join(data, "study"), { recursive: true });
  writeFileSync(join(out, "token"), `${token}\n`, { mode: 0o600 });
  server = await serve(data, "--auth", "token", "--token-file", join(out, "token"), "--tls-self-signed");
  browser = await browse();
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

const show = (path, password = token) => open(browser, server.url + path, credentials(password));

// ask sends one request over plain HTTP or TLS.
const ask = (protocol, path, headers = {}) =>
  new Promise((done, fail) => {
    const { hostname, port } = new URL(server.url);
    protocol
      .get({ hostname, port, path, headers, rejectUnauthorized: false }, (answer) => {
        let text = "";
        answer.on("data", (b) => (text += b));
        answer.on("end", () => done({ status: answer.statusCode, headers: answer.headers, text }));
      })
      .on("error", fail);
  });
const basic = (password) => ({ Authorization: `Basic ${Buffer.from(`me:${password}`).toString("base64")}` });

test("all pages are served with the token as the password", async () => {
  assert.match(server.url, /^https:/);
  for (const [path, ready] of Object.entries({
    "": ".rows li svg",
    "compare?run=one&run=study/1_parallelism=1_r1": ".message, table",
    "runs/one/": ".cnsbench-bar",
    "studies/study/": ".matrix a",
    "study-report/study/": ".cnsbench-bar",
    "history?folder=study": ".u-over, .message",
    "api/v1/openapi.yaml": null,
  })) {
    if (ready === null) {
      assert.match((await ask(https, `/${path}`, basic(token))).text, /^components:/);
      continue;
    }
    const page = await show(path);
    await page.waitForSelector(ready, wait);
    const protocols = await page.evaluate(() =>
      ["navigation", "resource"].flatMap((t) => performance.getEntriesByType(t)).map((e) => e.nextHopProtocol),
    );
    assert.deepEqual([...new Set(protocols)], ["h2"], path);
    // Chromium reports the first answer, which asks for the password, and comparisons that are refused.
    assert.deepEqual(
      page.wrong.filter((e) => !/status of (401|422)/.test(e)),
      [],
      path,
    );
    await page.context().close();
  }
});

test("a live run is followed over TLS until its report", { timeout: 600_000 }, async () => {
  const run = spawn(program, ["run", join(import.meta.dirname, "live.yaml"), "--out", join(data, "live")], {
    cwd: out,
    stdio: "ignore",
  });
  const ended = new Promise((done) => run.once("exit", done));
  try {
    const list = await show("?show=running");
    await list.locator('a[href="/runs/live/"]').click();
    await list.waitForFunction(() => /snap/.test(document.querySelector("table")?.textContent ?? ""), null, wait);
    const seen = await list.textContent(".progress");
    await list.waitForFunction((was) => document.querySelector(".progress").textContent !== was, seen, wait);
    assert.equal(await ended, 0);
    await list.waitForSelector(".cnsbench-bar", wait);
    await list.context().close();
  } finally {
    if (run.exitCode === null) run.kill("SIGINT");
    await ended;
  }
});

// connect opens one HTTP/2 connection. Its ask resolves with the answer, its follow with an event stream.
function connect(url) {
  const session = http2.connect(url, { rejectUnauthorized: false });
  const send = (method, path, body) => {
    const stream = session.request({
      ":method": method,
      ":path": path,
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    });
    stream.setEncoding("utf8").end(body === undefined ? undefined : JSON.stringify(body));
    return stream;
  };
  return {
    session,
    ask: (method, path, body) =>
      new Promise((done, fail) => {
        const stream = send(method, path, body).on("error", fail);
        let status,
          text = "";
        stream.on("response", (h) => (status = h[":status"]));
        stream.on("data", (b) => (text += b));
        stream.on("end", () => done({ status, text, json: () => JSON.parse(text) }));
      }),
    follow(path) {
      const reader = { stream: send("GET", path), text: "", events: 0 };
      reader.stream.on("data", (b) => {
        reader.text += b;
        reader.events = reader.text.split("\n\n").length - 1;
      });
      reader.ended = new Promise((done) => reader.stream.once("close", done));
      return reader;
    },
  };
}

// until waits for what a function returns.
async function until(what, found) {
  for (const end = Date.now() + wait.timeout; Date.now() < end; await new Promise((d) => setTimeout(d, 100))) {
    const value = await found();
    if (value) return value;
  }
  assert.fail(`${what}: not within ${wait.timeout} ms`);
}

test("one HTTP/2 connection carries ten event streams, leaves, refusals and an abort", async () => {
  const dir = join(out, "h2-data");
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir);
  const own = await serve(
    dir,
    "--allow-run",
    "--auth",
    "token",
    "--token-file",
    join(out, "token"),
    "--tls-self-signed",
  );
  const { session, ask, follow } = connect(own.url);
  let goaway = false;
  session.on("goaway", () => (goaway = true));
  try {
    const text = readFileSync(join(import.meta.dirname, "live.yaml"), "utf8").replace("runtime: 25", "runtime: 600");
    assert.equal((await ask("POST", "/api/v1/queue", { text, engine: "local" })).status, 201);
    assert.equal(session.alpnProtocol, "h2");
    const queue = async () => (await ask("GET", "/api/v1/queue")).json().submissions[0];
    const { out: id } = await until("the run begins", async () => ((s) => s.begun && s)(await queue()));
    const events = `/api/v1/runs/${id}/events`;
    await until("the run is live", async () => (await ask("GET", `/runs/${id}/`)).text.includes('id="app"'));
    const readers = Array.from({ length: 10 }, () => follow(events));
    await until("each reader has events", () => readers.every((r) => r.events >= 2));
    const left = readers.splice(0, 4);
    for (const r of left) r.stream.close(http2.constants.NGHTTP2_CANCEL);
    await Promise.all(left.map((r) => r.ended));
    assert.equal((await ask("POST", "/api/v1/queue/1/cancel")).status, 415);
    const had = readers.map((r) => r.events);
    await until("the others go on", () => readers.every((r, i) => r.events > had[i]));
    assert.equal((await ask("POST", "/api/v1/queue/1/cancel", {})).status, 204);
    await Promise.all(readers.map((r) => r.ended));
    for (const r of readers) assert.match(r.text, /"phase":"ended"/);
    await until("the submission is cancelled", async () => (await queue()).state === "cancelled");
    assert.equal(goaway, false);
  } finally {
    session.destroy();
    await own.stop();
  }
});

test("without the token nothing is served, and the answer says what is wanted", async () => {
  for (const headers of [{}, basic(""), basic("wrong"), { Authorization: "Bearer wrong" }]) {
    for (const path of ["/", "/api/v1/runs", "/api/v1/runs/one/events", "/assets/app.js", "/history?name=kept"]) {
      const answer = await ask(https, path, headers);
      assert.equal(answer.status, 401, path);
      assert.match(answer.text, /authentication failed: want the token as the password/);
      assert.match(answer.headers["www-authenticate"], /^Basic realm="cnsbench: the token is the password"/);
      assert.doesNotMatch(answer.text, /kept|app/);
    }
  }
  assert.equal((await ask(https, "/api/v1/runs", { Authorization: `Bearer ${token}` })).status, 200);
  const page = await show("", "wrong");
  assert.equal(page.response.status(), 401);
  assert.match(await page.textContent("body"), /want the token as the password/);
  await page.context().close();
});

test("plain HTTP is refused", async () => {
  for (const headers of [{}, basic(token)]) {
    const answer = await ask(http, "/api/v1/runs", headers);
    assert.equal(answer.status, 400);
    assert.match(answer.text, /Client sent an HTTP request to an HTTPS server/);
  }
});
