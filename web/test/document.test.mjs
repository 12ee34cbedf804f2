// Edits every place of the examples and suites as the form does: the value is the new one, and all other lines stay.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";

import ts from "typescript";

const root = resolve(import.meta.dirname, "../..");
const module = await (async () => {
  const source = readFileSync(join(root, "web/src/app/lib/form/document.ts"), "utf8");
  const options = { module: "ESNext", target: "ES2022", verbatimModuleSyntax: true };
  const dir = join(root, "web/node_modules/.cnsbench-test"); // where the import of yaml is found
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, "document.mjs"), ts.transpileModule(source, { compilerOptions: options }).outputText);
  return import(join(dir, "document.mjs"));
})();
const { at, edit, read } = module;

const files = ["examples", "library/suites"].flatMap((dir) =>
  readdirSync(join(root, dir))
    .filter((f) => f.endsWith(".yaml"))
    .map((f) => join(root, dir, f)),
);

// places yields all paths below a value, with what is there.
function* places(value, path = []) {
  yield [path, value];
  if (typeof value === "object")
    for (const key of Array.isArray(value) ? value.keys() : Object.keys(value))
      yield* places(value[key], [...path, key]);
}

// added counts the lines that were not there before.
function added(before, after) {
  const old = new Set(before.split("\n"));
  return after.split("\n").filter((l) => !old.has(l)).length;
}

test("a value is replaced in its place", () => {
  let n = 0;
  for (const file of files) {
    const text = readFileSync(file, "utf8");
    for (const [path, value] of places(read(text).value)) {
      if (typeof value !== "string" || path.length < 2 || text.includes("&")) continue;
      for (const [wanted, plain] of [
        ["abc", false],
        ["5", true],
        ["5", false],
        [`a: b, {c} # 'x' "y"`, false],
      ]) {
        const edited = edit(text, path, wanted, plain);
        assert.equal(at(read(edited).value, path), wanted, `${file} ${path}`);
        const most = value.includes("\n") ? 2 : 1;
        assert.ok(added(text, edited) <= most, `${file} ${path}: other lines changed:\n${edited}`);
        n++;
      }
    }
  }
  assert.ok(n > 1000, `only ${n} edits`);
});

test("a key or an item is added behind the others", () => {
  for (const file of files) {
    const text = readFileSync(file, "utf8");
    for (const [path, value] of places(read(text).value)) {
      if (typeof value !== "object" || path.length < 1) continue;
      const where = [...path, Array.isArray(value) ? value.length : "newKey"];
      const edited = edit(text, where, "7", true);
      assert.equal(at(read(edited).value, where), "7", `${file} ${where}`);
      assert.ok(added(text, edited) <= 1, `${file} ${where}: other lines changed:\n${edited}`);
    }
  }
});

test("what is removed is gone, and the rest stays", () => {
  for (const file of files) {
    const text = readFileSync(file, "utf8");
    for (const [path] of places(read(text).value)) {
      if (path.length < 2 || path.at(-1) === "name" || text.includes("&")) continue;
      const edited = edit(text, path, undefined);
      const left = read(edited);
      assert.equal(left.error, "", `${file} ${path}`);
      const list = Array.isArray(at(read(text).value, path.slice(0, -1)));
      if (!list) assert.equal(at(left.value, path), undefined, `${file} ${path}`);
      assert.ok(edited.length < text.length, `${file} ${path}: nothing is removed`);
    }
  }
});

test("a text is quoted where YAML takes it for something else", () => {
  const text = "kind: Benchmark\nspec:\n  a: x\n";
  for (const [value, plain, want] of [
    ["true", false, `"true"`],
    ["true", true, "true"],
    ["16", false, `"16"`],
    ["16", true, "16"],
    ["016", true, `"016"`],
    ["1e", true, `"1e"`],
    ["null", true, `"null"`],
    ["512Mi", false, "512Mi"],
    ["1m30s", false, `"1m30s"`],
    ["a\nb", false, String.raw`"a\nb"`],
  ])
    assert.match(edit(text, ["spec", "a"], value, plain), new RegExp(`  a: ${want.replace(/\\/g, "\\\\")}\n`));
  assert.match(edit(text, ["spec", "b", "c"], "16", true), /\n {2}b:\n {4}c: 16\n/);
  assert.equal(edit("a: [", ["a"], "x"), "a: [");
  assert.notEqual(read("kind: Benchmark\nspec: *none\n").error, "");
});
