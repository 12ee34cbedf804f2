package imported_test

import (
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/imported"
	"github.com/cnsbench/cnsbench/internal/observation"
)

func tool(t testing.TB, name string) imported.Tool {
	t.Helper()
	i := slices.IndexFunc(imported.Tools(), func(x imported.Tool) bool { return x.Name == name })
	if i < 0 {
		t.Fatalf("no tool %s", name)
	}
	return imported.Tools()[i]
}

func figure(name, unit string, x float64) imported.Figure {
	return imported.Figure{Metric: observation.Metric{Name: name, Unit: unit}, Value: x}
}

// TestTools reads one file of each tool. That of COSBench is from cnsbench object run, those of fio are of fio 3.33;
// that of dbench has the values of the first run in examples/imported/dbench-azure-2023.csv; that of kubestr has its
// layout with other values.
func TestTools(t *testing.T) {
	t.Parallel()
	const fio = "../workload/parser/testdata/fio/"
	for _, tt := range []struct {
		tool, file string
		want       []imported.Figure
	}{
		{"dbench", "testdata/dbench.txt", []imported.Figure{figure("Random read IOPS", "IOPS", 3683),
			figure("Random write IOPS", "IOPS", 924), figure("Random read bandwidth", "MiB/s", 166),
			figure("Random write bandwidth", "MiB/s", 115), figure("Read latency", "us", 1108.19),
			figure("Write latency", "us", 4764.32), figure("Sequential read", "MiB/s", 195),
			figure("Sequential write", "MiB/s", 192), figure("Mixed read IOPS", "IOPS", 1506),
			figure("Mixed write IOPS", "IOPS", 509)}},
		{"kubestr", "testdata/kubestr.txt", []imported.Figure{figure("read_iops read IOPS", "IOPS", 11298.360352),
			figure("read_iops read bandwidth", "KiB/s", 45193), figure("randwrite 128k write IOPS", "IOPS", 391.570007),
			figure("randwrite 128k write bandwidth", "KiB/s", 50630)}},
		{"benchstat", "testdata/bench.txt", []imported.Figure{figure("HundredThousand ns/op", "ns/op", 3010934558),
			figure("HundredThousand ns/op", "ns/op", 3580646416), figure("HundredThousand ns/op", "ns/op", 3347558383)}},
		{"fio", fio + "gtod/fio.json", nil},
		{"fio", fio + "group/fio.json", nil},
		{"cosbench", "testdata/cosbench.csv", nil},
	} {
		text, err := os.ReadFile(tt.file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := tool(t, tt.tool).Parse(string(text))
		if err != nil || len(got) == 0 {
			t.Errorf("%s: %d figures, %v", tt.file, len(got), err)
		}
		if tt.want != nil && !cmp.Equal(got, tt.want) {
			t.Errorf("%s: %s", tt.file, cmp.Diff(tt.want, got))
		}
		for _, f := range got {
			if !(f.Value > 0) || f.Unit == "" {
				t.Errorf("%s: %+v", tt.file, f)
			}
		}
	}
}

// TestFio: a job without clock readings has no latency; one with them has.
func TestFio(t *testing.T) {
	t.Parallel()
	const text = `fio: a warning
{"jobs": [{"jobname": "j", "error": 0,
  "read": {"total_ios": 100, "iops": 50.5, "bw_bytes": 206848, "lat_ns": {"N": 100, "mean": 2500.5},
    "clat_ns": {"N": 100, "mean": 2000, "percentile": {"50.000000": 1900, "99.000000": 4000}}},
  "write": {"total_ios": 10, "iops": 5, "bw_bytes": 20480, "lat_ns": {"N": 0, "mean": 0}, "clat_ns": {"N": 0}},
  "trim": {"total_ios": 0, "iops": 0}}]}`
	got, err := tool(t, "fio").Parse(text)
	want := []imported.Figure{figure("j read IOPS", "IOPS", 50.5), figure("j read bandwidth", "B/s", 206848),
		figure("j read latency", "ns", 2500.5), figure("j read completion latency p50", "ns", 1900),
		figure("j read completion latency p99", "ns", 4000), figure("j write IOPS", "IOPS", 5),
		figure("j write bandwidth", "B/s", 20480)}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v\n%s", err, cmp.Diff(want, got))
	}
}

func TestToolErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ tool, text, says string }{
		{"fio", "no json", "--output-format=json"},
		{"fio", "{", "invalid JSON"},
		{"fio", `{"jobs":[{"jobname":"j","error":28}]}`, "job j failed with error 28"},
		{"fio", `{"jobs":[{"jobname":"j"},{"jobname":"j"}]}`, "two jobs are named j"},
		{"dbench", "Random Read/Write IOPS: x/924. BW: 166MiB/s / 115MiB/s", `line 1: invalid figure "x"`},
		{"dbench", "Sequential Read/Write: 195 / 192MiB/s", `invalid figure "195" of Sequential read`},
		{"kubestr", "IOPS=1 BW(KiB/s)=1", "without a direction"},
		{"cosbench", "a,b\n1,2\n", "no column Stage"},
		{"cosbench", "Stage,Op-Name,Op-Count,Throughput,Bandwidth\nmain,read,5,fast,1\n",
			`line 2: invalid Throughput "fast"`},
		{"benchstat", "BenchmarkX-2 1 fast ns/op", `line 1: invalid value "fast"`},
	} {
		if _, err := tool(t, tt.tool).Parse(tt.text); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: error %v, want %q", tt.tool, err, tt.says)
		}
	}
}

