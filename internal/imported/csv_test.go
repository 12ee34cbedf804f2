package imported_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/text/encoding/unicode"

	"github.com/cnsbench/cnsbench/internal/imported"
	"github.com/cnsbench/cnsbench/internal/observation"
)

// columns of the tests.
var columns = imported.Columns{Factors: []string{"provider"}, Block: "day", Repetition: "run", Metric: "metric",
	Unit: "unit", Values: imported.Names{"value"}}

const header = "provider,day,run,metric,unit,value\n"

// read imports a text and reads the folder again.
func read(t *testing.T, text string, f imported.Format) (*imported.Description, *observation.Table, error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "study")
	if _, err := imported.CSV(dir, "in.csv", strings.NewReader(text), f); err != nil {
		if _, stat := os.Stat(dir); stat == nil {
			t.Errorf("%s is left after an error", dir)
		}
		return nil, nil, err
	}
	return open(t, dir)
}

func open(t *testing.T, dir string) (*imported.Description, *observation.Table, error) {
	t.Helper()
	return imported.Open(dir)
}

func TestImport(t *testing.T) {
	t.Parallel()
	text := "\xef\xbb\xbf" + header +
		"a,mon,2,latency,ms,2.5\n" +
		"a,mon,1,latency,ms, 1e3 \n" +
		"\"b, c\",tue,1,latency,ms,-0.5\n" +
		"a,mon,1,rate,,4\n"
	d, table, err := read(t, text, imported.Format{Columns: columns})
	if err != nil {
		t.Fatal(err)
	}
	if want := (imported.Counts{Rows: 4, Metrics: 2, Levels: map[string]int{"provider": 2}}); !cmp.Equal(d.Counts, want) {
		t.Error(cmp.Diff(want, d.Counts))
	}
	if d.Sources[0].Name != "in.csv" || d.Sources[0].Bytes != int64(len(text)) {
		t.Errorf("source %+v", d.Sources[0])
	}
	want := &observation.Table{Factors: []string{"provider"}, BlockName: "day", Blocks: []string{"mon", "tue"},
		Metrics: []observation.Metric{{Name: "latency", Unit: "ms"}, {Name: "rate"}},
		Cells:   [][]string{{"a"}, {"b, c"}},
		Series: map[observation.Key][]observation.Value{
			{Metric: 0, Cell: 0}: {{Value: 1000, Occasion: -1, Repetition: 1}, {Value: 2.5, Occasion: -1, Repetition: 2}},
			{Metric: 0, Cell: 1}: {{Value: -0.5, Occasion: -1, Block: 1, Repetition: 1}},
			{Metric: 1, Cell: 0}: {{Value: 4, Occasion: -1, Repetition: 1}},
		}, Aggregates: map[observation.Key]observation.Aggregate{}}
	if diff := cmp.Diff(want, table); diff != "" {
		t.Error(diff)
	}
}

// TestMissing accepts rows without a value only where that is asked for.
func TestMissing(t *testing.T) {
	t.Parallel()
	text := header + "a,mon,1,latency,ms,NaN\na,mon,2,latency,ms,\na,mon,3,latency,ms,7\n"
	d, table, err := read(t, text, imported.Format{Columns: columns, Missing: true})
	if err != nil {
		t.Fatal(err)
	}
	values := table.Series[observation.Key{}]
	if d.Counts.Missing != 2 || len(values) != 3 || values[0].State != observation.Missing ||
		!math.IsNaN(values[0].Value) || values[2].State != observation.Known {
		t.Errorf("%d missing, values %+v", d.Counts.Missing, values)
	}
}

func TestWordsAsRepetitions(t *testing.T) {
	t.Parallel()
	_, table, err := read(t, header+"a,mon,one,latency,ms,1\na,mon,two,latency,ms,2\n", imported.Format{Columns: columns})
	if err != nil {
		t.Fatal(err)
	}
	if v := table.Series[observation.Key{}]; v[0].Repetition != 1 || v[1].Repetition != 2 {
		t.Errorf("%+v", v)
	}
}

