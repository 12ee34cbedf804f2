// Package expr compiles and judges the expressions of a Benchmark, SLOs and triggers. They
// are CEL with additional functions:
//
//	p99(snapshots.ready) < duration("10s")
//	p99(fio.read, during("snapshots")) < 2.0 * p99(fio.read, outside("snapshots"))
//	count(snapshots) >= 10 && errors(snapshots) == 0
//
// A metric is an action's name and what is measured of it: a milestone
// (snapshots.ready: from the op to that instant), a workload's metric
// (fio.read, fio.canaryWrite), or nothing more (snapshots: the whole op). A
// view may follow: .response counts from the intended time, .service from the
// start; without one it is response. A name that is no identifier is written
// action("my-action").ready, a milestone that is none snapshots["a/b"], and
// the time between two milestones span(snapshots, "taken", "ready").
//
//	p50 p90 p95 p99 p999 quantile(m, q) min max mean   durations
//	count  ops that were done, or I/Os                 numbers
//	ops    all ops, of any outcome
//	errors (failed or timed out), dropped, censored
//	rate   ops done per second; iops, throughput (bytes per second) of I/O
//	violations   time in which a tenant missed a target; compliance, the share of its time in which it met all
//
// Each takes windows after the metric: during("a") is when ops of a were in
// progress, outside("a") the rest.
//
// baseline(iops(fio.write)) is the call's value in a run without the searched action; it is
// for a search of the highest rate.
//
// Durations and numbers do not mix: a duration is compared with a duration,
// and may be multiplied or divided by a number; a quotient of durations is a
// number.
//
// Values may be infinite (a quantile of a dropped op) or lower bounds (of an op that had
// not ended). A comparison that a bound does not decide is undecided, and never passes.
package expr
