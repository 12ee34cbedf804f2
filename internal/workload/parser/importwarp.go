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
var warpColumns = []string{"op", "bytes", "error", "start", "first_byte", "end"}

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
	r := &report{}
	if at := strings.LastIndexByte(text, '\n'); at >= 0 && at < len(text)-1 {
		if last := text[at+1:]; !strings.HasPrefix(last, "#") {
			text = text[:len(text)-len(last)]
			r.flag(imported.Warning, "lastLineCut", "the last line has no end and is left out: the file may be cut off")
		}
	}
	ops, err := r.warpOperations(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(ops)) {
		r.warp(name, ops[name])
	}
	return &r.Report, nil
}

// warpOperations reads the operations by type.
func (r *report) warpOperations(from io.Reader) (map[string]*warpOps, error) {
	in := csv.NewReader(from)
	in.Comma, in.Comment, in.ReuseRecord = '\t', '#', true
	header, err := in.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the file is empty")
	}
	if err != nil {
		return nil, err
	}
	at := map[string]int{}
	at["idx"] = slices.Index(header, "idx")
	for _, column := range warpColumns {
		at[column] = slices.Index(header, column)
		if at[column] < 0 && column != "first_byte" { // early versions have none
			return nil, fmt.Errorf("no column %s: want the operations that warp writes with --full (csv.zst), not its analysis",
				column)
		}
	}
	if at["first_byte"] < 0 {
		r.flag(imported.Info, "figuresMissing", "there is no column first_byte: early versions of warp have none")
	}
	if at["idx"] < 0 {
		r.flag(imported.Info, "linesUncounted", "there is no column idx: whether lines are missing is unknown")
	}
	ops, next, broken := map[string]*warpOps{}, int64(0), false
	for n := 0; ; n++ {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			return ops, nil
		}
		if err != nil {
			return nil, err
		}
		if n >= maxWarpOps {
			return nil, fmt.Errorf("more than %d operations: split the run", maxWarpOps)
		}
		cell := func(column string) string {
			if at[column] < 0 {
				return ""
			}
			return record[at[column]]
		}
		if at["idx"] >= 0 {
			line, _ := in.FieldPos(0)
			i, err := strconv.ParseInt(cell("idx"), 10, 64)
			if err != nil {
				return nil, fmt.Errorf("line %d: invalid idx %q", line, cell("idx"))
			}
			if i != next && !broken {
				broken = true
				r.flag(imported.Warning, "linesMissing", "line %d has idx %d, want %d: lines are missing or in another order",
					line, i,
					next)
			}
			next = i + 1
		}
		if err := addWarp(ops, cell); err != nil {
			line, _ := in.FieldPos(0)
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
	}
}

// addWarp adds one operation.
func addWarp(ops map[string]*warpOps, cell func(string) string) error {
	name := strings.Clone(cell("op"))
	if name == "" {
		return errors.New("no type of operation")
	}
	o := ops[name]
	if o == nil {
		if len(ops) >= maxWarpTypes {
			return fmt.Errorf("more than %d types of operation", maxWarpTypes)
		}
		o = &warpOps{}
		ops[name] = o
	}
	failed := cell("error") != ""
	times := map[string]time.Time{}
	for _, column := range []string{"start", "end", "first_byte"} {
		if cell(column) == "" && column == "first_byte" || failed && column == "first_byte" {
			continue
		}
		t, err := time.Parse(time.RFC3339Nano, cell(column))
		if err != nil {
			return fmt.Errorf("invalid %s %q: want a time such as 2026-11-24T10:00:00.123456789Z", column, cell(column))
		}
		times[column] = t
	}
	start, end := times["start"], times["end"]
	if end.Before(start) {
		return fmt.Errorf("the end %s is before the start %s", cell("end"), cell("start"))
	}
	if o.from.IsZero() || start.Before(o.from) {
		o.from = start
	}
	if end.After(o.to) {
		o.to = end
	}
	if failed {
		o.failed++
		return nil
	}
	n, err := strconv.ParseInt(cell("bytes"), 10, 64)
	if err != nil || n < 0 || o.bytes > math.MaxInt64-n {
		return fmt.Errorf("invalid bytes %q: want a number from 0", cell("bytes"))
	}
	if first, ok := times["first_byte"]; ok {
		if first.Before(start) {
			return fmt.Errorf("the first byte %s is before the start %s", cell("first_byte"), cell("start"))
		}
		o.firstByte = append(o.firstByte, int64(first.Sub(start)))
	}
	o.bytes += n
	o.latency = append(o.latency, int64(end.Sub(start)))
	return nil
}

// warp adds the figures of one type. Operations without a duration have no rate; those without bytes no bandwidth.
func (r *report) warp(name string, o *warpOps) {
	n := int64(len(o.latency))
	if seconds := o.to.Sub(o.from).Seconds(); seconds > 0 {
		r.figure(name+" throughput", "op/s", float64(n)/seconds, nil)
		if o.bytes > 0 {
			r.figure(name+" bandwidth", "B/s", float64(o.bytes)/seconds, nil)
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
				r.figure(name+of.name+q.name, "ns", float64(of.values[int(math.Ceil(q.q*float64(n)))-1]), nil)
			}
		}
	}
	r.figure(name+" failed", "%", 100*float64(o.failed)/float64(n+o.failed), nil)
	if o.failed > 0 {
		r.flag(imported.Warning, "operationsFailed", "%s: %d of %d operations failed; rates and latencies are of the others",
			name,
			o.failed, n+o.failed)
	}
}
