package parser

import (
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
)

// fioWindows follows the windows of one direction of a histogram log. fio writes a row when the first I/O completes
// after the end of a window, and the next window begins at that end, not at the row (hist_last in fio's stat.c). So
// between the end and the row nothing completed, and rows of a single I/O follow until the windows have caught up.
type fioWindows struct {
	step  int64 // ms
	over  int64 // latest possible end of the last window, a stamp of the log
	begun bool
	known bool // the log has such windows
}

// newFioWindows checks that the rows are of such windows: a row whose window was over before the row before it has one
// I/O. Rows of several jobs in one file are not, nor are those of a fio that begins its windows at the rows.
func newFioWindows(rows []*histRow, step time.Duration) *fioWindows {
	w := &fioWindows{step: step.Milliseconds(), known: true}
	for i, row := range rows {
		if over := w.next(row.At); i > 0 && over <= rows[i-1].At && row.Counts.n != 1 {
			return &fioWindows{}
		}
	}
	return &fioWindows{step: w.step, known: true}
}

// next returns the latest possible end of the window of the next row, which has a stamp: the stamp, if no more is
// known.
func (w *fioWindows) next(stamp int64) int64 {
	switch {
	case !w.known:
		return stamp
	case !w.begun:
		w.over, w.begun = stamp, true
	default:
		w.over = min(w.over+w.step, stamp)
	}
	return w.over
}

// fioSlice is a slice of a log, [from, to). From silent on nothing completed but atEnd I/Os at its end.
type fioSlice struct {
	from, to, silent op.Time
	atEnd            int64
}

// addTo adds the n I/Os of a slice to rates. An I/O that comes within a tenth of a step after the end of its window is
// no silence.
func (s fioSlice) addTo(r *rates, name string, n int64, size float64) {
	if s.silent = max(s.silent, s.from); s.to-s.silent < r.step/10 {
		r.add(name, s.from, s.to, float64(n), size)
		return
	}
	last := s.to - op.Time(time.Millisecond)
	r.add(name, s.from, s.silent, float64(n-s.atEnd), size)
	r.add(name, s.silent, last, 0, size)
	r.add(name, last, s.to, float64(s.atEnd), size)
}
