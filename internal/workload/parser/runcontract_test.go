package parser

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cnsbench/cnsbench/internal/op"
)

// runReading is what a parser of a run makes of files, without times.
func runReading(parse Func, files fstest.MapFS) reading {
	r, err := parse(Input{Files: files, AtWall: func(ns int64) op.Time { return op.Time(ns) }})
	x := reading{err: err}
	for _, s := range r.Scalars {
		x.figures = append(x.figures, fmt.Sprintf("%s %s %v - -", s.Metric, s.Unit, s.Value))
	}
	for _, h := range r.Totals {
		x.figures = append(x.figures, fmt.Sprintf("%s n=%d %v - -", h.Metric, h.Hist.N(), h.Hist.Max()))
	}
	slices.Sort(x.figures)
	for _, w := range r.Warnings {
		x.flags = append(x.flags, w.Code+" "+w.Message)
	}
	return x
}

// TestRunContract damages the report that each tool wrote in a run: cut at each tenth, each line removed, each number
// emptied and made text. A parser says what is wrong, or reads the same scalars and numbers of values.
func TestRunContract(t *testing.T) {
	for _, c := range []struct {
		parser, sample, report string
		// unknowable are parts of what is removed that the format does not promise: figures of options, and tests that stand
		// for themselves.
		unknowable []string
	}{
		{"pgbench", "pgbench/rate", "output/pgbench.txt", nil},
		{"pgbench", "corpus/pgbench/plain", "pgbench.txt", []string{"rate limit schedule lag"}},
		{"redis-benchmark", "redis-benchmark/plain", "output/redis-benchmark.txt", []string{"cut at"}},
		{"sysbench", "corpus/sysbench", "fileio.txt", nil},
		{"sysbench-oltp", "sysbench-oltp/closed", "", nil},
		{"ycsb", "ycsb/a", "", nil},
		{"wrk", "wrk/closed", "", nil},
		{"filebench", "filebench/varmail", "output/filebench.txt", nil},
		{"megahit", "megahit/whole", "output/megahit.log", nil},
		{"etcd", "etcd/full", "output/etcd.txt", nil},
		{"db_bench", "db_bench/one", "output/readwhilewriting.txt", []string{"rocksdb.stall.micros COUNT",
			"Microseconds per"}},
	} {
		t.Run(c.parser+" "+filepath.Base(c.sample), func(t *testing.T) {
			t.Parallel()
			dir := os.DirFS(filepath.Join("testdata", c.sample))
			files := fstest.MapFS{}
			must(t, fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() || strings.HasPrefix(c.sample, "corpus/sysbench") && name != c.report {
					return err
				}
				text, err := fs.ReadFile(dir, name)
				files[name] = &fstest.MapFile{Data: text}
				return err
			}))
			if c.report == "" {
				names, err := fs.Glob(dir, "output/*.txt")
				must(t, err)
				c.report = names[0]
			}
			text := string(files[c.report].Data)
			parse := Parsers(nil)[c.parser]
			whole := runReading(parse, files)
			must(t, whole.err)
			damage := func(what, damaged string) {
				files[c.report] = &fstest.MapFile{Data: []byte(damaged)}
				unknowable := slices.ContainsFunc(c.unknowable, func(part string) bool { return strings.Contains(what, part) })
				if x := runReading(parse, files); x.silent(whole) && !onlyNames(x, whole) && !unknowable {
					t.Errorf("%s: silently %v", what, difference(x, whole))
				}
			}
			for i := 1; i < 10; i++ {
				damage(fmt.Sprintf("cut at %d/10", i), text[:len(text)*i/10])
			}
			for _, l := range linesOf(text) {
				damage(fmt.Sprintf("without the line %q", text[l[0]:l[1]]), text[:l[0]]+text[l[1]:])
			}
			for _, n := range numbersOf(text) {
				for _, instead := range []string{"", "many"} {
					damage(fmt.Sprintf("%q instead of %q in %q", instead, text[n[0]:n[1]], lineOf(text, n[0])),
						text[:n[0]]+instead+text[n[1]:])
				}
			}
		})
	}
}
