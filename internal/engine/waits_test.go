package engine

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// logged is a sink that keeps log lines.
type logged struct {
	Sink
	lines []string
}

func (l *logged) Log(source, line string) { l.lines = append(l.lines, source+": "+line) }

func TestNoteRemoval(t *testing.T) {
	for _, tt := range []struct {
		takes time.Duration
		want  []string
	}{
		{900 * time.Millisecond, nil},
		{1100 * time.Millisecond, []string{"waits: volume a waits: for its removal", "waits: volume a waits no longer"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var sink logged
			done := NoteRemoval(&sink, "volume a")
			time.Sleep(tt.takes)
			done()
			time.Sleep(time.Minute)
			if !slices.Equal(sink.lines, tt.want) {
				t.Errorf("%v: %q, want %q", tt.takes, sink.lines, tt.want)
			}
		})
	}
	NoteRemoval(nil, "volume a")()
}