func input(level, occasion, file string) imported.Input {
	return imported.Input{Level: level, Occasion: occasion, Name: file,
		Open: func() (io.ReadCloser, error) { return os.Open(file) }}
}

// again is an input with the figures of a file, of another run.
func again(level, occasion, file string) imported.Input {
	in := input(level, occasion, file)
	in.Open = func() (io.ReadCloser, error) {
		text, err := os.ReadFile(file)
		return io.NopCloser(strings.NewReader(string(text) + "\n")), err
	}
	return in
}

// TestSameOutput: a file that is given twice is no second run.
func TestSameOutput(t *testing.T) {
	t.Parallel()
	_, err := imported.Outputs(filepath.Join(t.TempDir(), "study"), tool(t, "dbench"), "provider", []imported.Input{
		input("a", "", "testdata/dbench.txt"), input("b", "", "testdata/dbench.txt")})
	if err == nil || !strings.Contains(err.Error(), "testdata/dbench.txt have the same content") {
		t.Error(err)
	}
}

// TestOutputs imports files of two levels, of one of them two.
func TestOutputs(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "study")
	inputs := []imported.Input{input("disk", "", "testdata/dbench.txt"),
		input("portworx", "", "testdata/dbench-portworx.txt"), again("disk", "", "testdata/dbench.txt")}
	if _, err := imported.Outputs(dir, tool(t, "dbench"), "provider", inputs); err != nil {
		t.Fatal(err)
	}
	d, table, err := imported.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	disk, portworx := table.Series[observation.Key{}], table.Series[observation.Key{Cell: 1}]
	if len(disk) != 2 || disk[1].Repetition != 2 || len(portworx) != 1 || portworx[0].Value != 26100 {
		t.Errorf("%+v %+v", disk, portworx)
	}
	if d.Importer != "dbench" || len(d.Sources) != 3 || d.Sources[0].SHA256 == d.Sources[1].SHA256 {
		t.Errorf("%+v", d)
	}
}

func TestOutputsOfOccasions(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "study")
	inputs := []imported.Input{input("disk", "monday", "testdata/dbench.txt"),
		again("disk", "friday", "testdata/dbench.txt")}
	if _, err := imported.Outputs(dir, tool(t, "dbench"), "provider", inputs); err != nil {
		t.Fatal(err)
	}
	if _, table, err := imported.Open(dir); err != nil || !slices.Equal(table.Occasions, []string{"monday", "friday"}) {
		t.Errorf("%v, %v", table, err)
	}
	inputs[1].Occasion = ""
	if _, err := imported.Outputs(t.TempDir(), tool(t, "dbench"), "provider", inputs); err == nil ||
		!strings.Contains(err.Error(), "to every file or to none") {
		t.Error(err)
	}
	if _, err := imported.Outputs(t.TempDir(), tool(t, "kubestr"), "provider", inputs[:1]); err == nil ||
		!strings.Contains(err.Error(), "it has no figures: want the text output of kubestr fio") {
		t.Error(err)
	}
}

// FuzzTools: no text makes a parser fail but with an error.
func FuzzTools(f *testing.F) {
	for _, name := range []string{"testdata/dbench.txt", "testdata/kubestr.txt", "testdata/bench.txt",
		"testdata/cosbench.csv", "../workload/parser/testdata/fio/gtod/fio.json"} {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, tool := range imported.Tools() {
			figures, err := tool.Parse(text)
			for _, x := range figures {
				if err == nil && x.Name == "" {
					t.Errorf("%s: a figure without a name", tool.Name)
				}
			}
		}
	})
}

// TestBenchmarkFactors: parts of names are factors, also if some names do not have them.
func TestBenchmarkFactors(t *testing.T) {
	t.Parallel()
	got, err := tool(t, "benchstat").Parse("BenchmarkX/size=4k/deep/unit=s/size=8k/class=gp-3-8 1 5 ns/op\n")
	want := []imported.Figure{figure("X/deep/unit=s/size=8k ns/op", "ns/op", 5)}
	want[0].Levels = []imported.Level{{Factor: "size", Level: "4k"}, {Factor: "class", Level: "gp-3"}}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v\n%s", err, cmp.Diff(want, got))
	}
	text := "BenchmarkX/size=4k 1 5 ns/op\nBenchmarkX/size=8k 1 6 ns/op\nBenchmarkY 1 7 ns/op\nBenchmarkY 1 8 ns/op\n"
	in := imported.Input{Level: "a", Name: "bench.txt",
		Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
	dir := filepath.Join(t.TempDir(), "study")
	d, err := imported.Outputs(dir, tool(t, "benchstat"), "version", []imported.Input{in})
	if err != nil || !maps.Equal(d.Counts.Levels, map[string]int{"version": 1, "size": 3}) || d.Counts.Rows != 4 {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestNotFinite: an output with an infinite figure is refused by the name of its file.
func TestNotFinite(t *testing.T) {
	t.Parallel()
	in := imported.Input{Level: "a", Name: "bench.txt", Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("BenchmarkX 1 +Inf ns/op\n")), nil
	}}
	dir := filepath.Join(t.TempDir(), "study")
	_, err := imported.Outputs(dir, tool(t, "benchstat"), "version", []imported.Input{in})
	if err == nil || !strings.Contains(err.Error(), "bench.txt: X ns/op is +Inf: want a finite number") {
		t.Error(err)
	}
}