func TestSeparator(t *testing.T) {
	t.Parallel()
	for given, separator := range map[string]string{";": ";", "\t": "\t", `\t`: "\t"} {
		text := strings.ReplaceAll(header+"a,mon,1,latency,ms,1\n", ",", separator)
		if _, _, err := read(t, text, imported.Format{Columns: columns, Separator: given}); err != nil {
			t.Errorf("%q: %v", given, err)
		}
	}
}

func TestMeans(t *testing.T) {
	t.Parallel()
	c := imported.Columns{Factors: []string{"p"}, Mean: "m", SD: "s", N: "n"}
	_, table, err := read(t, "p,m,s,n\na,10,1.5,20\nb,30,2,5\n", imported.Format{Columns: c})
	if err != nil {
		t.Fatal(err)
	}
	want := map[observation.Key]observation.Aggregate{{}: {Mean: 10, SD: 1.5, N: 20}, {Cell: 1}: {Mean: 30, SD: 2, N: 5}}
	if !cmp.Equal(table.Aggregates, want) || table.Metrics[0].Name != "m" {
		t.Errorf("%+v", table)
	}
}

// TestWide reads several values of each row, with the units that are in the columns' names.
func TestWide(t *testing.T) {
	t.Parallel()
	text := "provider,run,note,latency (ms),p99 [µs],latency (p99),job(s)\na,1,x,2.5,7,8,1\nb,1,y,3,9,,2\n"
	wide := imported.Columns{Factors: []string{"provider"}, Repetition: "run", Wide: true, Ignore: []string{"note"}}
	named := imported.Columns{Factors: []string{"provider"}, Repetition: "run",
		Values: imported.Names{"latency (ms)", "p99 [µs]", "latency (p99)", "job(s)"}}
	for name, c := range map[string]imported.Columns{"wide": wide, "named": named} {
		d, table, err := read(t, text, imported.Format{Columns: c, Missing: true})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := imported.Counts{Rows: 2, Missing: 1, Metrics: 4, Levels: map[string]int{"provider": 2}}
		if !cmp.Equal(d.Counts, want) || !cmp.Equal(d.Format.Columns, named) {
			t.Errorf("%s: %+v, columns %+v", name, d.Counts, d.Format.Columns)
		}
		metrics := []observation.Metric{{Name: "latency", Unit: "ms"}, {Name: "p99", Unit: "µs"}, {Name: "latency (p99)"},
			{Name: "job(s)"}}
		if diff := cmp.Diff(metrics, table.Metrics); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		for k, x := range map[observation.Key]float64{{}: 2.5, {Cell: 1}: 3, {Metric: 1, Cell: 1}: 9, {Metric: 3}: 1} {
			if v := table.Series[k]; len(v) != 1 || v[0].Value != x {
				t.Errorf("%s: %+v is %+v, want %v", name, k, v, x)
			}
		}
		if v := table.Series[observation.Key{Metric: 2, Cell: 1}]; len(v) != 1 || v[0].State != observation.Missing {
			t.Errorf("%s: %+v, want a missing value", name, v)
		}
	}
}

