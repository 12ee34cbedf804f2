package cli

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/run"
)

// TestLiveFigures checks what a terminal shows after 40 s of a run: rates of the last 5 s, medians of the whole run.
func TestLiveFigures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &progress{liveLine: liveLine{tty: true, step: liveStep}, clock: op.NewClock(), phase: run.Running,
			counts: map[op.Outcome]int64{}, plan: &plan.Plan{Runtime: time.Minute}}
		shows := &displayed{nothing{}, p}
		end := func(action string, took time.Duration, outcome op.Outcome) {
			o := &op.Op{Action: action, Target: "fio-0-data", Outcome: outcome}
			o.Started, o.Ended = p.clock.Now(), p.clock.Now()+op.Time(took)
			p.counts[outcome]++
			p.figures.ended(o)
			p.last = o
		}
		var got []string
		for i := range 200 { // each 200 ms, as on a terminal
			if i%5 == 0 {
				end("snapshots", 100*time.Millisecond, op.OK)
			}
			if i == 100 {
				end("resize", time.Second, op.Error)
			}
			shows.Sample(op.Sample{Instance: "fio-0", WriteBytes: int64(i%150) * 1 << 20}) // replaced at 150
			shows.Canary("fio-0", "data", []op.CanaryIO{{Intended: p.clock.Now(), Ended: p.clock.Now() + op.Time(i)*1e6}})
			time.Sleep(liveStep)
			got = p.lines()
		}
		want := []string{
			"   40.0s  running [=============       ] 20s left  40 ok, 1 error",
			"  snapshots      40 ok  1/s  median 100 ms, max 100 ms",
			"  resize          0 ok, 1 not  0/s",
			"  I/O        read 0 B/s, write 5 MiB/s; canary max 199 ms",
			"  snapshots fio-0-data 100 ms",
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if p.phase = run.Removing; p.latest() != "" {
			t.Errorf("while objects are removed it shows %q", p.latest())
		}
	})
}

// nothing is a recorder that keeps nothing.
type nothing struct{ run.Recorder }

func (nothing) Sample(op.Sample)                     {}
func (nothing) Canary(string, string, []op.CanaryIO) {}
