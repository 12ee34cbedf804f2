package analysistest

import (
	"fmt"
	"testing"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Server is the time at which each server of Servers was ready.
const Server = 20 * Second

// Servers writes the bundle of servers without a barrier of their own: each
// writes its database before it is ready, with I/O of 80 ms, and then serves with
// I/O of 1 ms: db-0 is ready when the barrier opens, db-1 at Server. Snapshots
// change nothing. Each has 100 I/Os of its canary a second.
func Servers(t testing.TB) *bundle.Bundle {
	t.Helper()
	w := create(t, `{"actions":[{"name":"db","createObjSpec":{"workload":"db"}},{"name":"snapshots","rateName":"r"}],
		"slos":[{"name":"outside","expr":"p99(db.canaryWrite, outside(\"snapshots\")) < duration(\"10ms\")"},
			{"name":"tool","expr":"p99(db.write, outside(\"snapshots\")) < duration(\"10ms\")"}]}`)
	var id int64
	for i, ready := range []op.Time{Barrier, Server} {
		name := fmt.Sprintf("db-%d", i)
		begun := ready - 2*Second
		id++
		w.Op(op.Op{
			ID: id, Action: "db", Instance: i, Kind: op.Create, Target: name,
			Intended: begun, Started: begun, Ended: ready, Outcome: op.OK,
		})
		w.Started(op.InstanceStart{Instance: name, Container: "db", Intended: op.Never, At: begun})
		var ios []op.CanaryIO
		for at := begun; at < End; at += Interval {
			took := Millisecond
			if at < ready-100*Millisecond {
				took = 80 * Millisecond
			}
			ios = append(ios, op.CanaryIO{Intended: at, Started: at, Ended: at + took, Write: true})
		}
		w.Canary(name, fmt.Sprintf("db-%d-data", i), ios)
		for at := begun; at < End; at += Second {
			took := int64(Millisecond)
			if at < ready {
				took = int64(80 * Millisecond)
			}
			h := hist.New()
			_ = h.RecordN(took, 300) // positive: it cannot fail
			w.Histogram(bundle.HistogramSlice{Labels: labels(name, "db"),
				Histogram: metric.Histogram{Metric: "write", Unit: "ns", From: at, To: at + Second, Hist: h}})
		}
	}
	for i := range 20 {
		id++
		at := Barrier + op.Time(i)*3*Second + 100*Millisecond
		w.Op(op.Op{
			ID: id, Action: "snapshots", Instance: i, Kind: op.Snapshot, Target: "db-0-data",
			Intended: at, Started: at, Ended: at + 500*Millisecond, Outcome: op.OK,
		})
	}
	return finish(t, w)
}
