// Figures as text. The server's sentences are shown as they are; this is for what the page computes itself.

// digits formats with three significant digits, without an exponent.
export function digits(x: number): string {
  if (!Number.isFinite(x)) return "–";
  const size = Math.abs(x);
  if (size >= 100 || x === 0) return Math.round(x).toLocaleString("en");
  return String(Number(x.toPrecision(3)));
}

// duration formats seconds: "412 ms", "3.41 s", "5 min 20 s".
export function duration(s: number): string {
  const size = Math.abs(s);
  if (size === 0) return "0 s";
  if (size < 1e-6) return `${digits(s * 1e9)} ns`;
  if (size < 1e-3) return `${digits(s * 1e6)} µs`;
  if (size < 1) return `${digits(s * 1e3)} ms`;
  if (size < 100) return `${digits(s)} s`;
  const whole = Math.round(size);
  const h = Math.floor(whole / 3600),
    m = Math.floor((whole % 3600) / 60),
    rest = whole % 60;
  return h > 0 ? `${h} h ${m} min` : `${m} min ${rest} s`;
}

const binary = ["B", "KiB", "MiB", "GiB", "TiB"];

export function bytes(x: number): string {
  let i = 0;
  while (Math.abs(x) >= 1024 && i < binary.length - 1) {
    x /= 1024;
    i++;
  }
  return `${digits(x)} ${binary[i]}`;
}

// amount formats a value of a unit as the bundle names it.
export function amount(x: number | null | undefined, unit: string): string {
  if (x === null || x === undefined) return "–";
  switch (unit) {
    case "ns":
      return duration(x / 1e9);
    case "s":
      return duration(x);
    case "B":
      return bytes(x);
    case "B/s":
      return `${bytes(x)}/s`;
    case "":
      return digits(x);
    case "1/s":
      return `${digits(x)}/s`;
  }
  return `${digits(x)} ${unit}`;
}

// instant formats a time in the viewer's zone: 2026-11-26 07:51.
export function instant(text: string | undefined): string {
  if (!text || text.startsWith("0001")) return "–";
  const t = new Date(text);
  const two = (n: number) => String(n).padStart(2, "0");
  return `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())} ${two(t.getHours())}:${two(t.getMinutes())}`;
}

export const count = (n: number, one: string) => `${n.toLocaleString("en")} ${one}${n === 1 ? "" : "s"}`;