// TestWideProblems: what cannot be a metric is said with the column's name.
func TestWideProblems(t *testing.T) {
	t.Parallel()
	wide := imported.Columns{Factors: []string{"p"}, Wide: true}
	two := imported.Columns{Factors: []string{"p"}, Values: imported.Names{"a", "b"}}
	with := func(c imported.Columns, change func(*imported.Columns)) imported.Columns {
		change(&c)
		return c
	}
	const text = "p,a,b\nx,1,2\n"
	for _, tt := range []struct {
		name, text, says string
		columns          imported.Columns
	}{
		{"words", "p,a,site\nx,1,north\n", `line 2, column site: invalid number "north": want a decimal number such as ` +
			`1234.5; if the column is no metric, give it as --factor "site", or leave it out by --ignore "site"`, wide},
		{"no name", ",p,a\n0,x,1\n", `line 1: column 1 has no name: name it, or leave it out by --ignore ""`, wide},
		{"same name", "p,a,a\nx,1,2\n", `line 1: two columns have the name "a"`, wide},
		{"no column", "p\nx\n", "no column is left for values; the columns are p", wide},
		{"ignored", text, "--ignore aa: the file has no column of this name; its columns are p, a, b",
			with(wide, func(c *imported.Columns) { c.Ignore = []string{"aa"} })},
		{"ignored of named", text, "--ignore is for --wide",
			with(two, func(c *imported.Columns) { c.Ignore = []string{"a"} })},
		{"unit", text, "--unit is for one column of values", with(two, func(c *imported.Columns) { c.Unit = "u" })},
		{"metric", text, "--metric is for one column of values", with(two, func(c *imported.Columns) { c.Metric = "m" })},
		{"wide and named", text, "--wide and --value exclude each other",
			with(two, func(c *imported.Columns) { c.Wide = true })},
		{"mean", text, "--mean and --value or --wide exclude each other",
			with(wide, func(c *imported.Columns) { c.Mean = "a" })},
		{"twice", text, `column "a" is named twice`,
			with(two, func(c *imported.Columns) { c.Values = imported.Names{"a", "a"} })},
		{"two units", "p,t (ms),t (us)\nx,1,2\n", `columns "t (ms)" and "t (us)" are both of metric t: rename one`, wide},
		{"same trial", "p,n,a,b\nx,1,1,2\nx,1,1,3\n", "lines 2 and 3 are of one trial: they have the same p, n, but another",
			with(two, func(c *imported.Columns) { c.Repetition = "n" })},
	} {
		_, _, err := read(t, tt.text, imported.Format{Columns: tt.columns})
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.says)
		}
	}
}

// TestEncodings: the text of a file is the same in every encoding, and is stored as UTF-8; the source is the file.
func TestEncodings(t *testing.T) {
	t.Parallel()
	text := header + "ä,mon,1,latency,ms,1\n"
	utf16, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	var zipped, zstandard bytes.Buffer
	g := gzip.NewWriter(&zipped)
	z, err := zstd.NewWriter(&zstandard)
	if err != nil {
		t.Fatal(err)
	}
	_, errG := g.Write([]byte(text))
	_, errZ := z.Write([]byte(text))
	if err := errors.Join(errG, errZ, g.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{"plain": text, "mark": "\ufeff" + text, "UTF-16": utf16,
		"gzip": zipped.String(), "zstd": zstandard.String()} {
		dir := filepath.Join(t.TempDir(), "study")
		d, err := imported.CSV(dir, "in.csv", strings.NewReader(file), imported.Format{Columns: columns})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if sum := sha256.Sum256([]byte(file)); d.Sources[0].Bytes != int64(len(file)) ||
			d.Sources[0].SHA256 != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: source %+v", name, d.Sources[0])
		}
		if stored, err := os.ReadFile(filepath.Join(dir, imported.ValuesFile)); err != nil || string(stored) != text {
			t.Errorf("%s: stored %q, %v", name, stored, err)
		}
		if _, table, err := imported.Open(dir); err != nil || table.Cells[0][0] != "ä" {
			t.Errorf("%s: %+v, %v", name, table, err)
		}
	}
}

// TestOldFolder reads a folder of an earlier version: one column of values, and the mark of UTF-8 in the copy.
func TestOldFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	values := "\ufeffp,v\na,1\n"
	sum := sha256.Sum256([]byte(values))
	description := fmt.Sprintf(`{"format": 1, "importer": "csv", "sources": [], "sha256": "%x",
		"csv": {"columns": {"factors": ["p"], "value": "v"}}, "counts": {"rows": 1}}`, sum)
	for name, text := range map[string]string{imported.ValuesFile: values, imported.DescriptionFile: description} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, table, err := imported.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if v := table.Series[observation.Key{}]; table.Metrics[0].Name != "v" || len(v) != 1 || v[0].Value != 1 {
		t.Errorf("%+v", table)
	}
}

