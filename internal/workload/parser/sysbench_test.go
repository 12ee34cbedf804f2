package parser

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/op"
)

// The samples were written by sysbench 1.0.20 of Debian 12.
var sysbenchSamples = []string{"closed", "rate", "overload", "read"}

func sysbenchSample(name string) Input {
	return Input{
		Files:  os.DirFS(filepath.Join("testdata", "sysbench", name)),
		AtWall: func(unix int64) op.Time { return op.Time(unix - 1795635000e9) },
	}
}

func sysbenchText(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "sysbench", name, "output", "sysbench.txt"))
	must(t, err)
	return string(text)
}

var spaces = regexp.MustCompile(` +`)

// TestSysbench prints the figures as sysbench does, and looks for them in its report.
func TestSysbench(t *testing.T) {
	for _, tt := range []struct {
		name, basis string
		points      int
	}{{"closed", "service", 2}, {"rate", "response", 2}, {"overload", "response", 2}, {"read", "service", 0}} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := Sysbench(sysbenchSample(tt.name))
			must(t, err)
			if len(r.Warnings) > 0 {
				t.Error(r.Warnings)
			}
			text := spaces.ReplaceAllString(sysbenchText(t, tt.name), " ")
			got := map[string]float64{}
			for _, s := range r.Scalars {
				got[s.Metric] = s.Value
			}
			for _, line := range []string{
				fmt.Sprintf("reads/s: %.2f\n", got["read.iops"]),
				fmt.Sprintf("writes/s: %.2f\n", got["write.iops"]),
				fmt.Sprintf("fsyncs/s: %.2f\n", got["sync.iops"]),
				fmt.Sprintf("read, MiB/s: %.2f\n", got["read.bandwidth"]/(1<<20)),
				fmt.Sprintf("written, MiB/s: %.2f\n", got["write.bandwidth"]/(1<<20)),
				fmt.Sprintf("total number of events: %.0f\n", got["events"]),
				fmt.Sprintf("min: %.2f\n", got["latency.min"]/1e6),
				fmt.Sprintf("avg: %.2f\n", got["latency.average"]/1e6),
				fmt.Sprintf("max: %.2f\n", got["latency.max"]/1e6),
			} {
				if !strings.Contains(text, line) {
					t.Errorf("not printed: %q", line)
				}
			}
			h := r.Totals[0]
			if h.Basis != tt.basis || h.Hist.N() != int64(got["events"]) {
				t.Errorf("%d latencies of basis %s", h.Hist.N(), h.Basis)
			}
			if line := fmt.Sprintf("sum: %.2f\n", float64(h.Hist.Sum())/1e6); !strings.Contains(text, line) {
				t.Errorf("not printed: %q", line)
			}
			m := regexp.MustCompile(`(\d+)th percentile:\s+([\d.]+)`).FindStringSubmatch(text)
			percent, _ := strconv.ParseFloat(m[1], 64)
			want, _ := strconv.ParseFloat(m[2], 64)
			if p, _ := h.Hist.Quantile(percent / 100); float64(p)/1e6 < want-0.006 || float64(p)/1e6 > want*1.01+0.006 {
				t.Errorf("P%v is %d ns, printed are %v ms", percent, p, want)
			}
			for _, s := range r.Series {
				if len(s.Points) != tt.points {
					t.Errorf("%s has %d points", s.Metric, len(s.Points))
				}
			}
		})
	}
}

// TestSysbenchSeries compares the points with the intermediate reports.
func TestSysbenchSeries(t *testing.T) {
	r, err := Sysbench(sysbenchSample("closed"))
	must(t, err)
	at := map[string][]float64{}
	for _, s := range r.Series {
		for _, p := range s.Points {
			at[s.Metric] = append(at[s.Metric], p.Value)
		}
	}
	for i := range at["read.bandwidth"] {
		line := fmt.Sprintf("[ %ds ] reads: %4.2f MiB/s writes: %4.2f MiB/s fsyncs: %4.2f/s latency (ms,95%%): %4.3f\n", i+1,
			at["read.bandwidth"][i]/(1<<20), at["write.bandwidth"][i]/(1<<20), at["sync.iops"][i], at["latency.p95"][i]/1e6)
		if !strings.Contains(sysbenchText(t, "closed"), line) {
			t.Errorf("not printed: %q", line)
		}
	}
}

// TestSysbenchBroken: output of a sysbench that failed or was ended, and what is none of its output.
func TestSysbenchBroken(t *testing.T) {
	for _, tt := range []brokenSysbench{
		{"killed", "killed", nil, []string{"sysbenchTruncated"}, "before its report"},
		{"no files", "nofiles", nil, []string{"sysbenchTruncated"}, "Cannot open file 'test_file.0'"},
		{"queue is full", "queue", nil, []string{"sysbenchTruncated"}, "The event queue is full"},
		{"half a histogram", "closed", func(s string) string { return s[:strings.Index(s, "0.100 |")] },
			[]string{"sysbenchTruncated"}, "before"},
		{"a bucket is missing", "closed", func(s string) string {
			i := strings.Index(s, "       0.100 |")
			return s[:i] + s[i+strings.Index(s[i:], "\n")+1:]
		}, []string{"latencyDoubtful"}, "the histogram has"},
		{"another percentile", "closed", func(s string) string {
			return regexp.MustCompile(`(95th percentile: +)`).ReplaceAllString(s, "${1}9")
		}, []string{"latencyDoubtful"}, "is printed as"},
		{"an error", "closed", func(s string) string { return s + "FATAL: something\n" }, []string{"sysbenchError"},
			"something"},
		{"noise", "closed", func(s string) string { return "\x00\xff\n[ 1e9s ] reads\n" + s },
			[]string{"outputUnread"}, ""},
		{"empty", "closed", func(string) string { return "" }, []string{"sysbenchTruncated"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.test(t, Sysbench, sysbenchSample(tt.sample), sysbenchText(t, tt.sample)) })
	}
	if _, err := Sysbench(Input{Files: fstest.MapFS{}}); err == nil {
		t.Error("no error without output")
	}
}

// brokenSysbench is a recorded output, changed by edit if that is not nil, and what its parser warns of.
type brokenSysbench struct {
	name, sample string
	edit         func(string) string
	warnings     []string
	message      string
}

func (b *brokenSysbench) test(t *testing.T, parse Func, in Input, text string) {
	t.Helper()
	if b.edit != nil {
		text = b.edit(text)
	}
	in.Files = fstest.MapFS{"output/sysbench.txt": {Data: []byte(text)}}
	r, err := parse(in)
	must(t, err)
	if d := cmp.Diff(b.warnings, codes(r)); d != "" || !strings.Contains(fmt.Sprint(r.Warnings), b.message) {
		t.Errorf("warnings (-want +got):\n%s%v", d, r.Warnings)
	}
	sane(t, r)
}

func fuzzSysbench(t *testing.T, parse Func, in Input, text, start string) {
	t.Helper()
	in.Files = fstest.MapFS{"output/a.txt": {Data: []byte(text)}, "output/a.start": {Data: []byte(start)}}
	if r, err := parse(in); err == nil {
		sane(t, r)
	}
}

// FuzzSysbench: no output breaks the parser, and no figure is negative or not finite.
func FuzzSysbench(f *testing.F) {
	for _, name := range append(sysbenchSamples, "killed", "queue") {
		f.Add(sysbenchText(f, name), "1795635600.5")
	}
	f.Fuzz(func(t *testing.T, text, start string) { fuzzSysbench(t, Sysbench, sysbenchSample(""), text, start) })
}
