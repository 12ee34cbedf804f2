package parser

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/decode"
	"github.com/cnsbench/cnsbench/internal/imported"
)

// corpora are the files that the tools wrote, by the name of the reader. alone: each line of the format stands for
// itself, so that a missing one cannot be known.
var corpora = []struct {
	tool, files string
	alone       bool
}{
	{"fio", "testdata/corpus/fio/*.json", false},
	{"fio-text", "testdata/corpus/fio/*.txt", false},
	{"dbench", "testdata/corpus/dbench/*.txt", false},
	{"kubestr", "testdata/corpus/kubestr/*.txt", false},
	{"cosbench", "testdata/corpus/cosbench/*.csv", true},
	{"warp", "testdata/corpus/warp/*.csv.zst", false},
	{"kbench", "testdata/corpus/kbench/*.txt", false},
	{"elbencho", "testdata/corpus/elbencho/*.csv", true},
	{"ior", "testdata/corpus/ior/*", true},
	{"benchstat", "testdata/corpus/benchstat/*.txt", true},
}

// corpus returns the texts of a reader's corpus that it reads, by file.
func corpus(t testing.TB, files string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(files)
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: no files, %v", files, err)
	}
	texts := map[string]string{}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		text, err := decode.Text(f, 1<<20)
		_ = f.Close()
		if err == nil {
			text, _, err = decode.WithoutPrefixes(text)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		texts[name] = text
	}
	return texts
}

// reading is what a reader made of a text, without the options.
type reading struct {
	figures, flags []string
	err            error
}

func read(tool *imported.Tool, text string) reading {
	r, err := tool.Read(text)
	if err != nil {
		return reading{err: err}
	}
	var x reading
	for _, f := range r.Figures {
		x.figures = append(x.figures, fmt.Sprintf("%s %s %v %v %v", f.Name, f.Unit, f.Value, f.Levels, f.Options["job"]))
	}
	for _, f := range r.Flags {
		x.flags = append(x.flags, f.Name+" "+f.Evidence)
	}
	return x
}

// silent reports whether a damaged text gives other figures than the whole one, and the reader says nothing of it.
func (x reading) silent(whole reading) bool {
	if x.err != nil || len(x.figures) == 0 || slices.Equal(x.figures, whole.figures) {
		return false
	}
	return !slices.ContainsFunc(x.flags, func(f string) bool { return !slices.Contains(whole.flags, f) })
}

var numbers = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)

// TestContract damages each file of each corpus: cut at each tenth, each line and each column removed, each number
// emptied and made text. A reader refuses the damaged text, or says what is wrong, or reads the same figures.
func TestContract(t *testing.T) {
	for _, c := range corpora {
		tool := tool(t, c.tool)
		for name, text := range corpus(t, c.files) {
			t.Run(filepath.Base(name), func(t *testing.T) {
				t.Parallel()
				whole := read(&tool, text)
				if whole.err != nil {
					t.Skipf("refused whole: %v", whole.err)
				}
				for i := 1; i < 10; i++ {
					if cut := text[:len(text)*i/10]; read(&tool, cut).silent(whole) {
						t.Errorf("cut at %d/10: %v", i, read(&tool, cut))
					}
				}
				for _, damaged := range withoutColumns(name, text) {
					if x := read(&tool, damaged); x.silent(whole) {
						t.Errorf("without a column, header %q: silently %v", lineOf(damaged, 0), difference(x, whole))
					}
				}
				for _, l := range linesOf(text) {
					if without := text[:l[0]] + text[l[1]:]; !c.alone && read(&tool, without).silent(whole) {
						t.Errorf("without the line %q: silently %v", text[l[0]:l[1]], difference(read(&tool, without), whole))
					}
				}
				for _, n := range numbersOf(text) {
					for _, instead := range []string{"", "many"} {
						damaged := text[:n[0]] + instead + text[n[1]:]
						if x := read(&tool, damaged); x.silent(whole) && !onlyNames(x, whole) {
							t.Errorf("%q instead of %q in %q: silently %v", instead, text[n[0]:n[1]], lineOf(text, n[0]), difference(x,
								whole))
						}
					}
				}
			})
		}
	}
}

// withoutColumns returns a table without each of its columns; nothing of another file.
func withoutColumns(name, text string) (list []string) {
	separator := ","
	switch {
	case strings.HasSuffix(name, ".csv.zst"):
		separator = "\t"
	case !strings.HasSuffix(name, ".csv"):
		return nil
	}
	for i := range strings.Split(lineOf(text, 0), separator) {
		var b strings.Builder
		for line := range strings.Lines(text) {
			cells := strings.Split(strings.TrimSuffix(line, "\n"), separator)
			if i < len(cells) && !strings.HasPrefix(line, "#") {
				cells = slices.Delete(cells, i, i+1)
			}
			b.WriteString(strings.Join(cells, separator) + "\n")
		}
		list = append(list, b.String())
	}
	return list
}

// linesOf are the begins and ends of the lines of a text; of those that differ only in numbers the first three.
func linesOf(text string) (list [][2]int) {
	seen := map[string]int{}
	at := 0
	for line := range strings.Lines(text) {
		shape := numbers.ReplaceAllString(line, "0")
		if seen[shape]++; seen[shape] <= 3 {
			list = append(list, [2]int{at, at + len(line)})
		}
		at += len(line)
	}
	return list
}

// numbersOf are the begins and ends of the numbers in those lines.
func numbersOf(text string) (list [][2]int) {
	for _, l := range linesOf(text) {
		for _, n := range numbers.FindAllStringIndex(text[l[0]:l[1]], -1) {
			list = append(list, [2]int{l[0] + n[0], l[0] + n[1]})
		}
	}
	return list
}

// onlyNames reports whether two readings have the same values: the damage is in a name.
func onlyNames(a, b reading) bool {
	values := func(x reading) (list []string) {
		for _, f := range x.figures {
			words := strings.Fields(f)
			list = append(list, words[len(words)-3])
		}
		slices.Sort(list)
		return list
	}
	return slices.Equal(values(a), values(b))
}

func difference(a, b reading) (list []string) {
	for _, f := range a.figures {
		if !slices.Contains(b.figures, f) {
			list = append(list, "+"+f)
		}
	}
	for _, f := range b.figures {
		if !slices.Contains(a.figures, f) {
			list = append(list, "-"+f)
		}
	}
	return list[:min(len(list), 4)]
}

func lineOf(text string, at int) string {
	begin := strings.LastIndexByte(text[:at], '\n') + 1
	line, _, _ := strings.Cut(text[begin:], "\n")
	return line
}

// TestRecognised: each file of each corpus is recognised as that of its tool, and of no other.
func TestRecognised(t *testing.T) {
	for _, c := range corpora {
		for name, text := range corpus(t, c.files) {
			if strings.HasSuffix(name, "both-formats.txt") {
				continue // JSON after a report for people: the JSON is read
			}
			var found []string
			for _, tool := range Tools() {
				if tool.Is(text) {
					found = append(found, tool.Name)
				}
			}
			if !slices.Equal(found, []string{c.tool}) {
				t.Errorf("%s: recognised as %v, want %s", name, found, c.tool)
			}
		}
	}
}
