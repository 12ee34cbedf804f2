package parser

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
	i := slices.IndexFunc(Tools(), func(x imported.Tool) bool { return x.Name == name })
	if i < 0 {
		t.Fatalf("no tool %s", name)
	}
	return Tools()[i]
}

func figure(name, unit string, x float64) imported.Figure {
	return imported.Figure{Metric: observation.Metric{Name: name, Unit: unit}, Value: x}
}

// TestTools reads one file of each tool. That of COSBench is from cnsbench object run, those of fio are of fio 3.33;
// that of dbench has the values of the first run in examples/imported/dbench-azure-2023.csv; that of kubestr has its
// layout with other values.
func TestTools(t *testing.T) {
	t.Parallel()
	const fio = "testdata/fio/"
	for _, tt := range []struct {
		tool, file string
		want       []imported.Figure
	}{
		{"dbench", "testdata/corpus/dbench/dbench.txt", []imported.Figure{figure("Random read IOPS", "IOPS", 3683),
			figure("Random write IOPS", "IOPS", 924), figure("Random read bandwidth", "MiB/s", 166),
			figure("Random write bandwidth", "MiB/s", 115), figure("Read latency", "us", 1108.19),
			figure("Write latency", "us", 4764.32), figure("Sequential read", "MiB/s", 195),
			figure("Sequential write", "MiB/s", 192), figure("Mixed read IOPS", "IOPS", 1506),
			figure("Mixed write IOPS", "IOPS", 509)}},
		{"kubestr", "testdata/corpus/kubestr/kubestr.txt", []imported.Figure{figure("read_iops read IOPS", "IOPS",
			11298.360352),
			figure("read_iops read bandwidth", "KiB/s", 45193), figure("randwrite 128k write IOPS", "IOPS", 391.570007),
			figure("randwrite 128k write bandwidth", "KiB/s", 50630)}},
		{"benchstat", "testdata/corpus/benchstat/bench.txt", []imported.Figure{figure("HundredThousand ns/op", "ns/op",
			3010934558),
			figure("HundredThousand ns/op", "ns/op", 3580646416), figure("HundredThousand ns/op", "ns/op", 3347558383)}},
		{"fio", fio + "gtod/fio.json", nil},
		{"fio", fio + "group/fio.json", nil},
		{"cosbench", "testdata/corpus/cosbench/cosbench.csv", nil},
	} {
		text, err := os.ReadFile(tt.file)
		if err != nil {
			t.Fatal(err)
		}
		r, err := tool(t, tt.tool).Read(string(text))
		if err != nil || len(r.Figures) == 0 {
			t.Fatalf("%s: %v", tt.file, err)
		}
		got := r.Figures
		for i := range got {
			got[i].Options = nil
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

const cosbenchHead = "Stage,Op-Name,Op-Type,Op-Count,Byte-Count,Avg-ResTime,Avg-ProcTime,60%-ResTime,80%-ResTime," +
	"90%-ResTime,95%-ResTime,99%-ResTime,100%-ResTime,Throughput,Bandwidth,Succ-Ratio,Status,Detailed Status\n"

func TestToolErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ tool, text, says string }{
		{"fio", "no json", "--output-format=json"},
		{"fio", "{", "invalid JSON"},
		{"fio", `{"jobs":[{"jobname":"j","error":28}]}`, "job j failed with error 28"},
		{"fio-text", "3;fio-3.33;job;0;0", "terse output"},
		{"dbench", "Random Read/Write IOPS: x/924. BW: 166MiB/s / 115MiB/s", `line 1: invalid figure "x"`},
		{"dbench", "Sequential Read/Write: 195 / 192MiB/s", `invalid figure "195" of Sequential read`},
		{"kubestr", "IOPS=1 BW(KiB/s)=1", "without a direction"},
		{"cosbench", "a,b\n1,2\n", "no column Stage"},
		{"cosbench", cosbenchHead + "main,read,read,5,1,1,1,1,1,1,1,1,1,fast,1,100%,completed,x\n",
			`line 2: invalid Throughput "fast"`},
		{"benchstat", "BenchmarkX-2 1 fast ns/op", `line 1: invalid value "fast"`},
	} {
		if _, err := tool(t, tt.tool).Read(tt.text); err == nil || !strings.Contains(err.Error(), tt.says) {
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
	_, err := imported.Outputs(filepath.Join(t.TempDir(), "study"), []imported.Tool{tool(t, "dbench")}, "provider",
		[]imported.Input{
			input("a", "", "testdata/corpus/dbench/dbench.txt"), input("b", "", "testdata/corpus/dbench/dbench.txt")})
	if err == nil || !strings.Contains(err.Error(), "testdata/corpus/dbench/dbench.txt have the same content") {
		t.Error(err)
	}
}

// TestOutputs imports files of two levels, of one of them two.
func TestOutputs(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "study")
	inputs := []imported.Input{input("disk", "", "testdata/corpus/dbench/dbench.txt"),
		input("portworx", "", "testdata/corpus/dbench/dbench-portworx.txt"), again("disk", "",
			"testdata/corpus/dbench/dbench.txt")}
	if _, err := imported.Outputs(dir, []imported.Tool{tool(t, "dbench")}, "provider", inputs); err != nil {
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
	inputs := []imported.Input{input("disk", "monday", "testdata/corpus/dbench/dbench.txt"),
		again("disk", "friday", "testdata/corpus/dbench/dbench.txt")}
	if _, err := imported.Outputs(dir, []imported.Tool{tool(t, "dbench")}, "provider", inputs); err != nil {
		t.Fatal(err)
	}
	if _, table, err := imported.Open(dir); err != nil || !slices.Equal(table.Occasions, []string{"monday", "friday"}) {
		t.Errorf("%v, %v", table, err)
	}
	inputs[1].Occasion = ""
	if _, err := imported.Outputs(t.TempDir(), []imported.Tool{tool(t, "dbench")}, "provider", inputs); err == nil ||
		!strings.Contains(err.Error(), "to every file or to none") {
		t.Error(err)
	}
	if _, err := imported.Outputs(t.TempDir(), []imported.Tool{tool(t, "kubestr")}, "provider", inputs[:1]); err == nil ||
		!strings.Contains(err.Error(), "it has no figures: want the text output of kubestr fio") {
		t.Error(err)
	}
}

// FuzzTools: no text makes a parser fail but with an error.
func FuzzTools(f *testing.F) {
	for _, c := range corpora {
		for _, text := range corpus(f, c.files) {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, tool := range Tools() {
			tool.Is(text)
			r, err := tool.Read(text)
			if err != nil {
				continue
			}
			for _, x := range r.Figures {
				if x.Name == "" {
					t.Errorf("%s: a figure without a name", tool.Name)
				}
			}
		}
	})
}

// TestBenchmarkFactors: parts of names are factors, also if some names do not have them.
func TestBenchmarkFactors(t *testing.T) {
	t.Parallel()
	r, err := tool(t, "benchstat").Read("BenchmarkX/size=4k/deep/unit=s/size=8k/class=gp-3-8 1 5 ns/op\n")
	if err != nil {
		t.Fatal(err)
	}
	got := r.Figures
	got[0].Options = nil
	want := []imported.Figure{figure("X/deep/unit=s/size=8k ns/op", "ns/op", 5)}
	want[0].Levels = []imported.Level{{Factor: "size", Level: "4k"}, {Factor: "class", Level: "gp-3"}}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v\n%s", err, cmp.Diff(want, got))
	}
	text := "BenchmarkX/size=4k 1 5 ns/op\nBenchmarkX/size=8k 1 6 ns/op\nBenchmarkY 1 7 ns/op\nBenchmarkY 1 8 ns/op\n"
	in := imported.Input{Level: "a", Name: "bench.txt",
		Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
	dir := filepath.Join(t.TempDir(), "study")
	d, err := imported.Outputs(dir, []imported.Tool{tool(t, "benchstat")}, "version", []imported.Input{in})
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
	_, err := imported.Outputs(dir, []imported.Tool{tool(t, "benchstat")}, "version", []imported.Input{in})
	if err == nil || !strings.Contains(err.Error(), "bench.txt: X ns/op is +Inf: want a finite number") {
		t.Error(err)
	}
}
