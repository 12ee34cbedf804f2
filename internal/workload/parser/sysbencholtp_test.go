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

// The samples were written by sysbench 1.0.20 of Debian 12 with MariaDB 10.11.
var oltpSamples = []string{"closed", "rate", "overload", "p99", "conflicts"}

const oltpData = "testdata/sysbench-oltp"

func oltpText(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(oltpData, name, "output", "sysbench.txt"))
	must(t, err)
	return string(text)
}

func oltpInput(name string) Input {
	return Input{
		Files:  os.DirFS(filepath.Join(oltpData, name)),
		AtWall: func(unix int64) op.Time { return op.Time(unix - 1795646900e9) },
	}
}

// scalars are the figures of a result by name.
func scalars(r Result) map[string]float64 {
	all := map[string]float64{}
	for _, s := range r.Scalars {
		all[s.Metric] = s.Value
	}
	return all
}

// TestSysbenchOLTP prints the figures as sysbench does, and looks for them in its report.
func TestSysbenchOLTP(t *testing.T) {
	for _, tt := range []struct{ name, basis, percentile string }{
		{"closed", "service", "95"}, {"rate", "response", "95"}, {"overload", "response", "95"},
		{"p99", "service", "99"}, {"conflicts", "service", "95"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := SysbenchOLTP(oltpInput(tt.name))
			must(t, err)
			want := map[bool][]string{true: {"sysbenchQueued"}}[tt.name == "overload"]
			if d := cmp.Diff(want, codes(r)); d != "" {
				t.Errorf("warnings (-want +got):\n%s%v", d, r.Warnings)
			}
			sane(t, r)
			got := scalars(r)
			text := spaces.ReplaceAllString(oltpText(t, tt.name), " ")
			for _, line := range []string{
				fmt.Sprintf("transactions: %.0f (%.2f per sec.)\n", got["transaction.ok"], got["tps"]),
				fmt.Sprintf("queries: %.0f (%.2f per sec.)\n", got["queries"], got["qps"]),
				fmt.Sprintf("read: %.0f\n write: %.0f\n other: %.0f\n", got["queries.read"], got["queries.write"],
					got["queries.other"]),
				fmt.Sprintf("ignored errors: %.0f (%.2f per sec.)\n reconnects: %.0f (", got["errors"], got["errors.rate"],
					got["reconnects"]),
				fmt.Sprintf("min: %.2f\n avg: %.2f\n max: %.2f\n %sth percentile: %.2f\n", got["latency.min"]/1e6,
					got["latency.average"]/1e6, got["latency.max"]/1e6, tt.percentile, got["latency.p"+tt.percentile]/1e6),
			} {
				if !strings.Contains(text, line) {
					t.Errorf("not printed: %q", line)
				}
			}
			h := r.Totals[0]
			if h.Metric != "transaction" || h.Basis != tt.basis || h.Hist.N() != int64(got["transaction.ok"]) {
				t.Errorf("%d latencies of basis %s: %s", h.Hist.N(), h.Basis, h.Metric)
			}
			percent, err := strconv.ParseFloat(tt.percentile, 64)
			must(t, err)
			p, _ := h.Hist.Quantile(percent / 100)
			if printed := got["latency.p"+tt.percentile]; float64(p) < printed-6e3 || float64(p) > printed*1.01+6e3 {
				t.Errorf("P%s is %d ns, printed are %.0f ns", tt.percentile, p, printed)
			}
		})
	}
}

// TestSysbenchOLTPSeries compares the points with the intermediate reports.
func TestSysbenchOLTPSeries(t *testing.T) {
	for _, tt := range []struct {
		name, percentile string
		points           int
	}{{"closed", "95", 5}, {"overload", "95", 3}, {"p99", "99", 2}, {"conflicts", "95", 3}, {"serverkilled", "95", 1}} {
		r, err := SysbenchOLTP(oltpInput(tt.name))
		must(t, err)
		at := map[string][]float64{}
		for _, s := range r.Series {
			for i, p := range s.Points {
				if p.At != r.Series[0].Points[0].At+op.Time(i)*1e9 {
					t.Errorf("%s: point %d of %s is at %d", tt.name, i, s.Metric, p.At)
				}
				at[s.Metric] = append(at[s.Metric], p.Value)
			}
		}
		if len(at["tps"]) != tt.points {
			t.Errorf("%s: %d points, want %d", tt.name, len(at["tps"]), tt.points)
		}
		text := regexp.MustCompile(`\(r/w/o: \S+\) `).ReplaceAllString(oltpText(t, tt.name), "")
		for i := range at["tps"] {
			line := fmt.Sprintf("[ %ds ] thds: ", i+1)
			rest := fmt.Sprintf(" tps: %4.2f qps: %4.2f lat (ms,%s%%): %4.2f err/s: %4.2f reconn/s: 0.00\n", at["tps"][i],
				at["qps"][i], tt.percentile, at["latency.p"+tt.percentile][i]/1e6, at["errors.rate"][i])
			if !strings.Contains(text, line) || !strings.Contains(text, rest) {
				t.Errorf("%s: not printed: %q", tt.name, line+rest)
			}
		}
		if want := []float64{1479, 1853, 1541}; tt.name == "overload" && cmp.Diff(want, at["queue"]) != "" {
			t.Errorf("queue %v, want %v", at["queue"], want)
		}
	}
}

// TestSysbenchOLTPBroken: output of a sysbench that failed or was ended, and what is none of its output.
func TestSysbenchOLTPBroken(t *testing.T) {
	for _, tt := range []brokenSysbench{
		{"killed", "killed", nil, []string{"sysbenchTruncated"}, "before its report"},
		{"the server was killed", "serverkilled", nil, []string{"sysbenchTruncated"}, "error 2013 (Lost connection"},
		{"no table", "notable", nil, []string{"sysbenchTruncated"}, "mysql_stmt_prepare() failed"},
		{"half a report", "closed", func(s string) string { return s[:strings.Index(s, "ignored errors")] },
			[]string{"sysbenchTruncated"}, "before"},
		{"half a line", "closed", func(s string) string { return s[:strings.Index(s, "13345.56")] },
			[]string{"sysbenchTruncated"}, "before"},
		{"other counts", "closed", func(s string) string {
			return strings.Replace(s, "number of events:              4880", "number of events:              4881", 1)
		}, []string{"latencyDoubtful"}, "the histogram has 4880 events, the report 4881"},
		{"noise", "closed", func(s string) string {
			return "\x00\xff\n[ 1e9s ] thds\n[ 9s ] queue length: 7, concurrency: 1\n" + s
		}, []string{"outputUnread"}, ""},
		{"report of fileio", "closed", func(string) string { return sysbenchText(t, "closed") },
			[]string{"figuresMissing", "outputUnread"}, ""},
		{"empty", "closed", func(string) string { return "" }, []string{"sysbenchTruncated"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.test(t, SysbenchOLTP, oltpInput(tt.sample), oltpText(t, tt.sample)) })

	}
	if _, err := SysbenchOLTP(Input{Files: fstest.MapFS{}}); err == nil {
		t.Error("no error without output")
	}
}

// FuzzSysbenchOLTP: no output breaks the parser, and no figure is negative or not finite.
func FuzzSysbenchOLTP(f *testing.F) {
	for _, name := range append(oltpSamples, "killed", "serverkilled") {
		f.Add(oltpText(f, name), "1795646900.5")
	}
	f.Fuzz(func(t *testing.T, text, start string) { fuzzSysbench(t, SysbenchOLTP, oltpInput(""), text, start) })
}
