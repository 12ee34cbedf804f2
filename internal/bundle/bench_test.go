package bundle

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/op"
)

// synthetic yields n plausible operations: Poisson arrivals, exponential latencies, four actions, one failure per
// thousand operations, m milestones per operation.
func synthetic(n, m int) iter.Seq2[op.Op, error] {
	return func(yield func(op.Op, error) bool) {
		r := rand.New(rand.NewPCG(1, 2))
		actions := []string{"fio", "snapshots", "clones", "resizes"}
		kinds := []op.Kind{op.Create, op.Snapshot, op.Clone, op.Resize}
		var at float64
		for i := range n {
			at += r.ExpFloat64() * 1e6
			a := r.IntN(4)
			o := op.Op{
				ID: int64(i + 1), Episode: int64(i + 1), Action: actions[a], Instance: i / 4, Kind: kinds[a],
				Target: fmt.Sprintf("vol-%d", i%500), Node: "local", Intended: op.Time(at), Attempts: 1,
				Outcome: op.OK, Object: fmt.Sprintf("%s-%d", actions[a], i),
			}
			o.Started = o.Intended + op.Time(r.ExpFloat64()*5e4)
			o.Ended = o.Started + op.Time(2e7+r.ExpFloat64()*1e7)
			switch r.IntN(3000) {
			case 0:
				o.Outcome, o.Code, o.Message = op.Error, "ResourceExhausted", "no space in the pool"
			case 1:
				o.Outcome, o.Started, o.Ended = op.Dropped, op.Never, op.Never
			case 2:
				o.Outcome = op.Censored
			}
			if o.Started.Known() {
				for j := range m {
					o.Milestones = append(o.Milestones, op.Milestone{
						Name: fmt.Sprintf("m%d",
							j), At: o.Started + (o.Ended-o.Started)*op.Time(j)/op.Time(m), Source: "csi",
					})
				}
			}
			if !yield(o, nil) {
				return
			}
		}
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// nth returns the k-th smallest value. It uses Hoare's selection algorithm and reorders v.
func nth(v []int64, k int) int64 {
	lo, hi := 0, len(v)-1
	for lo < hi {
		p := v[lo+(hi-lo)/2]
		i, j := lo, hi
		for i <= j {
			for v[i] < p {
				i++
			}
			for v[j] > p {
				j--
			}
			if i <= j {
				v[i], v[j] = v[j], v[i]
				i++
				j--
			}
		}
		switch {
		case k <= j:
			hi = j
		case k >= i:
			lo = i
		default:
			return v[k]
		}
	}
	return v[lo]
}

// BenchmarkQuantile10M measures the time from opening the file to a quantile of the response latency of one action,
// over ten million recorded events (two million with -short). The format is designed for this query.
func BenchmarkQuantile10M(b *testing.B) {
	n := 10_000_000
	if testing.Short() {
		n = 2_000_000
	}
	dir := b.TempDir()
	must(b, os.Mkdir(filepath.Join(dir, eventsDir), 0o755))
	must(b, writeJSON(bounded.Dir(dir), runFile, Run{Format: Version, State: Complete}))
	must(b, writeColumnar(bounded.Dir(dir), columnarFile, synthetic(n, 0)))
	must(b, writeManifest(dir))
	st, err := os.Stat(filepath.Join(dir, columnarFile))
	must(b, err)
	for _, c := range []struct {
		name string
		f    Filter
	}{{"all", Filter{}}, {"oneAction", Filter{Actions: []string{"snapshots"}}}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportMetric(float64(st.Size())/float64(n), "fileB/op")
			for b.Loop() {
				bundle, err := Open(dir)
				must(b, err)
				l, err := bundle.Latencies(Response, c.f)
				must(b, err)
				if got := int64(len(l.OK)+len(l.Bounds)) + l.Errors + l.Dropped; c.name == "all" && got != int64(n) {
					b.Fatalf("%d of %d ops", got, n)
				}
				if p99 := nth(l.OK, len(l.OK)*99/100); p99 < 2e7 {
					b.Fatalf("p99 = %d", p99)
				}
			}
		})
	}
}

// BenchmarkOp measures what recording one operation costs the loop of a run.
func BenchmarkOp(b *testing.B) {
	w, err := Create(filepath.Join(b.TempDir(), "b"), Run{})
	must(b, err)
	var o op.Op
	for x := range synthetic(1, 10) {
		o = x
	}
	b.ReportAllocs()
	for b.Loop() {
		w.Op(o)
	}
	b.StopTimer()
	b.ReportMetric(float64(w.queue.peak)/(1<<20), "peakMiB")
	must(b, w.failure.get())
	must(b, w.Close(nil))
}

// BenchmarkClose measures the conversion of segments to columns, per operation.
func BenchmarkClose(b *testing.B) {
	const n = 100_000
	for b.Loop() {
		b.StopTimer()
		w, err := Create(filepath.Join(b.TempDir(), "b"), Run{})
		must(b, err)
		for o := range synthetic(n, 10) {
			w.Op(o)
		}
		must(b, w.Flush())
		b.StartTimer()
		must(b, w.Close(nil))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/record")
}
