package local

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/quota"
)

// lineSink keeps log lines.
type lineSink struct {
	engine.DiscardSink
	lines []string
}

func (s *lineSink) Log(source, line string) { s.lines = append(s.lines, source+": "+line) }

// TestFollow checks that a driver's output is logged whatever it has: a line of 100 MB does not end the log.
func TestFollow(t *testing.T) {
	sink := &lineSink{}
	d := &driver{name: "x", engine: &Engine{session: engine.Session{Sink: sink}}}
	d.follow(io.MultiReader(strings.NewReader("first\n"), io.LimitReader(repeat{}, 100<<20),
		strings.NewReader("\nnext\x1b[2J\n\xff\x00no end")))
	long := fmt.Sprintf("driver x: %s… (%d more bytes)", strings.Repeat("y", maxDriverLine), 100<<20-maxDriverLine)
	want := []string{"driver x: first", long, "driver x: next\x1b[2J", "driver x: \xff\x00no end"}
	if diff := cmp.Diff(want, sink.lines); diff != "" {
		t.Errorf("%.3000s", diff)
	}
	sink.lines = nil
	d.follow(strings.NewReader(strings.Repeat("flood\n", 100_000)))
	if n := len(sink.lines); n > quota.OneSource/64 || !strings.HasSuffix(sink.lines[n-1], quota.LimitReached) {
		t.Errorf("%d lines, the last %q", n, sink.lines[n-1])
	}
}

// repeat is an endless reader of one letter.
type repeat struct{}

func (repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'y'
	}
	return len(p), nil
}

// TestReadLogs checks that a driver's records are read by their time, and that an external driver is named.
func TestReadLogs(t *testing.T) {
	clock := op.NewClock()
	e := &Engine{session: engine.Session{Dir: t.TempDir(), Clock: clock}}
	e.drivers = map[string]*driver{"b": {name: "b", backend: "b", engine: e}, "c": {name: "c", backend: "c", engine: e},
		"external": {name: "external", engine: e}}
	record := func(seconds, took float64) string {
		start := clock.Start().UnixNano() + int64(seconds*1e9)
		return fmt.Sprintf(`{"start_unix_ns":%d,"end_unix_ns":%d}`, start, start+int64(took*1e9))
	}
	inside, slow := record(10.5, 0), record(1, 9.5)
	text := strings.Join([]string{record(1, 0), "not JSON", slow, inside, `{"start_unix_ns":` + strings.Repeat("1",
		1<<20), record(20, 0), `{"start_unix_ns":1`}, "\n")
	if err := os.WriteFile(filepath.Join(e.session.Dir, "b-truth.jsonl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var lines []string
	notes := e.ReadLogs(t.Context(), []engine.LogWindow{{From: op.Time(10 * time.Second), To: op.Time(11 * time.Second)}},
		func(_ op.Time, source, line string) { lines = append(lines, source+": "+line) })
	if diff := cmp.Diff([]string{"driver b calls: " + slow, "driver b calls: " + inside}, lines); diff != "" {
		t.Error(diff)
	}
	want := []string{"the log of driver external cannot be read: cnsbench did not start it"}
	if diff := cmp.Diff(want, notes); diff != "" {
		t.Error(diff)
	}
}
