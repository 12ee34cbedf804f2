package parser

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/imported"
)

// maxWarpOps is the most operations of a file.
const maxWarpOps = 20_000_000

// maxWarpTypes is the most types of operation.
const maxWarpTypes = 100

// warpColumns are the columns that are read. Versions of warp have further ones.
var warpColumns = []string{"idx", "op", "bytes", "error", "start", "first_byte", "end"}

// warpOps are the operations of one type.
type warpOps struct {
	latency, firstByte []int64 // ns
	from, to           time.Time
	bytes, failed      int64
}

func isWarp(text string) bool {
	first, _, _ := strings.Cut(text, "\n")
	return strings.Contains(first, "\tendpoint\t") && strings.Contains(first, "\top\t") || isWarpAggregate(text)
}

// isWarpAggregate recognises the JSON that newer versions of warp write without --full.
func isWarpAggregate(text string) bool {
	begin := text[:min(len(text), 1<<16)]
	return strings.HasPrefix(strings.TrimSpace(begin), "{") && strings.Contains(begin, `"commandline"`) &&
		strings.Contains(begin, `"total"`)
}

// readWarp reads the operations that warp writes with --full (FILE.csv.zst): tab-separated lines, one for each
// operation. Its format is that of Operations.CSV and Collector in warp's pkg/bench. Rates are of operations that
// succeeded, over the time from the first start to the last end of all of the type; warp itself leaves out the time in
// which not all of its threads are busy. The share of operations that failed is a figure of its own.
func readWarp(text string) (*imported.Report, error) {
	if isWarpAggregate(text) {
		return nil, errors.New("this is warp's aggregate, which has no single operations: run warp with --full, and import " +
			"its FILE.csv.zst")
	}
	w := &warpFile{ops: map[string]*warpOps{}}
	if at := strings.LastIndexByte(text, '\n') + 1; at > 0 && at < len(text) && text[at] != '#' {
		text = text[:at]
		w.flag(imported.Warning, "lastLineCut", "the last line has no end and is left out: the file may be cut off")
	}
	if err := w.read(strings.NewReader(text)); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(w.ops)) {
		w.figures(name, w.ops[name])
	}
	return w.done()
}

// warpFile is the work on a file.
type warpFile struct {
	report
	ops    map[string]*warpOps // by type
	at     map[string]int      // columns; -1: there is none
	record []string            // that is read
	next   int64               // the number of the next operation; negative: some are missing
}

func (w *warpFile) cell(column string) string {
	if at := w.at[column]; at >= 0 {
		return w.record[at]
	}
	return ""
}

// read reads the operations.
func (w *warpFile) read(from io.Reader) error {
	in := csv.NewReader(from)
	in.Comma, in.Comment, in.ReuseRecord = '\t', '#', true
	header, err := in.Read()
	if errors.Is(err, io.EOF) {
		return errors.New("the file is empty")
	}
	if err != nil {
		return err
	}
	w.at = map[string]int{}
	for _, column := range warpColumns {
		w.at[column] = slices.Index(header, column)
		switch {
		case w.at[column] >= 0:
		case column == "idx":
			w.flag(imported.Info, "linesUncounted", "there is no column idx: whether lines are missing is unknown")
		case column == "first_byte":
			w.flag(imported.Info, "figuresMissing", "there is no column first_byte: early versions of warp have none")
		default:
			return fmt.Errorf("no column %s: want the operations that warp writes with --full (csv.zst), not its analysis",
				column)
		}
	}
	for n := 0; w.err == nil; n++ {
		w.record, err = in.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case n >= maxWarpOps:
			return fmt.Errorf("more than %d operations: split the run", maxWarpOps)
		}
		w.line, _ = in.FieldPos(0)
		w.count()
		w.add()
	}
	return w.err
}

// count checks the number of an operation.
func (w *warpFile) count() {
	if w.at["idx"] < 0 {
		return
	}
	i, err := strconv.ParseInt(w.cell("idx"), 10, 64)
	if err != nil {
		w.refuse("invalid idx %q", w.cell("idx"))
	}
	if w.next >= 0 && i != w.next {
		w.flag(imported.Warning, "linesMissing", "line %d has idx %d, want %d: lines are missing or in another order", w.line,
			i, w.next)
		w.next = math.MinInt64
	}
	w.next++
}

// time reads the time of a column.
func (w *warpFile) time(column string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, w.cell(column))
	if err != nil {
		w.refuse("invalid %s %q: want a time such as 2026-11-24T10:00:00.123456789Z", column, w.cell(column))
	}
	return t
}

// add adds one operation.
func (w *warpFile) add() {
	o := w.ops[w.cell("op")]
	if o == nil {
		switch {
		case w.cell("op") == "":
			w.refuse("no type of operation")
		case len(w.ops) >= maxWarpTypes:
			w.refuse("more than %d types of operation", maxWarpTypes)
		}
		o = &warpOps{}
		w.ops[strings.Clone(w.cell("op"))] = o
	}
	start, end := w.time("start"), w.time("end")
	if end.Before(start) {
		w.refuse("the end %s is before the start %s", w.cell("end"), w.cell("start"))
	}
	if o.from.IsZero() || start.Before(o.from) {
		o.from = start
	}
	if end.After(o.to) {
		o.to = end
	}
	if w.cell("error") != "" {
		o.failed++
		return
	}
	n, err := strconv.ParseInt(w.cell("bytes"), 10, 64)
	if err != nil || n < 0 || o.bytes > math.MaxInt64-n {
		w.refuse("invalid bytes %q: want a number from 0", w.cell("bytes"))
	}
	if w.cell("first_byte") != "" {
		first := w.time("first_byte")
		if first.Before(start) {
			w.refuse("the first byte %s is before the start %s", w.cell("first_byte"), w.cell("start"))
		}
		o.firstByte = append(o.firstByte, int64(first.Sub(start)))
	}
	o.bytes += n
	o.latency = append(o.latency, int64(end.Sub(start)))
}

// figures adds the figures of one type. Operations without a duration have no rate; those without bytes no bandwidth.
func (w *warpFile) figures(name string, o *warpOps) {
	n := int64(len(o.latency))
	if seconds := o.to.Sub(o.from).Seconds(); seconds > 0 {
		w.figure(name+" throughput", "op/s", float64(n)/seconds, nil)
		if o.bytes > 0 {
			w.figure(name+" bandwidth", "B/s", float64(o.bytes)/seconds, nil)
		}
	}
	for _, of := range []struct {
		name   string
		values []int64
	}{{" latency", o.latency}, {" first byte", o.firstByte}} {
		slices.Sort(of.values)
		for _, q := range []struct {
			name  string
			q     float64
			least int
		}{{" p50", 0.5, 1}, {" p90", 0.9, 10}, {" p99", 0.99, 100}} {
			if n := len(of.values); n >= q.least {
				w.figure(name+of.name+q.name, "ns", float64(of.values[int(math.Ceil(q.q*float64(n)))-1]), nil)
			}
		}
	}
	w.figure(name+" failed", "%", 100*float64(o.failed)/float64(n+o.failed), nil)
	if o.failed > 0 {
		w.flag(imported.Warning, "operationsFailed", "%s: %d of %d operations failed; rates and latencies are of the others",
			name, o.failed, n+o.failed)
	}
}
