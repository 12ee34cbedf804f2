// The JSON Schema of a Benchmark, as the form reads it.
import type { File, New, Path } from "./document";

export interface Node {
  type?: string | string[];
  description?: string;
  default?: unknown;
  enum?: string[];
  properties?: Record<string, Node>;
  items?: Node;
  additionalProperties?: Node | boolean;
  required?: string[];
  oneOf?: { required?: string[] }[];
  minimum?: number;
  minItems?: number;
  pattern?: string;
  $ref?: string;
  definitions?: Record<string, Node>;
  if?: Node;
  then?: Node;
  else?: Node;
  const?: string;
}

export type Shape = "scalar" | "boolean" | "choice" | "object" | "map" | "list" | "other";

// resolve follows a reference.
export function resolve(root: Node, node: Node): Node {
  const name = node.$ref?.replace("#/definitions/", "");
  return name ? (root.definitions?.[name] ?? {}) : node;
}

// ofKind returns the schema of the documents of a kind.
export function ofKind(root: Node, kind: File["kind"]): Node | undefined {
  for (let n: Node | undefined = root; n; n = n.else) {
    if (n.if?.properties?.["kind"]?.const === kind) return n.then;
  }
  return undefined;
}

const types = (n: Node) => (Array.isArray(n.type) ? n.type : [n.type ?? ""]);

export function shape(n: Node): Shape {
  if (n.enum) return "choice";
  if (types(n).includes("boolean")) return "boolean";
  if (types(n).includes("object")) {
    if (n.properties) return "object";
    return typeof n.additionalProperties === "object" && shape(n.additionalProperties) === "scalar" ? "map" : "other";
  }
  if (types(n).includes("array")) return n.items ? "list" : "other";
  return ["string", "integer", "number"].some((t) => types(n).includes(t)) ? "scalar" : "other";
}

// plain says that numbers are written without quotes.
export const plain = (n: Node) => types(n).some((t) => ["integer", "number", "boolean"].includes(t));
export const numeric = (n: Node) => types(n).every((t) => ["integer", "number"].includes(t));

// alternatives are the properties of which exactly one is given.
export const alternatives = (n: Node): string[] =>
  (n.oneOf ?? []).flatMap((o) => (o.required?.length === 1 ? o.required : []));

// hint is the first sentence of a description, without the name that it begins with.
export function hint(name: string, n: Node): string {
  const text = (n.description ?? "").replace(/(?<![.:])\n(?!-)/g, " ").split(/(?<=\.) (?=[A-Z])|\n/)[0] ?? "";
  return text.startsWith(`${name} `) ? text.slice(name.length + 1).replace(/^(is|are) /, "") : text;
}

const startDuration = "([0-9]+(\\.[0-9]+)?(ns";

// skeleton is a value to begin with: what is required, and the first alternative. names are those that a property can
// refer to.
export function skeleton(root: Node, name: string, node: Node, names: (property: string) => string[]): New {
  const n = resolve(root, node);
  const known = names(name)[0];
  switch (shape(n)) {
    case "choice":
      return n.enum?.[0] ?? "";
    case "boolean":
      return true;
    case "object": {
      const first = alternatives(n)[0];
      const keys = new Set([...(n.required ?? []), ...(first ? [first] : [])]);
      const of = (k: string) => (k === "name" ? `${name}-1` : skeleton(root, k, n.properties?.[k] ?? {}, names));
      return Object.fromEntries([...keys].map((k) => [k, of(k)]));
    }
    case "list":
      return [skeleton(root, name.replace(/s$/, ""), n.items ?? {}, names)];
    case "scalar":
      if (known !== undefined) return known;
      if (numeric(n)) return Math.max(n.minimum ?? 1, 1);
      if (n.pattern?.includes(startDuration)) return "5s";
      if (types(n).length > 1) return "1Gi";
      return name;
  }
  return {};
}

// pathText is a path as the validator writes it: spec.actions[0].name.
export const pathText = (path: Path): string =>
  path.map((p, i) => (typeof p === "number" ? `[${p}]` : i > 0 ? `.${p}` : p)).join("");