// TestBadInput: each problem ends in one message with its line and what to do.
func TestBadInput(t *testing.T) {
	t.Parallel()
	row := func(cells string) string { return header + "a,mon,1,latency,ms,1\n" + cells + "\n" }
	for _, tt := range []struct {
		name, text, says string
		change           func(*imported.Format)
	}{
		{"empty file", "", "the file is empty", nil},
		{"header only", header, "no values", nil},
		{"missing value", row("a,mon,2,latency,ms,"), "line 3, column value: no value (\"\"): want a number; --missing", nil},
		{"NaN", row("a,mon,2,latency,ms,NaN"), "no value (\"NaN\")", nil},
		{"infinite", row("a,mon,2,latency,ms,inf"), "line 3, column value: infinite value", nil},
		{"decimal comma", row(`a,mon,2,latency,ms,"166,5"`), "a decimal point and no other separator, such as 166.5", nil},
		{"thousands", row(`a,mon,2,latency,ms,"1.234,5"`), "such as 1234.5", nil},
		{"English thousands", row(`a,mon,2,latency,ms,"1,234.5"`), "such as 1234.5", nil},
		{"English millions", row(`a,mon,2,latency,ms,"1,234,567"`), "such as 1234567", nil},
		{"either", row(`a,mon,2,latency,ms,"35,745"`), "such as 35.745 or 35745", nil},
		{"with unit", row("a,mon,2,latency,ms,12 ms"), `the unit "ms" belongs in a column of its own`, nil},
		{"no number", row("a,mon,2,latency,ms,fast"), `invalid number "fast"`, nil},
		{"hexadecimal", row("a,mon,2,latency,ms,0x10"), `invalid number "0x10"`, nil},
		{"mixed units", row("a,mon,2,latency,us,1"), `latency has the unit "us", but "ms" in line 2`, nil},
		{"same trial", row("a,mon,1,latency,ms,2"), "lines 2 and 3 are of one trial: they have the same provider, day, " +
			"run, metric, but another value", nil},
		{"same row", row("a,mon,1,latency,ms,1"), "and value: remove one", nil},
		{"empty level", row(",mon,2,latency,ms,1"), "line 3, column provider: the cell is empty", nil},
		{"empty repetition", row("a,mon,,latency,ms,1"), "line 3, column run: the cell is empty", nil},
		{"repetition", row("a,mon,x,latency,ms,1"), `invalid repetition "x": want a whole number`, nil},
		{"short row", row("a,mon,2"), "line 3: it has another number of cells than line 1, which has 6", nil},
		{"unquoted decimal comma", row("a,mon,2,latency,ms,166,5"),
			`which has 6; if "166,5" is one number with a decimal comma, write it with a point`, nil},
		{"binary", "PAR1\x15\x04\t\x00,;", "the file is not text", nil},
		{"cut compressed", "\x1f\x8b\x08\x08abc\t", "gzip: unexpected EOF", nil},
		{"two marks", "\ufeff\ufeff" + header, "the file is not text", nil},
		{"UTF-16", "p\x00,\x00v\x00", "the file is not text: want a CSV file in UTF-8", nil},
		{"tabs", strings.ReplaceAll(header, ",", "\t"), `give --separator "\t"`, nil},
		{"quotes", row(`a,mon,2,latency,ms,"1`), "line 3", nil},
		{"semicolons", strings.ReplaceAll(header, ",", ";"), `give --separator ";"`, nil},
		{"encoding", row("a\xff,mon,2,latency,ms,1"), "line 3, column provider: not UTF-8", nil},
		{"no such column", row(""), "--factor providr: the file has no column of this name (did you mean \"provider\"?)",
			func(f *imported.Format) { f.Columns.Factors = []string{"providr"} }},
		{"twice", row(""), `column "value" is named twice`, func(f *imported.Format) { f.Columns.Unit = "value" }},
		{"no factor", row(""), "no factor", func(f *imported.Format) { f.Columns.Factors = nil }},
		{"no value", row(""), "no column of values", func(f *imported.Format) { f.Columns.Values = nil }},
		{"both", row(""), "exclude each other", func(f *imported.Format) { f.Columns.Mean = "unit" }},
		{"separator", row(""), `invalid separator ";;"`, func(f *imported.Format) { f.Separator = ";;" }},
		{"unnamed column", "site,provider,day,run,metric,unit,value\nx,a,mon,1,l,ms,1\ny,a,mon,1,l,ms,2\n",
			"but another site: name it too (--factor site", nil},
		{"long line", row("a,mon,2,latency,ms," + strings.Repeat("1", 2<<20)), "too large", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := imported.Format{Columns: columns}
			if tt.change != nil {
				tt.change(&f)
			}
			_, _, err := read(t, tt.text, f)
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want one with %q", err, tt.says)
			}
		})
	}
}

