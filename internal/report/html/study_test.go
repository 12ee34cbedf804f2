package html

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/sweep"
	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
)

func TestWriteStudy(t *testing.T) {
	states := &sweep.States{At: []op.Time{0, 1e9, 2e9}, Pending: []int{3, 2, 0}, Creating: []int{0, 1, 2},
		Running: []int{0, 0, 1}}
	point := func(label string, level, rate float64) sweep.Point {
		return sweep.Point{Label: label, Level: level, N: 9, Trials: 2, PerMinute: []float64{rate, 1.1 * rate},
			States: states,
			CDF:    []stats.Step{{V: 1e6, P: 0.5}, {V: 4e6, P: 1}}, Sentence: "It <stops> at " + label + "."}
	}
	page := &Study{Name: "a<b", Factors: []string{"class", "parallelism"}, Responses: []string{"p50(x)"},
		Rows: []StudyRow{{Cells: []string{"null", "1", "2", "4 ms"}}},
		Causes: []StudyCauses{{Action: "x", Rows: []CauseRow{{Levels: []string{"null", "1"}, Trials: 2,
			Times: "CSI driver 4 ms (80 %)", StandsOut: "<none> stands out"}}}},
		Sweeps: []sweep.Sweep{
			{Action: "x", Factor: "parallelism", Series: []sweep.Series{{Name: "class=null",
				Points: []sweep.Point{point("1", 1, 60), point("70", 70, 900)}}, {Name: "class=empty"}}},
			{Action: "y", Series: []sweep.Series{{Name: "all", Points: []sweep.Point{{Label: "all", N: 0}}}}},
		}, Boxes: Boxes(boxTable())}
	var out bytes.Buffer
	if err := WriteStudy(&out, page); err != nil {
		t.Fatal(err)
	}
	text, _, scripted := strings.Cut(out.String(), "<script>")
	if !scripted || !strings.HasSuffix(out.String(), "<script>"+script+"</script></body></html>\n") {
		t.Error("the script is not the last element of the page")
	}
	for _, want := range []string{"a&lt;b", "It &lt;stops&gt; at 70.", "70 (n = 9)",
		"70\n<span class=\"needs\">first of 2 trials</span>", "class=null", "creating", "4 ms",
		"CSI driver 4 ms (80 %)", "&lt;none&gt; stands out",
		"<h3>read IOPS (IOPS)</h3>", "fa&lt;st", "3 of 4", `class="outlier"><title>900</title>`, "n 11, median 105, quartiles",
		`135.66 %</td><td class="n">228.45 %`, "Only means are known", "<h3>p50(x)</h3>"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the page", want)
		}
	}
	if strings.Contains(text, "NaN") {
		t.Error("there is a NaN in the page")
	}
	figures := 0
	for rest := text; ; figures++ {
		i := strings.Index(rest, "<svg ")
		if i < 0 {
			break
		}
		end := strings.Index(rest[i:], "</svg>") + len("</svg>")
		d := xml.NewDecoder(strings.NewReader(rest[i : i+end]))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("a figure is not well-formed: %v", err)
			}
		}
		rest = rest[i+end:]
	}
	if figures < 5 {
		t.Errorf("%d figures", figures)
	}
}

// boxTable has a level with an outlier, one with few values of which one is missing, and a metric of which only a mean
// is known.
func boxTable() *observation.Table {
	b := observation.NewBuilder([]string{"class"}, "", "")
	m := observation.Metric{Name: "read IOPS", Unit: "IOPS"}
	for _, v := range []float64{100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 900} {
		b.Add(observation.Row{Levels: []string{"slow"}, Metric: m, Value: v})
	}
	for i := range 4 {
		b.Add(observation.Row{Levels: []string{"fa<st"}, Metric: m, Value: float64(i), State: observation.State(3 * (i / 3))})
	}
	b.Add(observation.Row{Levels: []string{"slow"}, Metric: observation.Metric{Name: "p50(x)", Unit: "ns"}, Value: 5e6})
	b.AddAggregate([]string{"slow"}, observation.Metric{Name: "mean only", Unit: "MB/s"},
		observation.Aggregate{Mean: 5, SD: math.NaN()})
	return b.Table()
}

// TestEmptyFigures: the table of box plots has no column that is empty in all rows, and all others.
func TestEmptyFigures(t *testing.T) {
	t.Parallel()
	for i, want := range []string{
		"n, mean, sd, CV (of mean), CV (of median), whisker, Q1, median, Q3, whisker, outliers",
		"n, mean, whisker, Q1, median, Q3, whisker, outliers", // one trial
		"n, mean", // only a mean
	} {
		f := Boxes(boxTable())[i].Figures()
		if got := strings.Join(f.Names, ", "); got != want {
			t.Errorf("%d: %s, want %s", i, got, want)
		}
		for _, r := range f.Rows {
			if len(r.Cells) != len(f.Names) || len(r.Levels) != 1 {
				t.Errorf("%d: %+v", i, r)
			}
		}
	}
}
