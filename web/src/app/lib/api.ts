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
export type Overlay = Schemas["Overlay"];
export type Series = Schemas["Series"];
export type SeriesRun = Schemas["SeriesRun"];
export type History = Schemas["CompareHistory"];
export type Change = Schemas["CompareChange"];
export type Distribution = Schemas["CompareDistribution"];
export type Update = Schemas["Update"];
export type Status = Schemas["Status"];
export type Point = Schemas["Point"];
export type LiveOp = Schemas["LiveOp"];
export type Library = Schemas["Library"];
export type Workload = Schemas["Workload"];
export type Start = Schemas["Start"];
export type Check = Schemas["Check"];
export type Problem = Schemas["ParseProblem"];
export type Queue = Schemas["Queue"];
export type Host = Schemas["Host"];
export type Submission = Schemas["Submission"];

// request sends a request to the API. The error has the server's words.
async function request<T>(path: string, init?: RequestInit): Promise<T> {
  const answer = await fetch(`/api/v1/${path}`, init);
  if (!answer.ok) {
    const problem = (await answer.json().catch(() => ({}))) as {
      detail?: string;
      error?: string;
      errors?: { message?: string }[];
    };
    const details = (problem.errors ?? []).map((e) => e.message).join("; ");
    const text = problem.detail ?? problem.error ?? `${answer.status} ${answer.statusText}`;
    throw new Error(details ? `${text}: ${details}` : text);
  }
  return (answer.status === 204 ? undefined : await answer.json()) as T;
}

const get = <T>(path: string) => request<T>(path);
const send = <T>(method: string, path: string, body: unknown = {}, signal?: AbortSignal) =>
  request<T>(path, {
    method,
    headers: { "Content-Type": "application/json" },
    body: method === "DELETE" ? undefined : JSON.stringify(body),
    signal,
  });

const runs = (ids: string[]) => new URLSearchParams(ids.map((id) => ["run", id])).toString();

export const listRuns = () => get<List>("runs");
export const cards = (ids: string[]) => get<Card[]>(`cards?${runs(ids)}`);
export const compare = (ids: string[]) => get<Comparisons>(`compare?${runs(ids)}`);
export const responses = (ids: string[]) => get<Overlay[]>(`responses?${runs(ids)}`);
export const historyPath = (q: URLSearchParams) => `/api/v1/history?${q}`;
export const history = (q: URLSearchParams) => get<Series>(`history?${q}`);
export const study = (id: string) => get<StudyState>(`studies/${encodeURIComponent(id)}`);
export const eventsPath = (id: string) => `/api/v1/runs/${encodeURIComponent(id)}/events`;

export const library = () => get<Library>("library");
export const schema = () => get<object>("schema");
export type Draft = Schemas["Draft"];
export const validate = (draft: Draft, signal: AbortSignal) => send<Check>("POST", "validate", draft, signal);

const submissionPath = (id: string, what = "") => `queue/${encodeURIComponent(id)}${what}`;
export const queue = () => get<Queue>("queue");
export const submission = (id: string) => get<Submission>(submissionPath(id));
export const submit = (draft: Draft, name: string) =>
  send<Submission>("POST", "queue", name ? { ...draft, name } : draft);
export const resubmit = (id: string) => send<Submission>("POST", submissionPath(id, "/resubmit"));
export const cancel = (id: string) => send<void>("POST", submissionPath(id, "/cancel"));
export const move = (id: string, by: number) => send<void>("POST", submissionPath(id, "/move"), { by });
export const forget = (id: string) => send<void>("DELETE", submissionPath(id));
export const pause = (paused: boolean) => send<void>("PUT", "queue", { paused });

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
