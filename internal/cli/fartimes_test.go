package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Far times, in ns: what a wall clock since 1970 in place of the run's gives, ends of the range, and before the run.
var farTimes = map[string]op.Time{"wall clock": 1.8e18, "greatest": math.MaxInt64, "negative": -1.8e18, "least": math.MinInt64,
	"two hours before": -7200e9, "a day late": 86400e9}

// TestFarTimes puts one record far in time into each stream of a bundle: what reads it takes neither long nor much
// memory, and says what it left out.
func TestFarTimes(t *testing.T) {
	labels := bundle.Labels{Instance: "fio-0", Action: "fio"}
	const at = op.Time(3e9)
	slice := func(from, to op.Time, total bool) bundle.HistogramSlice {
		h := hist.New()
		_ = h.RecordN(5_000_000, 400) // cannot fail: the value is positive
		return bundle.HistogramSlice{Labels: labels, Total: total,
			Histogram: metric.Histogram{Metric: "read", Unit: "ns", From: from, To: to, Hist: h}}
	}
	streams := map[string]func(*bundle.Writer, op.Time){
		"operation": func(w *bundle.Writer, far op.Time) {
			w.Op(op.Op{ID: 100, Action: "snapshots", Kind: op.Snapshot, Target: "v", Intended: far, Started: far, Ended: far + 1,
				Outcome: op.OK, Milestones: []op.Milestone{{Name: "ready", At: far}}})
		},
		"end of an operation": func(w *bundle.Writer, far op.Time) {
			w.Op(op.Op{ID: 100, Action: "snapshots", Kind: op.Snapshot, Target: "v", Intended: at, Started: at, Ended: far,
				Outcome: op.OK, Milestones: []op.Milestone{{Name: "ready", At: far}}})
		},
		"point": func(w *bundle.Writer, far op.Time) {
			points := []metric.Point{{At: at, Value: 5}, {At: at + 1e9, Value: 5}, {At: far, Value: 7}}
			w.Series(bundle.Series{Labels: labels, Series: metric.Series{Metric: "read.iops", Step: 1e6, Points: points}})
		},
		"step": func(w *bundle.Writer, far op.Time) {
			points := []metric.Point{{At: at, Value: 5}, {At: at + 1e9, Value: 7}}
			w.Series(bundle.Series{Labels: labels, Series: metric.Series{Metric: "read.iops", Step: int64(far), Points: points}})
		},
		"figure": func(w *bundle.Writer, far op.Time) {
			w.Scalar(bundle.Scalar{Labels: labels, Scalar: metric.Scalar{Metric: "read.iops", Value: 1, From: at, To: far}})
		},
		"slice": func(w *bundle.Writer, far op.Time) {
			w.Histogram(slice(at, at+1e9, false))
			w.Histogram(slice(far, far+1, false))
			w.Histogram(slice(at, at+1e9, true))
		},
		"end of a slice": func(w *bundle.Writer, far op.Time) {
			w.Histogram(slice(at, far, false))
			w.Histogram(slice(at, far, true))
		},
		"sample": func(w *bundle.Writer, far op.Time) {
			for i, at := range []op.Time{at, at + 1e9, far} {
				w.Sample(op.Sample{Instance: "fio-0", At: at, WriteBytes: int64(i) << 20, CPUNanos: int64(i) * 1e8})
			}
		},
		"machine": func(w *bundle.Writer, far op.Time) {
			for _, at := range []op.Time{at, at + 1e9, far} {
				w.Machine(op.Machine{At: at})
			}
		},
		"query": func(w *bundle.Writer, far op.Time) {
			v := 3.0
			for _, at := range []op.Time{at, at + 1e9, far} {
				w.Query(op.QueryReading{Query: "q", At: at, Values: []op.QueryValue{{Value: v}}})
			}
		},
		"volume": func(w *bundle.Writer, far op.Time) {
			for _, at := range []op.Time{at, at + 1e9, far} {
				w.Volume(op.VolumeReading{Volume: "v", Driver: "d", At: at, Bytes: &op.VolumeAmount{Total: 9, Used: 3, Available: 6}})
			}
		},
		"canary": func(w *bundle.Writer, far op.Time) {
			var ios []op.CanaryIO
			for i := range op.Time(100) {
				ios = append(ios, op.CanaryIO{Intended: at + i*1e7, Started: at + i*1e7, Ended: at + i*1e7 + 1e6, Write: i%2 == 0})
			}
			w.Canary("fio-0", "v", append(ios, op.CanaryIO{Intended: far, Started: far, Ended: far, Write: true}))
		},
		"end of a canary's I/O": func(w *bundle.Writer, far op.Time) {
			w.Canary("fio-0", "v", []op.CanaryIO{{Intended: at, Started: at, Ended: far, Write: true}})
		},
		"start of an instance": func(w *bundle.Writer, far op.Time) {
			w.Started(op.InstanceStart{Instance: "fio-0", Container: "c", Intended: 1e9, At: far})
		},
		"end of an instance": func(w *bundle.Writer, far op.Time) {
			w.Started(op.InstanceStart{Instance: "fio-0", Container: "c", Intended: 1e9, At: at})
			w.Ended(op.InstanceEnd{Instance: "fio-0", At: far, OK: true})
		},
		"log line": func(w *bundle.Writer, far op.Time) { w.Log(far, "run", "far away") },
	}
	counted := map[string]string{"point": "1 points of series", "slice": "1 slices of histograms", "sample": "1 samples",
		"end of a slice": "1 slices of histograms", "machine": "1 readings of machines", "query": "1 answers to queries",
		"volume": "1 readings of volumes", "canary": "1 I/Os of the canary", "end of a canary's I/O": "1 I/Os of the canary"}
	root := t.TempDir()
	for name, add := range streams {
		for kind, far := range farTimes {
			dir := small(t, filepath.Join(root, name, kind), func(w *bundle.Writer) { add(w, far) })
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				for _, state := range []bundle.State{bundle.Complete, bundle.Running} {
					if state == bundle.Running { // it was killed, so that nothing says when it ended
						r, err := bundle.ReadRun(dir)
						if err != nil {
							t.Fatal(err)
						}
						r.State, r.EndedAt = state, op.Never
						writeRun(t, dir, r)
					}
					said := endsSoon(t, []string{"show", dir})
					endsSoon(t, []string{"report", "-o", "-", dir})
					want := counted[name]
					if far > 0 && far < 1e14 && state == bundle.Running || far == op.Never {
						want = "" // within the bounds of a run whose end is not known; or no time
					}
					if !strings.Contains(strings.Join(strings.Fields(said), " "), want) {
						t.Errorf("show does not say %q:\n%.600s", want, said)
					}
				}
			})
		}
	}
	t.Run("times of the run", func(t *testing.T) {
		plainBundle = small(t, filepath.Join(root, "plain"), func(w *bundle.Writer) {
			for _, name := range []string{"point", "slice", "sample", "canary"} {
				streams[name](w, at+2e9)
			}
		})
		for kind, far := range farTimes {
			for i, change := range []func(*bundle.Run){func(r *bundle.Run) { r.EndedAt = far }, func(r *bundle.Run) { r.BarrierAt = far }} {
				r, err := bundle.ReadRun(plainBundle)
				if err != nil {
					t.Fatal(err)
				}
				change(&r)
				dir := copied(t, filepath.Join(root, fmt.Sprint(kind, i)), "run.json", r)
				endsSoon(t, []string{"show", dir})
				endsSoon(t, []string{"report", "-o", "-", dir})
			}
		}
	})
}

func writeRun(t *testing.T, dir string, r bundle.Run) {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "run.json"), string(text))
}

// endsSoon runs a command, for at most 10 s and with at most 512 MiB.
func endsSoon(t *testing.T, args []string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "/bin/sh", append([]string{"-c", `ulimit -v 4000000; exec "$0" "$@"`, self}, args...)...)
	c.Env = append(os.Environ(), asProgram+"=1")
	var out strings.Builder
	c.Stdout, c.Stderr = &out, &out
	timer := time.AfterFunc(20*time.Second, func() { _ = c.Process.Signal(syscall.SIGQUIT) })
	err = c.Run()
	in := timer.Stop()
	use, _ := c.ProcessState.SysUsage().(*syscall.Rusage)
	if !in || err != nil && c.ProcessState.ExitCode() != exitFailed || use.Maxrss > 512<<10 || strings.Contains(out.String(), "goroutine ") {
		t.Errorf("cnsbench %s: %v, %d MiB, %.2000s", strings.Join(args, " "), err, use.Maxrss>>10, out.String())
	}
	return out.String()
}
