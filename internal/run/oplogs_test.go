package run

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/oplog"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/quota"
)

// logged is an engine that can read logs.
type logged struct {
	*script
	windows []engine.LogWindow
	torn    int // teardowns before the logs were read
	read    int
}

func (l *logged) ReadLogs(_ context.Context, windows []engine.LogWindow, keep func(op.Time, string, string)) []string {
	l.read++
	l.windows, l.torn = windows, l.script.torn
	for _, w := range windows {
		for at := w.From - 5; at <= w.To+5; at += op.Time(100 * time.Millisecond) {
			keep(at, "sidecar", "token=hunter22 v-1 at the sidecar")
		}
	}
	return []string{"the right is missing: get pods/log"}
}

// kept is an OpLogs over a recorder's ops.
type kept struct {
	*memory
	lines   []bundle.LogLine
	err     error
	about   oplog.About
	records []oplog.Record
}

func (k *kept) EndedOps() iter.Seq2[op.Op, error] {
	return func(yield func(op.Op, error) bool) {
		for _, o := range k.ops {
			if !yield(o, k.err) {
				return
			}
		}
	}
}

func (k *kept) Logged() iter.Seq2[bundle.LogLine, error] {
	return func(yield func(bundle.LogLine, error) bool) {
		for _, l := range k.lines {
			if !yield(l, nil) {
				return
			}
		}
	}
}

func (k *kept) OpLogs(about oplog.About, records []oplog.Record) { k.about, k.records = about, records }

// carryLogged runs a plan of which the second op fails.
func carryLogged(ctx, hard context.Context, k *kept) *logged {
	var n atomic.Int32
	e := &logged{script: &script{took: func(engine.Request) (time.Duration, error) {
		if n.Add(1) == 2 {
			return time.Second, errors.New("broken")
		}
		return 100 * time.Millisecond, nil
	}}}
	k.memory = &memory{}
	p := plan.Plan{Runtime: 10 * time.Second, Grace: time.Second, Actions: []plan.Action{makes("v", "r", 1)},
		Rates: []plan.Rate{every(time.Second)}}
	Run(ctx, hard, Config{Plan: &p, Engine: e, Clock: op.NewClock(), Record: k.memory, Observer: quiet{}, OpLogs: k,
		Secrets: []string{"v-secret"}})
	return e
}

// TestCollectLogs checks that logs are read once, before the objects are removed, and that a failed op has the lines
// of its window from the run's log and from the engine, without secrets.
func TestCollectLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &kept{lines: []bundle.LogLine{{At: 0, Source: "early", Line: "x"},
			{At: op.Time(2500 * time.Millisecond), Source: "driver", Line: "with v-secret"},
			{At: op.Time(2500 * time.Millisecond), Source: "run", Line: "the run's own"},
			{At: op.Time(2500 * time.Millisecond), Source: "w-0/main", Line: "further lines are " + quota.LimitReached}}}
		e := carryLogged(t.Context(), t.Context(), k)
		if e.read != 1 || e.torn != 0 || e.script.torn != 1 {
			t.Errorf("logs were read %d times, after %d teardowns", e.read, e.torn)
		}
		if k.about.Failed != 1 || k.about.FailedKept != 1 || len(k.about.Notes) != 2 ||
			!strings.HasPrefix(k.about.Notes[0], "w-0/main: its log reached its limit at 2.50 s") {
			t.Errorf("about %+v", k.about)
		}
		var failed *oplog.Record
		for i := range k.records {
			if k.records[i].Why == oplog.Failed {
				failed = &k.records[i]
			}
		}
		if failed == nil {
			t.Fatalf("no failed op among %d", len(k.records))
		}
		n := map[string]int{}
		for _, l := range failed.Lines {
			n[l.Source]++
			if l.At < failed.From || l.At > failed.To || strings.Contains(l.Line, "hunter22") ||
				strings.Contains(l.Line, "v-secret") {
				t.Errorf("line %+v", l)
			}
		}
		if n["driver"] != 1 || n["run"]+n["early"] != 0 || n["sidecar"] < 20 {
			t.Errorf("lines by source: %v", n)
		}
	})
}

// TestCollectLogsNot checks that an interrupt that hurries, and ops that cannot be read, leave no lines and do no harm.
func TestCollectLogsNot(t *testing.T) {
	for name, tt := range map[string]struct {
		hurry bool
		err   error
	}{"hurry": {hurry: true}, "damaged": {err: errors.New("damaged")}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hard, cancel := context.WithCancel(t.Context())
				soft, interrupt := context.WithCancelCause(t.Context())
				if tt.hurry {
					time.AfterFunc(4*time.Second, func() { interrupt(ErrInterrupted); cancel() })
				}
				k := &kept{err: tt.err}
				e := carryLogged(soft, hard, k)
				if e.read != 0 || k.records != nil || e.script.torn != 1 {
					t.Errorf("logs were read %d times, %d records, %d teardowns", e.read, len(k.records), e.script.torn)
				}
				cancel()
				interrupt(nil)
			})
		})
	}
}