func TestManyLevels(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("p,v\n")
	for i := range imported.MaxLevels + 1 {
		b.WriteString(strings.Repeat("x", i+1) + ",1\n")
	}
	_, _, err := read(t, b.String(), imported.Format{Columns: imported.Columns{Factors: []string{"p"},
		Values: imported.Names{"v"}}})
	if err == nil || !strings.Contains(err.Error(), "this column is no factor") {
		t.Error(err)
	}
}

// TestFolder: a folder is not overwritten, and values that were changed later are not used.
func TestFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := imported.Format{Columns: columns}
	text := header + "a,mon,1,latency,ms,1\n"
	if _, err := imported.CSV(dir, "in.csv", strings.NewReader(text), f); err != nil {
		t.Fatal(err) // an empty folder is fine
	}
	if _, err := imported.CSV(dir, "in.csv", strings.NewReader(text), f); err == nil ||
		!strings.Contains(err.Error(), "not empty") {
		t.Error(err)
	}
	path := filepath.Join(dir, imported.ValuesFile)
	if stored, err := os.ReadFile(path); err != nil || string(stored) != text {
		t.Errorf("%q, %v", stored, err)
	}
	if err := os.WriteFile(path, []byte(header+"a,mon,1,latency,ms,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := imported.Open(dir); err == nil || !strings.Contains(err.Error(), "has changed since it was imported") {
		t.Error(err)
	}
	name := filepath.Join(dir, imported.DescriptionFile)
	old, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, bytes.Replace(old, []byte(`"format": 1`), []byte(`"format": 9`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := imported.Open(dir); err == nil || !strings.Contains(err.Error(), "has format 9") {
		t.Error(err)
	}
}

// FuzzCSV: what is imported can be opened, and nothing else is left behind.
func FuzzCSV(f *testing.F) {
	f.Add(header + "a,mon,1,latency,ms,1\n")
	f.Add("\xef\xbb\xbf" + header + "\"a,\n\",mon,1,l,,1e-5\n")
	f.Add(header + "a,mon,x,latency,ms,1\na,mon,y,latency,ms,1\n")
	f.Fuzz(func(t *testing.T, text string) {
		dir := filepath.Join(t.TempDir(), "study")
		if _, err := imported.CSV(dir, "in", strings.NewReader(text), imported.Format{Columns: columns}); err != nil {
			if _, stat := os.Stat(dir); stat == nil {
				t.Fatalf("%v left %s", err, dir)
			}
			return
		}
		if _, _, err := imported.Open(dir); err != nil {
			t.Fatal(err)
		}
	})
}
