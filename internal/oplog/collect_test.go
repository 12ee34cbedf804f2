package oplog

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/redact"
)

// windows returns a Collector for windows.
func windows(list ...Window) *Collector {
	s := Selection{}
	for i, w := range list {
		s.Records = append(s.Records, Record{ID: int64(i), From: w.From, To: w.To})
	}
	return s.Collect(redact.NewLines())
}

// TestCollect checks that each op has the lines of its window, those at its ends too, in order of time.
func TestCollect(t *testing.T) {
	c := windows(Window{10, 20}, Window{15, 30}, Window{100, 110})
	for _, at := range []op.Time{9, 10, 15, 20, 21, 30, 31, 99, 111} {
		c.Add(at, "b", fmt.Sprint("line ", int64(at)))
	}
	c.Add(16, "a", "of another source\r\n")
	var got [][]string
	for _, r := range c.Records() {
		lines := []string{}
		for _, l := range r.Lines {
			lines = append(lines, l.Source+" "+l.Line)
		}
		got = append(got, lines)
	}
	want := [][]string{{"b line 10", "b line 15", "a of another source", "b line 20"},
		{"b line 15", "a of another source", "b line 20", "b line 21", "b line 30"}, {}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestCollectBounds checks that of a flood of lines those are kept that name an object of the op, then those nearest
// to it in time, that a quiet source is kept whole, and that omissions are counted.
func TestCollectBounds(t *testing.T) {
	const n = 10_000 // in each of six sources, 1 ms apart
	s := Selection{Records: []Record{{From: 0, To: n * ms, names: []string{"snap-1", "vol-7"}}}}
	c := s.Collect(redact.NewLines())
	line := strings.Repeat("x", 100)
	for i := range n {
		about := "vol-70"
		if i%2000 == 0 {
			about = `"vol-7"`
		}
		for s := range 6 {
			c.Add(op.Time(i)*ms, fmt.Sprint("source", s), fmt.Sprint(line, " ", about))
		}
	}
	c.Add(0, "quiet", "one line")
	r := c.Records()[0]
	kept, named, bytes := map[string]int64{}, 0, 0
	for _, l := range r.Lines {
		kept[l.Source]++
		bytes += len(l.Line)
		switch inside := l.At >= op.Time(Margin) && l.At <= n*ms-op.Time(Margin); {
		case l.Named:
			named++
		case !inside && l.Source != "quiet":
			t.Errorf("a line at %v is kept, and lines during the op are not", l.At)
		}
	}
	if bytes > maxPerOp || bytes < maxPerOp/2 {
		t.Errorf("%d bytes kept, want at most %d", bytes, maxPerOp)
	}
	if want := 6 * n / 2000; named != want || kept["quiet"] != 1 {
		t.Errorf("%d lines with the name, want %d; quiet has %d, want 1", named, want, kept["quiet"])
	}
	if len(r.Omitted) != 6 {
		t.Fatalf("omissions of %d sources, want 6", len(r.Omitted))
	}
	for _, o := range r.Omitted {
		if o.Lines+kept[o.Source] != n || o.Bytes < o.Lines*100 {
			t.Errorf("%+v omitted, %d kept of %d", o, kept[o.Source], n)
		}
	}
}

func TestHasName(t *testing.T) {
	tests := []struct {
		line, name string
		want       bool
	}{
		{`{"name":"create-1"}`, "create-1", true}, {"create-1", "create-1", true}, {"create-1-data", "create-1", true},
		{"create-11", "create-1", false}, {"recreate-1", "create-1", false}, {"create-11 create-1", "create-1", true},
		{"anything", "", false}, {"a-1 is short", "a1", false},
	}
	for _, tt := range tests {
		if got := hasName(tt.line, tt.name); got != tt.want {
			t.Errorf("%q in %q: %v", tt.name, tt.line, got)
		}
	}
}

// TestCollectHostile checks lines that are huge, binary, or have control sequences.
func TestCollectHostile(t *testing.T) {
	tests := []struct {
		name, source, line string
		want               func(l Line) bool
	}{
		{"huge", "s", strings.Repeat("é", 50<<20), func(l Line) bool {
			return len(l.Line) <= maxLine+len("…") && strings.HasSuffix(l.Line, "é…")
		}},
		{"binary", "s", "a\x00\xff\xfe\x80b", func(l Line) bool { return l.Line == "a\x00\uFFFDb" }},
		{"escape sequence", "s", "\x1b[2J\x1b]0;title\a", func(l Line) bool { return l.Line == "\x1b[2J\x1b]0;title\a" }},
		{"source", strings.Repeat("s", 1<<20), "x", func(l Line) bool { return len(l.Source) <= maxSource+len("…") }},
		{"no line", "s", "", func(l Line) bool { return l.Line == "" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := windows(Window{0, 10})
			c.Add(5, tt.source, tt.line)
			r := c.Records()[0]
			if len(r.Lines) != 1 || !tt.want(r.Lines[0]) || !utf8.ValidString(r.Lines[0].Line+r.Lines[0].Source) {
				t.Fatalf("got %.200q", fmt.Sprint(r.Lines))
			}
			text, err := json.Marshal(r)
			if err != nil || strings.ContainsAny(string(text), "\x1b\x00\a") {
				t.Errorf("JSON has control characters: %v %.200q", err, text)
			}
		})
	}
}
