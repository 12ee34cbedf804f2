package wrap

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
)

// said collects the Cut messages that an output sends.
type said []protocol.Cut

func (s *said) send(m protocol.Message) { *s = append(*s, *m.Cut) }

func TestOutput(t *testing.T) {
	var got said
	o := newOutput(100, got.send)
	if n := o.allow("stdout", 40); n != 25 {
		t.Errorf("stdout had %d bytes, want a quarter", n)
	}
	o.addDiscarded("stdout", 15)
	o.addDiscarded("stdout", 5)
	o.addDiscarded("a", 0)
	o.refuse("a")
	if n := o.allow("a", 10); n != 0 {
		t.Errorf("a had %d bytes after it was refused", n)
	}
	o.addDiscarded("a", 10)
	o.reportTotals()
	want := said{{Name: "stdout", Discarded: 15}, {Name: "a", Discarded: 10},
		{Name: "stdout", Discarded: 20, Final: true}, {Name: "a", Discarded: 10, Final: true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestReadAll checks that the data of a pipe is kept up to the limit, and that its writer never blocks.
func TestReadAll(t *testing.T) {
	for _, tt := range []struct {
		name       string
		limit      int64
		size, most int // most: what the receiver keeps at once
		want       int
	}{
		{"within", 8 << 20, 1 << 20, 1 << 20, 1 << 20},
		{"beyond", 1 << 20, 16 << 20, 1 << 20, 256 << 10},
		{"not kept", 8 << 20, 1 << 20, 100, 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				_, _ = w.Write(bytes.Repeat([]byte("x"), tt.size))
				_ = w.Close()
			}()
			var got said
			out, kept := newOutput(tt.limit, got.send), 0
			readAll(r, protocol.Stdout, out, func(data []byte) int {
				n := min(len(data), tt.most)
				kept += n
				return n
			})
			out.reportTotals()
			discarded := int64(0)
			for _, c := range got {
				discarded = c.Discarded
			}
			if kept != tt.want || discarded != int64(tt.size-tt.want) {
				t.Errorf("%d bytes were kept and %d discarded, want %d of %d", kept, discarded, tt.want, tt.size)
			}
		})
	}
}

// TestStreamerLimit checks that the streamer stops reading a file at the limit and counts the remaining bytes, also of
// later files.
func TestStreamerLimit(t *testing.T) {
	dir := t.TempDir()
	grow := func(name string, n int) {
		t.Helper()
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.Write(bytes.Repeat([]byte("x"), n)); err != nil {
			t.Fatal(err)
		}
	}
	var cuts said
	got := collect{}
	out := newOutput(1000, cuts.send)
	s := newStreamer([]string{filepath.Join(dir, "*")}, got.send, func(line string) { t.Log(line) }, out)
	defer s.Close()
	drain := func() {
		t.Helper()
		if err := s.Drain(); err != nil {
			t.Fatal(err)
		}
	}
	grow("a", 400)
	drain()
	grow("b", 900)
	drain()
	grow("a", 100)
	grow("b", 50)
	grow("c", 7)
	drain()
	if err := os.Remove(filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	drain()
	out.reportTotals()
	sizes, discarded := map[string]int{}, map[string]int64{}
	for name, text := range got {
		sizes[filepath.Base(name)] = len(text)
	}
	for _, c := range cuts {
		if c.Final {
			discarded[filepath.Base(c.Name)] = c.Discarded
		}
	}
	if diff := cmp.Diff(map[string]int{"a": 400, "b": 600, "c": 0}, sizes); diff != "" {
		t.Errorf("sent: %s", diff)
	}
	if diff := cmp.Diff(map[string]int64{"a": 100, "b": 350, "c": 7}, discarded); diff != "" {
		t.Errorf("discarded: %s", diff)
	}
}
