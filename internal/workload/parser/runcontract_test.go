package parser

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cnsbench/cnsbench/internal/op"
)

// runReading is what a parser of a run makes of files, without times.
func runReading(parse Func, files fstest.MapFS) reading {
	r, err := parse(Input{Files: files, AtWall: runClock})
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

// runCorpus has the runs of a reader of runs.
type runCorpus struct {
	parser, runs, report string
	// unknowable are parts of what is removed that the format does not promise: figures of options, and tests that stand
	// for themselves.
	unknowable []string
	// spared are lines of which a run has hundreds, without a figure that is read: they are not damaged.
	spared *regexp.Regexp
}

// runClock is a clock of a run that begins with 1970.
func runClock(ns int64) op.Time { return op.Time(ns) }

// runCorpora are the corpora of the readers of runs. A folder has the files of one run; a file stands for a run whose
// stdout it is.
var runCorpora = []runCorpus{
	{"pgbench", "corpus/pgbench/*/", "*.txt", []string{"rate limit schedule lag"}, nil},
	{"redis-benchmark", "corpus/redis-benchmark/*.txt", "*.txt", []string{"cut at", `without the line "\"`,
		"requests per second, p50="}, nil},
	{"sysbench", "corpus/sysbench/fileio*.txt", "*.txt", nil, nil},
	{"sysbench-oltp", "sysbench-oltp/closed/", "output/*.txt", nil, nil},
	{"ycsb", "corpus/ycsb/*/", "*.txt", nil, nil},
	{"wrk", "corpus/wrk/*/", "*.txt", nil, nil},
	{"filebench", "filebench/*/", "output/*.txt", nil, nil},
	{"megahit", "corpus/megahit/*/", "*.log", nil, regexp.MustCompile(`- b'INFO  \./src/[a-t]`)},
	{"etcd", "corpus/etcd/*/", "*.txt", nil, nil},
	{"db_bench", "corpus/db_bench/*/", "*.txt", []string{"rocksdb.stall.micros COUNT", "Microseconds per"},
		regexp.MustCompile(`^rocksdb\.[^s]`)},
}

// runFiles returns the files of a run of a corpus.
func runFiles(t testing.TB, run string) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	if filepath.Ext(run) == ".txt" {
		text, err := os.ReadFile(run)
		must(t, err)
		return fstest.MapFS{filepath.Base(run): {Data: text}}
	}
	dir := os.DirFS(run)
	must(t, fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(dir, name)
		files[name] = &fstest.MapFile{Data: text}
		return err
	}))
	return files
}

// corpusRuns returns the runs of a corpus.
func corpusRuns(t testing.TB, pattern string) []string {
	t.Helper()
	runs, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(runs) == 0 {
		t.Fatalf("%s: no runs, %v", pattern, err)
	}
	return slices.DeleteFunc(runs, func(name string) bool { return filepath.Base(name) == "VERSION" })
}

// TestRunContract damages the report that each tool wrote in a run: cut at each tenth, each line removed, each number
// emptied and made text. A parser says what is wrong, or reads the same scalars and numbers of values.
func TestRunContract(t *testing.T) {
	for _, c := range runCorpora {
		for _, run := range corpusRuns(t, c.runs) {
			t.Run(c.parser+" "+filepath.Base(run), func(t *testing.T) {
				t.Parallel()
				files := runFiles(t, run)
				reports, err := fs.Glob(files, c.report)
				must(t, err)
				for _, other := range reports[1:] { // the first one stands for them
					delete(files, other)
				}
				parse := Parsers(nil)[c.parser]
				whole := runReading(parse, files)
				if whole.err != nil {
					t.Skipf("refused whole: %v", whole.err)
				}
				report, text := reports[0], string(files[reports[0]].Data)
				eachDamage(text, c.spared, func(what, damaged string) {
					files[report] = &fstest.MapFile{Data: []byte(damaged)}
					unknowable := slices.ContainsFunc(c.unknowable, func(part string) bool { return strings.Contains(what, part) })
					if x := runReading(parse, files); x.silent(whole) && !onlyNames(x, whole) && !unknowable {
						t.Errorf("%s: %s: silently %v", report, what, difference(x, whole))
					}
				})
			})
		}
	}
}

// eachDamage calls do with a text that is cut at each tenth, lacks a line, or lacks a number or has a word
// instead. Spared lines are left as they are.
func eachDamage(text string, spared *regexp.Regexp, do func(what, damaged string)) {
	for i := 1; i < 10; i++ {
		do(fmt.Sprintf("cut at %d/10", i), text[:len(text)*i/10])
	}
	for _, l := range linesOf(text) {
		if spared != nil && spared.MatchString(text[l[0]:l[1]]) {
			continue
		}
		do(fmt.Sprintf("without the line %q", text[l[0]:l[1]]), text[:l[0]]+text[l[1]:])
	}
	for _, n := range numbersOf(text) {
		if spared != nil && spared.MatchString(lineOf(text, n[0])) {
			continue
		}
		for _, instead := range []string{"", "many"} {
			do(fmt.Sprintf("%q instead of %q in %q", instead, text[n[0]:n[1]], lineOf(text, n[0])),
				text[:n[0]]+instead+text[n[1]:])
		}
	}
}
