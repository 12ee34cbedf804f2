package loadgen

import (
	"context"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/nullstore"
	"github.com/cnsbench/cnsbench/internal/op"
)

// quiet observes nothing.
type quiet struct{}

func (quiet) StageBegan(*model.Stage, op.Time)                    {}
func (quiet) Second(string, *model.Work, op.Time, op.Time, Cells) {}

// BenchmarkLoop is an operation of a closed loop of one worker on the null store, with all that is recorded of it.
func BenchmarkLoop(b *testing.B) {
	clock := op.NewClock()
	benchmarkLoop(b, func(*model.Store) (client.Store, error) { return &nullstore.Store{Size: 4096, Clock: clock}, nil })
}

func benchmarkLoop(b *testing.B, open func(*model.Store) (client.Store, error)) {
	b.Helper()
	work := model.Work{Name: "w", Kind: model.Normal, Workers: 1, TotalOps: int64(b.N), Interval: 5 * time.Second,
		Ops: []model.Op{reads(100)}}
	r := NewRunner(Config{Open: open, Clock: op.NewClock(), Observer: quiet{},
		Sleep: func(context.Context, time.Time) bool { return true }})
	stage := stageOf(work)
	b.ReportAllocs()
	b.ResetTimer()
	if s := r.Stage(b.Context(), b.Context(), &stage); s.Err != nil {
		b.Fatal(s.Err)
	}
}
