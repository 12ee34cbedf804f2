// Package hostile makes bundles, studies and imported folders as an attacker would: from good ones by each kind of file
// in each place, by each text, time and number of the formats, which it finds by their Go types, and by forged
// identities, sources and places. docs/design/security.md says which attacks these are.
package hostile

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Kinds are all kinds of good bundles.
var Kinds = []string{Local, Cluster, Object, Study, Imported}

// Variant is one hostile bundle, study or imported folder.
type Variant struct {
	Name  string // unique with Kind
	Group string
	Kind  string
	// File is what was replaced, relative to the bundle, and Want is in the error of a command that reads it; both may
	// be empty.
	File, Want string
	// Says is in the output of show: a count of what it left out.
	Says string
	make func(tb testing.TB, dir string, o *Outside)
}

// String identifies the variant.
func (v *Variant) String() string { return v.Kind + ": " + v.Name }

// Maker makes hostile bundles.
type Maker struct {
	bases map[string]string // kind to a good bundle
	rng   *rand.Rand
}

// New makes the good bundles in a directory. The seed decides which extreme a number becomes.
func New(tb testing.TB, dir string, seed uint64) *Maker {
	tb.Helper()
	m := &Maker{map[string]string{}, rand.New(rand.NewPCG(seed, 0))}
	for _, kind := range Kinds {
		base := filepath.Join(dir, kind)
		switch m.bases[kind] = base; kind {
		case Study:
			writeStudy(tb, base, m.bases[Local])
		case Imported:
			writeImported(tb, base, "a", "b")
		default:
			writeBundle(tb, base, kind, nil)
		}
	}
	return m
}

// Good returns a good bundle of a kind.
func (m *Maker) Good(kind string) string { return m.bases[kind] }

// Make makes a variant in a directory that does not exist, which should be called bundle.
func (m *Maker) Make(tb testing.TB, v *Variant, dir string, o *Outside) {
	tb.Helper()
	if err := os.CopyFS(dir, os.DirFS(m.bases[v.Kind])); err != nil {
		tb.Fatal(err)
	}
	v.make(tb, dir, o)
}

// Variants returns all variants. It is the same for each call with one seed.
func (m *Maker) Variants(tb testing.TB) (list []Variant) {
	tb.Helper()
	list = append(m.files(tb), m.folders(tb)...)
	list = append(list, strange()...)
	list = append(list, m.streams(tb)...)
	for _, d := range m.documents(tb) {
		list = append(list, m.document(tb, d)...)
	}
	list = append(list, forged()...)
	slices.SortFunc(list, func(a, b Variant) int { return strings.Compare(a.String(), b.String()) })
	return list
}

// Choose returns n of the variants, of each group in turn, by the seed.
func (m *Maker) Choose(list []Variant, n int) (chosen []Variant) {
	groups, order := map[string][]Variant{}, []string{}
	m.rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	for _, v := range list {
		if groups[v.Group] == nil {
			order = append(order, v.Group)
		}
		groups[v.Group] = append(groups[v.Group], v)
	}
	for len(chosen) < min(n, len(list)) {
		for _, g := range order {
			if rest := groups[g]; len(rest) > 0 && len(chosen) < n {
				chosen, groups[g] = append(chosen, rest[0]), rest[1:]
			}
		}
	}
	return chosen
}

// far are times far from those of a run: what a wall clock since 1970 in place of the run's gives, ends of the range,
// and times before and after the run.
var far = []struct {
	name string
	at   op.Time
}{{"wall clock", 1.8e18}, {"greatest", math.MaxInt64}, {"negative", -1.8e18}, {"least", math.MinInt64},
	{"two hours before", -7200e9}, {"a day late", 86400e9}}

// extremes are numbers that no run has.
var extremes = []int64{math.MaxInt64, math.MinInt64, -1, 1 << 40}

// counted says what show counts of a record with one far time, by the method that writes it and the place of the time.
var counted = map[string]string{
	`Series Series\.Points\[\d\]\.At`: "1 points of series", `Sample At`: "1 samples",
	`Machine At`: "1 readings of machines",
	`Query At`:   "1 answers to queries", `Volume At`: "1 readings of volumes",
	`Canary IOs\[0\]\.(Intended|Ended)`: "1 I/Os of the canary",
	`Histogram Histogram\.(From|To)`:    "1 slices of histograms",
}

// streams are bundles with evil texts, far times and extreme numbers in each stream.
func (m *Maker) streams(tb testing.TB) (list []Variant) {
	tb.Helper()
	for _, s := range streams() {
		evil := s.rewrite(func(tb testing.TB, w *bundle.Writer) {
			for i, p := range s.places(tb) {
				if p.kind == text {
					s.write(w, s.with(tb, i, Evil), 100+i)
				}
			}
			s.write(w, s.evil(tb), 99)
		})
		list = append(list, Variant{Name: "texts of " + s.method, Group: "strings", Kind: Local, make: evil})
		for i, p := range s.places(tb) {
			switch p.kind {
			case moment:
				for j, f := range far {
					list = append(list, s.farTime(i, p, f.name, f.at, (i+j)%2 == 1))
				}
			case number:
				x := extremes[m.rng.IntN(len(extremes))]
				list = append(list, Variant{Name: fmt.Sprintf("%d for %s of %s", x, p.path, s.method),
					Group: "numbers", Kind: Local, make: s.rewrite(func(tb testing.TB, w *bundle.Writer) { s.write(w, s.with(tb, i, x), 100) })})
			}
		}
	}
	return list
}

