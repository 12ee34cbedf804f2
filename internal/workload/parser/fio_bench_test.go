package parser

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/cnsbench/cnsbench/internal/op"
)

// BenchmarkFioLog reads a histogram log of fio, whole and from its file to the slices of a run.
func BenchmarkFioLog(b *testing.B) {
	log := fioLogOf(b, 10_000)
	b.Run("rows", func(b *testing.B) {
		b.SetBytes(int64(len(log)))
		for b.Loop() {
			if rows, err := readHistLog(bytes.NewReader(log)); err != nil || len(rows) == 0 {
				b.Fatal(len(rows), err)
			}
		}
	})
	b.Run("slices", func(b *testing.B) {
		report, err := os.ReadFile(filepath.Join("testdata", "fio", "stall", "fio.json"))
		if err != nil {
			b.Fatal(err)
		}
		in := Input{Files: fstest.MapFS{"fio.json": {Data: report}, "h_clat_hist.1.log": {Data: log}},
			AtWall: func(u int64) op.Time { return op.Time(u) }}
		b.SetBytes(int64(len(log)))
		for b.Loop() {
			if r, err := Fio(in); err != nil || len(r.Slices) == 0 {
				b.Fatal(len(r.Slices), err)
			}
		}
	})
}

// fioLogOf repeats a recorded log of fio up to a number of rows, at later times.
func fioLogOf(b *testing.B, rows int) []byte {
	b.Helper()
	recorded, err := os.ReadFile(filepath.Join("testdata", "fio", "stall", "h_clat_hist.1.log"))
	if err != nil {
		b.Fatal(err)
	}
	lines := bytes.SplitAfter(bytes.TrimSuffix(recorded, []byte("\n")), []byte("\n"))
	var log bytes.Buffer
	for i := range rows {
		_, rest, _ := bytes.Cut(lines[i%len(lines)], []byte(","))
		fmt.Fprintf(&log, "%d,%s\n", 1_700_000_000_000+1000*int64(i), bytes.TrimSuffix(rest, []byte("\n")))
	}
	return log.Bytes()
}

// BenchmarkFioReport reads a JSON+ report.
func BenchmarkFioReport(b *testing.B) {
	var report []byte
	names, err := filepath.Glob(filepath.Join("testdata", "fio", "*", "fio.json"))
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range names { // the largest
		text, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		if len(text) > len(report) {
			report = text
		}
	}
	in := Input{Files: fstest.MapFS{"fio.json": {Data: report}}, AtWall: func(u int64) op.Time { return op.Time(u) }}
	b.SetBytes(int64(len(report)))
	for b.Loop() {
		if r, err := Fio(in); err != nil || len(r.Totals) == 0 {
			b.Fatal(len(r.Totals), err)
		}
	}
}
