// The text of a file, which the form edits in place: comments and layout of what it does not change stay.
import {
  isMap,
  isPair,
  isScalar,
  isSeq,
  parseAllDocuments,
  stringify,
  type Document,
  type ParsedNode,
  type YAMLMap,
  type YAMLSeq,
} from "yaml";

export type Path = (string | number)[];
// Scalars are as written: 5s, 16, true.
export type Value = string | Value[] | { [key: string]: Value };
// New values may have numbers and booleans: a string "16" is then written with quotes.
export type New = string | number | boolean | New[] | { [key: string]: New };

export interface File {
  kind: "Benchmark" | "Study" | "";
  value: Value; // of the Benchmark or Study
  error: string; // why the text is no YAML; empty: it is
  classes: { kind: string; name: string }[]; // documents beside it
}

type Doc = Document<ParsedNode>;

// All scalars are strings, as written.
const parse = (text: string) => parseAllDocuments(text, { schema: "failsafe" }) as Doc[];
const field = (v: unknown, key: string): unknown =>
  typeof v === "object" && v !== null ? (v as Record<string, unknown>)[key] : undefined;

// mainOf returns the Benchmark or the Study of a text.
const mainOf = (docs: Doc[]) => docs.find((d) => ["Benchmark", "Study"].includes(String(field(d.toJS(), "kind"))));

export function read(text: string): File {
  const none = (error: string): File => ({ kind: "", value: {}, error, classes: [] });
  try {
    return readValid(parse(text)) ?? none("");
  } catch (e) {
    return none((e as Error).message); // an alias without an anchor, for example
  }
}

function readValid(docs: Doc[]): File | undefined {
  for (const e of docs.flatMap((d) => d.errors)) throw e;
  const value = mainOf(docs)?.toJS() as Value | undefined;
  const classes = docs
    .map((d) => d.toJS() as unknown)
    .map((v) => ({ kind: String(field(v, "kind") ?? ""), name: String(field(field(v, "metadata"), "name") ?? "") }))
    .filter((c) => c.name);
  return value === undefined ? undefined : { kind: field(value, "kind") as File["kind"], value, error: "", classes };
}

// at returns the value at a path, if there is one.
export function at(value: Value | undefined, path: Path): Value | undefined {
  let v: unknown = value;
  for (const key of path) v = field(v, String(key));
  return v as Value | undefined;
}

// scalar writes a scalar. A text is quoted if YAML could take it for another type; plain says that this is wanted.
export function scalar(text: string, plain: boolean): string {
  const word = /^[A-Za-z_/][\w./+%-]*$/.test(text) && !/^(true|false|null|yes|no|on|off|y|n)$/i.test(text);
  const amount = /^[0-9]+(\.[0-9]+)?[A-Za-z]+$/.test(text) && !/e$/i.test(text); // 512Mi, 5s
  return word || amount || (plain && other.test(text)) ? text : JSON.stringify(text);
}

// other matches numbers and booleans.
const other = /^(-?(0|[1-9][0-9]*)(\.[0-9]+)?|true|false)$/;
const typed = (text: string): New => (other.test(text) ? (JSON.parse(text) as number | boolean) : text);

// edit returns the text with a new value at a path of the Benchmark or Study; undefined removes what is there. A
// collection that becomes empty is removed, too. The last element of a path may be the length of a list.
export function edit(text: string, path: Path, value: New | undefined, plain = false): string {
  const docs = parse(text);
  const doc = mainOf(docs);
  if (!doc || doc.errors.length > 0) return text;
  const parent = doc.getIn(path.slice(0, -1), true);
  if (value === undefined) {
    if (doc.getIn(path, true) === undefined) return text;
    if ((isMap(parent) || isSeq(parent)) && parent.items.length === 1 && path.length > 2)
      return edit(text, path.slice(0, -1), undefined);
  } else if (parent === undefined || (isScalar(parent) && parent.value === "")) {
    const last = path[path.length - 1]!;
    const inner = plain && typeof value === "string" ? typed(value) : value;
    return edit(text, path.slice(0, -1), typeof last === "number" ? [inner] : { [last]: inner });
  }
  // The whole is written again where the place cannot be edited alone.
  const candidate = splice(text, doc, path, value, plain);
  if (value === undefined) doc.deleteIn(path);
  else doc.setIn(path, typeof value === "string" ? value : doc.createNode(normal(value)));
  try {
    if (candidate !== undefined && JSON.stringify(read(candidate).value) === JSON.stringify(doc.toJS()))
      return candidate;
    return docs.map((d) => d.toString({ lineWidth: 0, flowCollectionPadding: false })).join("");
  } catch {
    return text; // another place refers to this one
  }
}

