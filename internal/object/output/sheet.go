package output

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

// sheet is COSBench's file of a stage while it is written: a row for each second, with all operations of all works.
// The k-th row sums up the k-th second of each host. Hosts report works one by one; the cells of works that have ended
// are empty.
type sheet struct {
	file    string
	works   []*model.Work                // that have operations
	last    [][]int                      // by host and work: the row that it has added to last; -1: none; or absent
	start   op.Time                      // of the first second
	rows    map[int][]loadgen.WorkResult // by second and work; To is 0 before it receives
	next    int                          // the first row that is not written
	version int                          // of the last one that is
}

// sheetHeld is how many seconds a row waits for a host that has begun, or may begin, and does not report.
const sheetHeld = 16

// absent is the last row of a work that its host does not run.
const absent = math.MaxInt

func newSheet(file string, s *model.Stage, hosts int) *sheet {
	f := &sheet{file: file, start: op.Never, rows: map[int][]loadgen.WorkResult{}}
	for i := range s.Works {
		if s.Works[i].Kind != model.Delay {
			f.works = append(f.works, &s.Works[i])
		}
	}
	for range hosts {
		f.last = append(f.last, slices.Repeat([]int{-1}, len(f.works)))
	}
	return f
}

// begin says which works a host runs; it will report no others.
func (f *sheet) begin(host int, works []model.Work) {
	for i, w := range f.works {
		if !slices.ContainsFunc(works, func(x model.Work) bool { return x.Name == w.Name }) {
			f.last[host][i] = absent
		}
	}
}

// end says that a host reports nothing more, unless it gets another share.
func (f *sheet) end(host int) { f.begin(host, nil) }

// add takes in what a host did of a work; what comes late is added to the next row.
func (f *sheet) add(host int, w *model.Work, from, to op.Time, cells loadgen.Cells) error {
	if !f.start.Known() {
		f.start = from
	}
	second := max(f.next, int(time.Duration(to-f.start).Round(time.Second)/time.Second)-1)
	row := f.rows[second]
	if row == nil {
		for _, w := range f.works {
			row = append(row, loadgen.WorkResult{Work: w, Cells: loadgen.Cells{}})
		}
		f.rows[second] = row
	}
	i := slices.IndexFunc(f.works, func(x *model.Work) bool { return x.Name == w.Name })
	f.last[host][i] = second
	r := &row[i]
	if r.To == 0 {
		r.From, r.To = from, to
	}
	r.From, r.To = min(r.From, from), max(r.To, to)
	for k, cell := range cells {
		k.Ramp = false // what is done in a ramp has its rows too
		if err := r.Cells.Merge(loadgen.Cells{k: cell}); err != nil {
			return err
		}
	}
	return nil
}

// waits reports whether a host may still add to a row. A host reports its works one by one each second. A work that has
// not added to a row when another of the same host is two rows ahead has ended.
func (f *sheet) waits(row int) bool {
	return slices.ContainsFunc(f.last, func(works []int) bool {
		behind, ahead := false, false
		for _, last := range works {
			behind = behind || last < row
			ahead = ahead || last > row+1 && last != absent
		}
		return behind && !ahead
	})
}

// take returns the rows that can be written: those that all works have reported, or that waited long enough, except
// the last, which a remainder may join; at the end all.
func (f *sheet) take(start time.Time, end bool) (text [][]string, err error) {
	seconds := slices.Sorted(maps.Keys(f.rows))
	for _, k := range seconds {
		row := f.rows[k]
		latest := seconds[len(seconds)-1]
		if (k == latest || f.waits(k)) && !end && latest-k < sheetHeld {
			break
		}
		var figures []loadgen.Figures
		to := op.Time(0)
		for i := range row {
			of, err := row[i].Figures()
			if err != nil {
				return nil, err
			}
			figures, to = append(figures, of...), max(to, row[i].To)
		}
		if delete(f.rows, k); f.version == 0 {
			text = stageHeader(f.works)
		}
		f.next, f.version = k+1, f.version+1
		text = append(text, stageRow(figures, start.Add(time.Duration(to)), f.version))
	}
	return text, nil
}
