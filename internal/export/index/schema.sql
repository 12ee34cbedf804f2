-- The tables of an index, version 4. Durations and instants are in ns; instants count from
-- the start of the run. NULL is unknown. docs/reference/export.md describes them.
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);

CREATE TABLE runs (
  run INTEGER PRIMARY KEY,      -- within this index
  path TEXT NOT NULL UNIQUE,    -- of the bundle, as found
  study TEXT,                   -- path of the study of which the run is a trial
  run_id TEXT NOT NULL,
  name TEXT NOT NULL,
  engine TEXT NOT NULL,
  state TEXT NOT NULL,          -- complete, interrupted, failed, incomplete
  reason TEXT NOT NULL,
  exit_code INTEGER NOT NULL,
  started TEXT NOT NULL,        -- wall-clock time of instant 0, UTC
  barrier_ns INTEGER,
  ended_ns INTEGER,
  seed TEXT NOT NULL,
  version TEXT NOT NULL,        -- of cnsbench
  host TEXT,
  kernel TEXT,
  spec TEXT NOT NULL            -- JSON: the Benchmark with its defaults
);

-- Runs that are trials of a study.
CREATE TABLE trials (
  run INTEGER PRIMARY KEY REFERENCES runs,
  occasion INTEGER NOT NULL,    -- from 1
  block INTEGER NOT NULL,       -- within the occasion, from 1
  repetition INTEGER NOT NULL,  -- number of the block in the whole study, from 1
  aa INTEGER NOT NULL           -- 1: of an A/A arm
);

CREATE TABLE levels (
  run INTEGER NOT NULL REFERENCES trials,
  factor TEXT NOT NULL,         -- short name
  value TEXT NOT NULL,
  drawn INTEGER NOT NULL,       -- 1: the factor is a distribution, and the value was drawn
  PRIMARY KEY (run, factor)
) WITHOUT ROWID;

CREATE TABLE verdicts (
  run INTEGER NOT NULL REFERENCES runs,
  name TEXT NOT NULL,
  expr TEXT NOT NULL,
  status TEXT NOT NULL,         -- pass, fail, noData, weak, error
  observed TEXT NOT NULL,
  message TEXT NOT NULL
);

CREATE TABLE flags (
  run INTEGER NOT NULL REFERENCES runs,
  name TEXT NOT NULL,
  severity TEXT NOT NULL,       -- info, warning, invalid
  evidence TEXT NOT NULL
);

CREATE TABLE ops (
  run INTEGER NOT NULL REFERENCES runs,
  op INTEGER NOT NULL,
  episode INTEGER NOT NULL,
  action TEXT NOT NULL,
  instance INTEGER NOT NULL,
  kind TEXT NOT NULL,
  target TEXT NOT NULL,
  object TEXT NOT NULL,
  node TEXT NOT NULL,
  outcome TEXT NOT NULL,        -- ok, error, timeout, censored, dropped
  code TEXT NOT NULL,
  message TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  intended_ns INTEGER,
  started_ns INTEGER,
  ended_ns INTEGER,
  response_ns INTEGER,          -- a lower bound of ops that timed out or are censored
  service_ns INTEGER,
  lateness_ns INTEGER,
  PRIMARY KEY (run, op)
) WITHOUT ROWID;

CREATE TABLE spans (
  run INTEGER NOT NULL,
  op INTEGER NOT NULL,
  name TEXT NOT NULL,           -- the call, or the milestone at the end
  from_milestone TEXT NOT NULL,
  volume TEXT NOT NULL,
  at_ns INTEGER NOT NULL,
  length_ns INTEGER NOT NULL,
  error_ns INTEGER NOT NULL
);

CREATE TABLE figures (
  run INTEGER NOT NULL REFERENCES runs,
  scope TEXT NOT NULL,          -- action, episode, workload, variant, instance, rate, interference,
                                -- rateEffect, recovery, search
  subject TEXT NOT NULL,
  phase INTEGER,
  metric TEXT NOT NULL,
  statistic TEXT NOT NULL,
  value REAL,                   -- NULL: infinite
  unit TEXT NOT NULL,
  bound TEXT NOT NULL,          -- exact, atLeast, infinite
  n INTEGER,
  low REAL,
  high REAL,
  confidence REAL
);

-- Times in which I/O was pending and none completed; source 'operations': in which a tool completed none.
CREATE TABLE stalls (
  run INTEGER NOT NULL REFERENCES runs,
  instance TEXT NOT NULL,
  volume TEXT NOT NULL,         -- empty: any
  direction TEXT NOT NULL,      -- write, read, read+write; empty: unknown
  source TEXT NOT NULL,         -- canary, canary+workload, workload, operations
  from_ns INTEGER NOT NULL,
  to_ns INTEGER,                -- NULL: it was not seen to end
  length_ns INTEGER NOT NULL,
  error_ns INTEGER NOT NULL,
  own_ops INTEGER NOT NULL,     -- in progress at its begin, on the same volume
  other_ops INTEGER NOT NULL,   -- the same, on others
  ops TEXT NOT NULL             -- JSON: numbers of ops in progress during it, at most five
);

CREATE TABLE searches (
  path TEXT NOT NULL,           -- of the bundle, or of the directory whose runs are the steps
  run INTEGER REFERENCES runs,  -- NULL: each step is a run
  subject TEXT NOT NULL,        -- stage or action
  condition TEXT NOT NULL,
  verdict TEXT NOT NULL,        -- found, never, always, undecided, interrupted
  per_second REAL,              -- the highest rate at which the condition held; NULL: none
  above_per_second REAL         -- the lowest at which it did not; NULL: none
);

CREATE TABLE unreadable (path TEXT NOT NULL, error TEXT NOT NULL);