// normal writes numbers and booleans as text.
const normal = (v: New): Value =>
  Array.isArray(v)
    ? v.map(normal)
    : typeof v === "object"
      ? Object.fromEntries(Object.entries(v).map(([k, x]) => [k, normal(x)]))
      : String(v);

// splice changes the lines of one place; undefined: it cannot.
function splice(text: string, doc: Doc, path: Path, value: New | undefined, plain: boolean): string | undefined {
  const node = doc.getIn(path, true);
  const parent = doc.getIn(path.slice(0, -1), true);
  const last = path[path.length - 1]!;
  if (value !== undefined && node !== undefined) {
    if (!isScalar(node) || !node.range || typeof value === "object") return undefined;
    const space = text[node.range[0] - 1] === ":" ? " " : "";
    const written = typeof value === "string" ? scalar(value, plain) : String(value);
    return text.slice(0, node.range[0]) + space + written + text.slice(node.range[1]);
  }
  if (!isMap(parent) && !isSeq(parent)) return undefined;
  if (value === undefined) return without(text, parent, last);
  const item: New = isSeq(parent) ? [value] : { [last]: value };
  if (parent.flow) {
    const close = parent.range![1] - 1;
    const flow = typeof value === "string" ? scalar(value, plain) : inline(value);
    const comma = parent.items.length > 0 ? ", " : "";
    const written = isSeq(parent) ? flow : `${scalar(String(last), false)}: ${flow}`;
    return text.slice(0, close) + comma + written + text.slice(close);
  }
  const written =
    typeof value === "string" && isMap(parent)
      ? `${scalar(String(last), false)}: ${scalar(value, plain)}\n`
      : stringify(item, { lineWidth: 0 });
  const to = lineEnd(text, endOf(parent));
  const indent = " ".repeat(columnOf(text, startOf(parent)));
  const before = to > 0 && text[to - 1] !== "\n" ? "\n" : "";
  return text.slice(0, to) + before + written.replace(/^(?=.)/gm, indent) + text.slice(to);
}

// inline writes a collection on one line.
const inline = (v: New): string =>
  Array.isArray(v)
    ? `[${v.map(inline).join(", ")}]`
    : typeof v === "object"
      ? `{${Object.entries(v)
          .map(([k, x]) => `${scalar(k, false)}: ${inline(x)}`)
          .join(", ")}}`
      : typeof v === "string"
        ? scalar(v, false)
        : String(v);

// without removes the lines of an item of a block collection.
function without(text: string, parent: YAMLMap | YAMLSeq, key: string | number): string | undefined {
  const i = isSeq(parent)
    ? Number(key)
    : parent.items.findIndex((p) => isScalar(p.key) && String(p.key.value) === String(key));
  const item = parent.items[i];
  if (item === undefined || parent.items.length === 1) return undefined;
  const start = itemStart(item);
  if (parent.flow) {
    const [from, to] = i > 0 ? [endOf(parent.items[i - 1]), endOf(item)] : [start, itemStart(parent.items[1])];
    return text.slice(0, from) + text.slice(to);
  }
  return text.slice(0, text.lastIndexOf("\n", start - 1) + 1) + text.slice(lineEnd(text, endOf(item)));
}

const itemStart = (item: unknown): number => ((isPair(item) ? item.key : item) as ParsedNode).range![0];
const startOf = (node: YAMLMap | YAMLSeq): number => (isMap(node) ? itemStart(node.items[0]) : node.range![0]);

// endOf returns where the last scalar of something ends: its comment is behind it.
function endOf(node: unknown): number {
  if ((isMap(node) || isSeq(node)) && !node.flow && node.items.length > 0) return endOf(node.items.at(-1));
  if (isPair(node)) return endOf(node.value ?? node.key);
  return (node as ParsedNode).range![1];
}

// lineEnd returns where the line after the one of an offset begins.
function lineEnd(text: string, offset: number): number {
  const end = text.indexOf("\n", Math.max(0, offset - 1));
  return end < 0 ? text.length : end + 1;
}

const columnOf = (text: string, offset: number) => offset - (text.lastIndexOf("\n", offset - 1) + 1);
