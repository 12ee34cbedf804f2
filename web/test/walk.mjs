// What the walks of pages share.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
export const wait = { timeout: 120_000 };
export const themes = ["light", "dark"];
export const widths = [1280, 768, 390];

/** open opens a page in a context of its own; page.wrong has the errors in it. */
export async function open(browser, url, { width = 1280, theme = "light", ...more } = {}) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: theme, ...more });
  context.setDefaultTimeout(wait.timeout);
  const page = await context.newPage();
  page.wrong = [];
  page.on("pageerror", (e) => page.wrong.push(String(e)));
  page.on("console", (m) => m.type() === "error" && page.wrong.push(m.text()));
  page.response = await page.goto(url, wait);
  return page;
}

/** serious returns what axe-core finds that is serious or critical. */
export async function serious(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return violations
    .filter((v) => ["serious", "critical"].includes(v.impact))
    .map(
      (v) =>
        `${v.id}: ${v.nodes
          .slice(0, 3)
          .map((n) => n.html.slice(0, 160))
          .join(" | ")}`,
    );
}

export const texts = async (page, selector) =>
  (await page.locator(selector).allTextContents()).map((t) => t.replace(/\s+/g, " ").trim());

/** tooWide returns by how many pixels a page is wider than the window. */
export const tooWide = (page) => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
