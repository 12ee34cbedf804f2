// The requests of the API. Its types are generated: api.d.ts.
import type { components } from "../api";

type Schemas = components["schemas"];
export type List = Schemas["List"];
export type Run = Schemas["Run"];
export type Card = Schemas["Card"];
export type Spark = Schemas["Spark"];
export type StudyState = Schemas["StudyState"];
export type Comparison = Schemas["CompareComparison"];
export type Comparisons = Schemas["CompareResult"];
export type Series = Schemas["Series"];
export type SeriesRun = Schemas["SeriesRun"];
export type History = Schemas["CompareHistory"];
export type Change = Schemas["CompareChange"];
export type Distribution = Schemas["CompareDistribution"];
export type Update = Schemas["Update"];
export type Status = Schemas["Status"];
export type Point = Schemas["Point"];
export type LiveOp = Schemas["LiveOp"];

// get requests a path of the API. The error has the server's words.
async function get<T>(path: string): Promise<T> {
  const answer = await fetch(`/api/v1/${path}`);
  if (!answer.ok) {
    const problem = (await answer.json().catch(() => ({}))) as { detail?: string; error?: string };
    throw new Error(problem.detail ?? problem.error ?? `${answer.status} ${answer.statusText}`);
  }
  return (await answer.json()) as T;
}

const runs = (ids: string[]) => new URLSearchParams(ids.map((id) => ["run", id])).toString();

export const listRuns = () => get<List>("runs");
export const cards = (ids: string[]) => get<Card[]>(`cards?${runs(ids)}`);
export const compare = (ids: string[]) => get<Comparisons>(`compare?${runs(ids)}`);
export const historyPath = (q: URLSearchParams) => `/api/v1/history?${q}`;
export const history = (q: URLSearchParams) => get<Series>(`history?${q}`);
export const study = (id: string) => get<StudyState>(`studies/${encodeURIComponent(id)}`);
export const eventsPath = (id: string) => `/api/v1/runs/${encodeURIComponent(id)}/events`;

// page returns the path of a page: /runs/ID/, /studies/ID/. Slashes of an ID stay.
export const page = (kind: "runs" | "studies" | "study-report", id: string) =>
  `/${kind}/${id.split("/").map(encodeURIComponent).join("/")}/`;
export const historyOf = (name: string) => `/history?${new URLSearchParams({ name })}`;
export const historyPage = (ids: string[]) => `/history?${runs(ids)}`;
export const comparePage = (ids: string[]) => `/compare?${runs(ids)}`;

// idOfPath returns the ID in the path of a page.
export function idOfPath(path: string): string {
  const rest = path.split("/").slice(2).join("/").replace(/\/$/, "");
  try {
    return decodeURIComponent(rest);
  } catch {
    return rest;
  }
}
