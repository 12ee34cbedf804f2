// Numbers with units, as the labels of the report have them.

export interface Amount {
  readonly value: number;
  readonly unit: string; // "ns", "B", "B/s", "/s", "" or the tool's own
}

const prefixes: Record<string, number> = {
  "": 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
};
const times: Record<string, number> = { ns: 1, µs: 1e3, us: 1e3, ms: 1e6, s: 1e9, min: 60e9, h: 3600e9 };

/** parse reads a label such as "1.5 ms", "20 MiB/s" or "12k/s". Times are in ns. */
export function parse(label: string): Amount | undefined {
  const m = /^(?:[≥≤>×~±] ?)?([+-]?[\d.]+(?:e[+-]?\d+)?) ?(.*)$/.exec(label.trim());
  const value = Number(m?.[1] ?? NaN);
  if (!m || Number.isNaN(value)) return undefined;
  const unit = m[2] ?? "";
  const time = times[unit];
  if (time !== undefined) return { value: value * time, unit: "ns" };
  const scaled = /^(Ki|Mi|Gi|Ti|k|M|G|)(B\/s|B|\/s|)$/.exec(unit);
  if (scaled) return { value: value * (prefixes[scaled[1] ?? ""] ?? 1), unit: scaled[2] ?? "" };
  return /^[^\d]*$/.test(unit) ? { value, unit } : undefined;
}

/** format writes a value with so many significant digits, and all before the point. */
export function format(value: number, unit: string, digits = 3): string {
  if (!Number.isFinite(value)) return "–";
  let list: [string, number][] = [
    ["G", 1e9],
    ["M", 1e6],
    ["k", 1e4],
    ["", 0],
  ];
  if (unit === "ns")
    list = [
      ["s", 1e9],
      ["ms", 1e6],
      ["µs", 1e3],
      ["ns", 0],
    ];
  if (unit.startsWith("B"))
    list = [
      ["Ti", 2 ** 40],
      ["Gi", 2 ** 30],
      ["Mi", 2 ** 20],
      ["Ki", 2 ** 10],
      ["", 0],
    ];
  const [name, from] = list.find((u) => Math.abs(value) >= u[1]) ?? ["", 0];
  const by = name === "k" ? 1e3 : Math.max(1, from);
  const text = significant(value / by, digits);
  if (unit === "ns") return `${text} ${name}`;
  if (unit.startsWith("B")) return `${text} ${name}${unit}`;
  return text + name + (unit === "" || unit.startsWith("/") ? unit : ` ${unit}`);
}

function significant(v: number, digits: number): string {
  if (v === 0) return "0";
  const before = Math.floor(Math.log10(Math.abs(v)) + 1e-12) + 1;
  const places = Math.min(20, Math.max(0, digits - before));
  const text = v.toFixed(places);
  return places > 0 ? text.replace(/\.?0+$/, "") : text;
}