// farTime is a bundle with one record one of whose times is far; its run may have been killed, so that nothing says
// when it ended.
func (s *stream) farTime(i int, p place, name string, t op.Time, killed bool) Variant {
	v := Variant{Name: fmt.Sprintf("%s for %s of %s", name, p.path, s.method), Group: "times", Kind: Local}
	if within := t > 0 && t < 1e14 && killed; !within && t != op.Never {
		for pattern, says := range counted {
			if regexp.MustCompile("^" + pattern + "$").MatchString(s.method + " " + p.path) {
				v.Says = says
			}
		}
	}
	whole := s.rewrite(func(tb testing.TB, w *bundle.Writer) { s.write(w, s.with(tb, i, t), 100) })
	v.make = func(tb testing.TB, dir string, o *Outside) {
		whole(tb, dir, o)
		if killed {
			r := good(Local)
			r.State, r.EndedAt = bundle.Running, op.Never
			writeJSON(tb, filepath.Join(dir, "run.json"), r)
		}
	}
	return v
}

// rewrite writes the bundle anew, with more records.
func (s *stream) rewrite(more func(testing.TB, *bundle.Writer)) func(testing.TB, string, *Outside) {
	return func(tb testing.TB, dir string, _ *Outside) {
		if err := os.RemoveAll(dir); err != nil {
			tb.Fatal(err)
		}
		writeBundle(tb, dir, Local, func(w *bundle.Writer) { more(tb, w) })
	}
}

// document is a file with one value.
type document struct {
	kind, file string
	format
	line bool   // of the ledger
	only string // the prefix of the places to vary, if another document has the others
}

// documents are the files that have one value each.
func (m *Maker) documents(tb testing.TB) []document {
	tb.Helper()
	raw := func(kind, file string) format {
		content, err := os.ReadFile(filepath.Join(m.bases[kind], file))
		if err != nil {
			tb.Fatal(err)
		}
		return formatOf(json.RawMessage(content))
	}
	return []document{
		{kind: Local, file: "run.json", format: formatOf(good(Local))},
		{kind: Cluster, file: "run.json", format: formatOf(good(Cluster))},
		{kind: Object, file: "run.json", format: formatOf(good(Object))},
		{kind: Local, file: "environment.json", format: environment},
		{kind: Local, file: "manifest.json", format: raw(Local, "manifest.json")},
		{kind: Local, file: "plan.json", format: raw(Local, "plan.json")},
		{kind: Cluster, file: "ledger", format: ledger, line: true},
		{kind: Study, file: "study.json", format: design},
		{kind: Study, file: "study.json", format: search, only: "Design.Search."},
		{kind: Study, file: "002/failure.json", format: formatOf(failure{2, "x"})},
		{kind: Imported, file: "imported.json", format: raw(Imported, "imported.json")},
		{kind: Imported, file: "imported.json", format: description},
	}
}

// document returns the variants of one.
func (m *Maker) document(tb testing.TB, d document) (list []Variant) {
	tb.Helper()
	made := func(value func(tb testing.TB) any) func(testing.TB, string, *Outside) {
		return func(tb testing.TB, dir string, _ *Outside) {
			path, v := filepath.Join(dir, filepath.FromSlash(d.file)), value(tb)
			if e, ok := v.(op.LedgerEntry); ok && d.line {
				write(tb, path, string(added(e)))
				return
			}
			writeJSON(tb, path, v)
		}
	}
	add := func(group, what string, value func(tb testing.TB) any) {
		name := fmt.Sprintf("%s of %s (%s%s)", what, d.file, d.typ, d.only)
		list = append(list, Variant{Name: name, Group: group, Kind: d.kind, make: made(value)})
	}
	add("strings", "all texts", d.evil)
	for i, p := range d.places(tb) {
		if !strings.HasPrefix(p.path, d.only) {
			continue
		}
		switch p.kind {
		case text:
			if d.kind == Cluster && d.file == "run.json" && !strings.HasPrefix(p.path, "Identity") {
				continue // as of Local
			}
			add("strings", "text "+p.path, func(tb testing.TB) any { return d.with(tb, i, Evil) })
		case moment:
			for _, f := range far {
				add("times", f.name+" for "+p.path, func(tb testing.TB) any { return d.with(tb, i, f.at) })
			}
		case number:
			x := extremes[m.rng.IntN(len(extremes))]
			add("numbers", fmt.Sprintf("%d for %s", x, p.path), func(tb testing.TB) any { return d.with(tb, i, x) })
		}
	}
	return list
}
