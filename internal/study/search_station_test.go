package study

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// station is an Executor whose runs leave the operations of a queueing station: so many servers, each with a fixed
// service time. Beside them is I/O that slows down with the rate.
type station struct {
	t       *testing.T
	search  *Search
	servers int // 0: as many as operations
	service time.Duration
	iops    func(perSecond float64) float64 // nil: none is recorded
	fails   func(n int) bool                // which operations fail
	left    int                             // runs until the search is interrupted; negative: never
	ran     []string
}

func (x *station) Load(context.Context, Job, bool) (*plan.Plan, error) { return &plan.Plan{}, nil }
func (x *station) Open(string) (io.ReadCloser, error)                  { return nil, os.ErrNotExist }
func (x *station) CleanUp(context.Context, string) error               { return nil }
func (x *station) Interrupted() bool                                   { return false }

func (x *station) Run(_ context.Context, dir string, j Job) (int, error) {
	if x.left == 0 {
		return 0, ErrInterrupted
	}
	x.left--
	x.ran = append(x.ran, filepath.Base(dir))
	rate := 0.0
	for _, s := range j.Set {
		if _, text, ok := strings.Cut(s, "={perSecond: "); ok {
			if _, err := fmt.Sscanf(text, "%g}", &rate); err != nil {
				x.t.Fatal(err)
			}
		}
	}
	x.write(dir, rate)
	return 0, nil
}

// write leaves the bundle of a step.
func (x *station) write(dir string, rate float64) {
	w, err := bundle.Create(dir, bundle.Run{ID: "r", Name: "x", Engine: "local",
		Spec: []byte(`{"actions":[{"name":"create","rateName":"r","createObjSpec":{"volume":{}}},` +
			`{"name":"fio","createObjSpec":{"workload":"fio"}}]}`),
		Clock: bundle.ClockInfo{Start: time.Unix(0, 0), Source: "test", Resolution: 1}, BarrierAt: 1e9})
	if err != nil {
		x.t.Fatal(err)
	}
	window := op.Time(x.search.window(rate))
	if rate > 0 {
		x.ops(w, rate, window)
	}
	if x.iops != nil {
		w.Scalar(bundle.Scalar{Labels: bundle.Labels{Instance: "fio-0", Action: "fio"},
			Scalar: metric.Scalar{Metric: "write.iops", Unit: "1/s", Value: x.iops(rate)}})
	}
	if err := w.Close(func(r *bundle.Run) { r.State, r.EndedAt = bundle.Complete, 1e9+2*window }); err != nil {
		x.t.Fatal(err)
	}
}

func (x *station) ops(w *bundle.Writer, rate float64, window op.Time) {
	random := rand.New(rand.NewPCG(uint64(rate*1e6), uint64(len(x.ran))))
	free := make([]op.Time, x.servers)
	at := op.Time(1e9)
	for n := 0; ; n++ {
		gap := 1 / rate
		if x.search.Schedule == Poisson {
			gap = random.ExpFloat64() / rate
		}
		if at += op.Time(gap * 1e9); at > 1e9+window {
			return
		}
		o := op.Op{ID: int64(n + 1), Episode: 1, Action: "create", Instance: n, Kind: op.Create, Intended: at,
			Started: at, Attempts: 1, Outcome: op.OK}
		if x.servers > 0 {
			slices.Sort(free)
			if free[0] > at {
				o.Started = free[0]
				o.Milestones = []op.Milestone{{Name: op.Unblocked, At: free[0], Source: "runner"}}
			}
			free[0] = o.Started + op.Time(x.service)
		}
		o.Ended = o.Started + op.Time(x.service)
		if x.fails != nil && x.fails(n) {
			o.Outcome, o.Code, o.Message = op.Error, "Internal", "injected"
		}
		w.Op(o)
	}
}
