package imported

import (
	"bytes"
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

	"github.com/klauspost/compress/zstd"
)

// Limits of a file of warp.
const (
	maxWarpOps    = 20_000_000
	maxWarpText   = 8 << 30 // of decompressed text
	maxWarpMemory = 256 << 20
)

// zstdMagic begins compressed files.
var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// warpColumns are the columns that are read. Versions of warp have further ones.
var warpColumns = []string{"op", "bytes", "error", "start", "first_byte", "end"}

// warpOps are the operations of one type.
type warpOps struct {
	latency, firstByte []int64 // ns
	from, to           time.Time
	bytes, failed      int64
}

// parseWarp reads the operations that warp writes with --full (FILE.csv.zst): tab-separated lines, one for each
// operation, compressed or not. Its format is that of Operations.CSV and Collector in warp's pkg/bench. The figures of
// a type of operation are over the time from its first start to its last end, of operations that succeeded; warp itself
// leaves out the time in which not all of its threads are busy.
func parseWarp(text string) ([]Figure, error) {
	var from io.Reader = strings.NewReader(text)
	if bytes.HasPrefix([]byte(text[:min(len(text), 4)]), zstdMagic) {
		z, err := zstd.NewReader(from, zstd.WithDecoderMaxMemory(maxWarpMemory), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		from = z
	}
	bound := &io.LimitedReader{R: from, N: maxWarpText}
	ops, err := readWarp(bound)
	if err != nil {
		if bound.N <= 0 {
			return nil, fmt.Errorf("more than %d GiB of text: split the run", maxWarpText>>30)
		}
		return nil, err
	}
	var list []Figure
	for _, name := range slices.Sorted(maps.Keys(ops)) {
		list = append(list, ops[name].figures(name)...)
	}
	return list, nil
}

// readWarp reads the operations by type.
func readWarp(from io.Reader) (map[string]*warpOps, error) {
	r := csv.NewReader(from)
	r.Comma, r.Comment, r.ReuseRecord = '\t', '#', true
	header, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the file is empty")
	}
	if err != nil {
		return nil, err
	}
	at := map[string]int{}
	for _, column := range warpColumns {
		at[column] = slices.Index(header, column)
		if at[column] < 0 && column != "first_byte" { // early versions have none
			return nil, fmt.Errorf("no column %s: want the operations that warp writes with --full (csv.zst), not its analysis",
				column)
		}
	}
	ops := map[string]*warpOps{}
	for n := 0; ; n++ {
		record, err := r.Read()
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
		if err := addWarp(ops, cell); err != nil {
			line, _ := r.FieldPos(0)
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
		if len(ops) >= MaxLevels/10 {
			return fmt.Errorf("more than %d types of operation", MaxLevels/10)
		}
		o = &warpOps{}
		ops[name] = o
	}
	if cell("error") != "" {
		o.failed++
		return nil
	}
	times := map[string]time.Time{}
	for _, column := range []string{"start", "end", "first_byte"} {
		if cell(column) == "" && column == "first_byte" {
			continue
		}
		t, err := time.Parse(time.RFC3339Nano, cell(column))
		if err != nil {
			return fmt.Errorf("invalid %s %q: want a time such as 2026-11-24T10:00:00.123456789Z", column, cell(column))
		}
		times[column] = t
	}
	n, err := strconv.ParseInt(cell("bytes"), 10, 64)
	if err != nil || n < 0 || o.bytes > math.MaxInt64-n {
		return fmt.Errorf("invalid bytes %q: want a number from 0", cell("bytes"))
	}
	start, end := times["start"], times["end"]
	if end.Before(start) {
		return fmt.Errorf("the end %s is before the start %s", cell("end"), cell("start"))
	}
	if first, ok := times["first_byte"]; ok {
		if first.Before(start) {
			return fmt.Errorf("the first byte %s is before the start %s", cell("first_byte"), cell("start"))
		}
		o.firstByte = append(o.firstByte, int64(first.Sub(start)))
	}
	if o.from.IsZero() || start.Before(o.from) {
		o.from = start
	}
	if end.After(o.to) {
		o.to = end
	}
	o.bytes += n
	o.latency = append(o.latency, int64(end.Sub(start)))
	return nil
}

// figures are those of one type. Operations without a duration have no rate; those without bytes no bandwidth.
func (o *warpOps) figures(name string) []Figure {
	var list []Figure
	if seconds := o.to.Sub(o.from).Seconds(); seconds > 0 {
		list = append(list, figureOf(name+" throughput", "op/s", float64(len(o.latency))/seconds))
		if o.bytes > 0 {
			list = append(list, figureOf(name+" bandwidth", "B/s", float64(o.bytes)/seconds))
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
				list = append(list, figureOf(name+of.name+q.name, "ns", float64(of.values[int(math.Ceil(q.q*float64(n)))-1])))
			}
		}
	}
	if o.failed > 0 {
		list = append(list, figureOf(name+" failures", "operations", float64(o.failed)))
	}
	return list
}
