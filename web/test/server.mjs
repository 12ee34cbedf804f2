// What the tests need: a directory of bundles, cnsbench serve on it, and a browser.
import { execFileSync, spawn } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

import { chromium } from "playwright-core";

const root = resolve(import.meta.dirname, "../..");
export const program = process.env.CNSBENCH_BIN ?? join(root, "bin/cnsbench");
export const out = resolve(process.env.OUT ?? join(root, "out"), "web");
export const data = join(out, "data");
const kept = join(root, "test/e2e/testdata/kept-2026-11");

export const hostileName = `<img src=x onerror="window.hit=1"><script>window.hit=1</script>`;

// edit changes the run.json of a bundle.
function edit(bundle, change) {
  const file = join(data, bundle, "run.json");
  const run = JSON.parse(readFileSync(file, "utf8"));
  change(run);
  writeFileSync(file, JSON.stringify(run));
}

// makeData fills the directory: two runs to compare, a study, one of hostile names, one with a link out of it, one
// that cannot be read.
export function makeData() {
  rmSync(data, { recursive: true, force: true });
  mkdirSync(join(out, "shots"), { recursive: true });
  for (const name of ["before", "after", "hostile <b>&'\"%2F", "linked"])
    cpSync(join(kept, "bundle"), join(data, name), { recursive: true });
  cpSync(join(kept, "study"), join(data, "study"), { recursive: true });
  edit("after", (r) => {
    r.runID = "after001";
  });
  edit("hostile <b>&'\"%2F", (r) => {
    r.runID = "hostile1";
    r.name = hostileName;
  });
  symlinkSync("/etc/passwd", join(data, "linked", "raw", "passwd"));
  mkdirSync(join(data, "broken"));
  writeFileSync(join(data, "broken", "run.json"), "{");
}

export const json = (...args) =>
  JSON.parse(
    execFileSync(program, [...args, "--output", "json"], { cwd: data, encoding: "utf8", maxBuffer: 64 << 20 }),
  );

// serve starts the server on a free port of the loopback address. login is an address of it with its token, if serve has
// made one.
export async function serve(dir, ...flags) {
  const child = spawn(program, ["serve", dir, "--listen", "127.0.0.1:0", ...flags], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const printed = await new Promise((done, fail) => {
    let text = "";
    child.stdout.on("data", (b) => {
      text += b;
      const found = /https?:\/\/[^\s]+/.exec(text);
      if (found) done(found[0]);
    });
    child.once("exit", (code) => fail(new Error(`cnsbench serve ended with status ${code}`)));
  });
  const [url, query] = printed.split("?");
  const token = new URLSearchParams(query).get("token");
  return {
    url,
    headers: token ? { Authorization: `Bearer ${token}` } : {},
    login(path) {
      const address = new URL(path, url);
      if (token) address.searchParams.set("token", token);
      return address.href;
    },
    stop: () =>
      new Promise((done) => {
        child.once("exit", done);
        child.kill("SIGTERM");
      }),
  };
}

export const browse = () =>
  chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: process.getuid() === 0 ? ["--no-sandbox"] : [],
  });
