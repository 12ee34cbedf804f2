// Debian's chromium, with pages from strings and files.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

export const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

/** launch starts the browser; close ends it and removes the files. */
export async function launch() {
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  const dir = mkdtempSync(join(tmpdir(), "cnsbench-web-"));
  let files = 0,
    current;
  const session = await browser.newBrowserCDPSession();
  return {
    dir,
    /** cpu is the CPU time of each kind of process so far, in s. */
    async cpu() {
      const { processInfo } = await session.send("SystemInfo.getProcessInfo");
      return Object.fromEntries(
        ["renderer", "GPU"].map((type) => [
          type,
          processInfo.filter((p) => p.type === type).reduce((sum, p) => sum + p.cpuTime, 0),
        ]),
      );
    },
    /** open shows a page in place of the one before; page.errors has the errors in it. */
    async open(html, options = {}) {
      await current?.close();
      const context = (current = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options }));
      const page = await context.newPage();
      page.setDefaultTimeout(60_000); // a busy machine
      page.errors = [];
      page.on("pageerror", (e) => page.errors.push(String(e)));
      page.on("console", (m) => m.type() === "error" && page.errors.push(m.text()));
      page.on("request", (r) => r.url().startsWith("file:") || page.errors.push(`request of ${r.url()}`));
      const file = join(dir, `${++files}.html`);
      writeFileSync(file, html);
      await page.goto(pathToFileURL(file).href);
      return page;
    },
    async close() {
      await browser.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
