package cli

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cnsbench/cnsbench/internal/hist"
	oload "github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/run"
)

// cellsOf are n reads of 1 MiB with a response of 2 ms, of which bad failed.
func cellsOf(n, bad int64) oload.Cells {
	cell := func(n int64) *oload.Cell {
		h := hist.New()
		_ = h.RecordN(2e6, n)
		return &oload.Cell{N: n, Bytes: n << 20, Response: h}
	}
	return oload.Cells{{Label: "ok", OK: true}: cell(n - bad), {Label: "503"}: cell(bad),
		{Label: oload.Dropped, Lost: true}: cell(5)}
}

// TestObjectProgress checks the live line of stages that end by time, by operations and neither, over two hosts.
func TestObjectProgress(t *testing.T) {
	timed := model.Stage{Name: "main", Works: []model.Work{{Name: "main", Kind: model.Normal, RampUp: 10 * time.Second,
		Runtime: 50 * time.Second}, {Name: "pause", Kind: model.Delay}}}
	counted := model.Stage{Name: "main", Works: []model.Work{{Name: "main", Kind: model.Normal, TotalOps: 3000}}}
	open := model.Stage{Name: "main", Works: []model.Work{{Name: "main", Kind: model.Normal, TotalBytes: 1 << 40}}}
	for _, tt := range []struct {
		name  string
		stage model.Stage
		bad   int64
		want  string
	}{
		{"time", timed, 0, "30.0s  main (2 of 2) (20 s of 60 s)  1000 ops/s, 1000 MiB/s, p50 2 ms, p99 2 ms  1000 ended"},
		{"operations", counted, 400,
			"30.0s  main (2 of 2) 1000 of 3000 ops, about 10s left  " +
				"200 ops/s, 200 MiB/s, p50 2 ms, max 2 ms  1000 ended, 800 failed"},
		{"neither", open, 0, "30.0s  main (2 of 2)  1000 ops/s, 1000 MiB/s, p50 2 ms, p99 2 ms  1000 ended"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &objectProgress{clock: op.NewClock(),
					workload: &model.Workload{Stages: []model.Stage{{Name: "init"}, tt.stage}}}
				if got := p.status(); got != "" {
					t.Errorf("before the first stage: %q", got)
				}
				time.Sleep(9 * time.Second)
				p.stage, p.seconds = &tt.stage, map[hostWork]second{}
				if got := strings.TrimSpace(p.status()); got != "9.0s  main (2 of 2) begins" {
					t.Errorf("at its begin: %q", got)
				}
				time.Sleep(21 * time.Second)
				for host := range 2 {
					p.add(host, &tt.stage.Works[0], op.Time(10*time.Second), op.Time(11*time.Second), cellsOf(500, tt.bad))
				}
				if got := strings.TrimSpace(p.status()); got != tt.want {
					t.Errorf("got  %q\nwant %q", got, tt.want)
				}
			})
		})
	}
}

// TestNarrow checks what a line loses on a terminal that is too narrow for it.
func TestNarrow(t *testing.T) {
	const line = "    2.2s  main (3 of 5) [=                   ] 29s left  715 ops/s, 10.9 MiB/s, p50 2 ms, p99 9 ms" +
		"  1500 ended, 12 failed"
	for width, want := range map[int]string{
		200: line,
		105: "    2.2s  main (3 of 5) 29s left  715 ops/s, 10.9 MiB/s, p50 2 ms, p99 9 ms  1500 ended, 12 failed",
		80:  "2.2s  main 29s left  715 ops/s, 10.9 MiB/s, p50 2 ms, p99 9 ms, 12 failed",
		40:  "2.2s  main 29s left  715 ops/s, 10.9 M…",
	} {
		if got := narrow(line, width); got != want {
			t.Errorf("%d columns: %q, want %q", width, got, want)
		}
	}
}

// TestLiveLine checks that a log gets a line each ten seconds until close, and none while there is no text.
func TestLiveLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		var l liveLine
		var lines []string
		l.start(&out, func() []string { return lines })
		time.Sleep(15 * time.Second)
		l.mu.Lock()
		lines = []string{"a\nb\x1b", "for terminals only"}
		l.mu.Unlock()
		time.Sleep(20 * time.Second)
		l.close()
		l.close()
		time.Sleep(time.Minute)
		if got, want := out.String(), "a b\\x1b\na b\\x1b\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestRunProgressTimeLeft checks that the line of a run with a runtime tells the time that is left.
func TestRunProgressTimeLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for tty, want := range map[bool]string{
			true: "running [=====               ] 45s left ", false: "running (15 s of 60 s) "} {
			p := &progress{liveLine: liveLine{tty: tty, step: liveStep}, clock: op.NewClock(), phase: run.Running,
				plan: &plan.Plan{Runtime: time.Minute}}
			time.Sleep(15 * time.Second)
			if got := p.lines()[0]; !strings.Contains(got, want) {
				t.Errorf("terminal %v: %q, want %q", tty, got, want)
			}
		}
	})
}

// TestCut checks that a text never fills the width, where a terminal would wrap it.
func TestCut(t *testing.T) {
	for text, want := range map[string]string{"abcd": "abcd", "abcde": "abc…", "äbcdefg": "äbc…"} {
		if got := cut(text, 5); got != want {
			t.Errorf("cut(%q, 5) = %q, want %q", text, got, want)
		}
	}
}
