package parser

import (
	gocmp "cmp"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

const second = op.Time(time.Second)

// printedAt is the input of a container that began 10 s into a run whose clock
// began at 1760000000 s.
func printedAt() Input {
	return Input{Started: 10 * second,
		AtWall: func(unix int64) op.Time { return op.Time(unix - 1760000000*int64(time.Second)) }}
}

func TestPrinted(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       Result
		warns      []string
		err        error
	}{
		{name: "lines of JSON", text: `{"metric": "throughput", "value": 512.5, "unit": "1/s"}
{"metric": "errors", "value": 0}
`, want: Result{Scalars: []metric.Scalar{{Metric: "errors"}, {Metric: "throughput", Unit: "1/s", Value: 512.5}}}},
		{name: "a list", text: `[{"metric":"a","value":1},{"metric":"b","value":2}]`,
			want: Result{Scalars: []metric.Scalar{{Metric: "a", Value: 1}, {Metric: "b", Value: 2}}}},
		{name: "series", text: `{"metric":"x","value":2,"unit":"B","time":1760000000.5,"step":0.5}
{"metric":"x","value":1,"unit":"B","time":1760000000,"step":0.5}
{"metric":"y","value":3,"elapsed":1.5}`,
			want: Result{Series: []metric.Series{
				{Metric: "x", Unit: "B", Step: int64(second) / 2,
					Points: []metric.Point{{At: 0, Value: 1}, {At: second / 2, Value: 2}}},
				{Metric: "y", Points: []metric.Point{{At: 11*second + second/2, Value: 3}}},
			}}},
		{name: "a table", text: "name,value,unit\n# of the last minute\nops, 12 , 1/s\n\nratio,0.5\n",
			want: Result{Scalars: []metric.Scalar{{Metric: "ops", Unit: "1/s", Value: 12},
				{Metric: "ratio", Value: 0.5}}}},
		{name: "a document, as the prototype's parsers print", text: `{
    "Keys": "16 bytes each",
    "Entries": "1000",
    "perf context": {"user_key_comparison_count": "12", "ratio": 0.25},
    "read": [[1, 2.5], [2, 3.5]],
    "done": true
}`, want: Result{Scalars: []metric.Scalar{{Metric: "Entries", Value: 1000}, {Metric: "perf context.ratio", Value: 0.25},
			{Metric: "perf context.user_key_comparison_count", Value: 12}}},
			warns: []string{"printed lists, which are not metrics: read"}},
		{name: "beside the point", text: "warming up\nops,1\nops,2\nnan,NaN\n,3\n",
			want:  Result{Scalars: []metric.Scalar{{Metric: "ops", Value: 2}}},
			warns: []string{`3 invalid metrics, first "warming up"`, "repeatedly, of which the last is kept: ops"}},
		{name: "half a line", text: `{"metric":"a","value":1}` + "\n" + `{"metric":"b","va`,
			want: Result{Scalars: []metric.Scalar{{Metric: "a", Value: 1}}}, warns: []string{"at byte 2"}},
		{name: "no value, two times, no clock", text: `{"metric":"a"}` +
			`{"metric":"a","value":1,"time":1,"elapsed":1}{"metric":"a","value":1,"time":1e300}` +
			`{"metric":"a","value":"1"}{"metric":"a","value":1,"elapsed":1,"step":-1}`,
			warns: []string{"printed 5 invalid metrics"}, err: ErrNoMetric},
		{name: "traits", text: `{"metric":"tps","value":1,"unit":"1/s","kind":"level","better":"lower"}
{"metric":"wait","value":2,"unit":"ns","better":"lower"}{"metric":"x","value":1,"kind":"histogram"}`,
			want: Result{Scalars: []metric.Scalar{
				{Metric: "tps", Unit: "1/s", Traits: metric.Traits{Kind: metric.Level, Better: metric.Lower}, Value: 1},
				{Metric: "wait", Unit: "ns", Traits: metric.Traits{Kind: metric.Level, Better: metric.Lower}, Value: 2}}},
			warns: []string{"printed 1 invalid metrics"}},
		{name: "nothing", text: " \n", err: ErrNoMetric},
		{name: "text", text: "no such file", warns: []string{`"no such file"`}, err: ErrNoMetric},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Printed(printedAt(), []byte(tt.text))
			if !errors.Is(err, tt.err) {
				t.Errorf("error %v, want %v", err, tt.err)
			}
			for i := range tt.want.Scalars {
				s := &tt.want.Scalars[i]
				s.Kind = gocmp.Or(s.Kind, metric.KindOf(s.Unit))
			}
			for i := range tt.want.Series {
				s := &tt.want.Series[i]
				s.Kind = gocmp.Or(s.Kind, metric.KindOf(s.Unit))
			}
			warnings := got.Warnings
			got.Warnings = nil
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if len(warnings) != len(tt.warns) {
				t.Fatalf("warnings %+v, want %d", warnings, len(tt.warns))
			}
			for i, w := range warnings {
				if w.Code != "outputUnread" || !strings.Contains(w.Message, tt.warns[i]) {
					t.Errorf("warning %+v, want %q", w, tt.warns[i])
				}
			}
		})
	}
}

// Without a start or a clock a point cannot be placed, and is not guessed.
func TestPrintedWithoutClock(t *testing.T) {
	for _, text := range []string{`{"metric":"a","value":1,"time":5}`, `{"metric":"a","value":1,"elapsed":5}`} {
		if r, err := Printed(Input{Started: op.Never}, []byte(text)); !errors.Is(err, ErrNoMetric) ||
			len(r.Warnings) != 1 {
			t.Errorf("%s: %+v, %v", text, r, err)
		}
	}
}

// TestPrintedWarnings checks the warnings that a script prints, which are bounded, beside its metrics.
func TestPrintedWarnings(t *testing.T) {
	got, err := Printed(printedAt(), []byte(`{"metric":"a","value":1}`+
		`{"warning":"no\nend"}{"warning":"x","of":"a document"}`+
		`{"warning":1}`+strings.Repeat(`{"warning":"`+strings.Repeat("ü", 1000)+`"}`, 50)))
	if err != nil || len(got.Scalars) != 2 || len(got.Warnings) != maxSaid {
		t.Fatalf("%d figures, %d warnings, %v", len(got.Scalars), len(got.Warnings), err)
	}
	if w := got.Warnings[0]; w != (Warning{Code: "parserWarning", Message: "no end"}) {
		t.Errorf("warning %+v", w)
	}
	if w := got.Warnings[1].Message; len(w) > maxWarning+len("…") || !utf8.ValidString(w) {
		t.Errorf("a warning of %d bytes: %q", len(w), w)
	}
	if _, err := Printed(printedAt(), []byte(`{"warning":"empty"}`)); !errors.Is(err, ErrNoMetric) {
		t.Errorf("error %v", err)
	}
}

func FuzzPrinted(f *testing.F) {
	for _, seed := range []string{`{"metric":"a","value":1,"time":1.5,"step":1}`, "name,value,unit\na,1,B\n",
		`{"a":{"b":"1"},"c":[1]}`, `[{"metric":"a","value":1e400}]`, `[[]]`, "a,Inf", "{"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := Printed(printedAt(), text)
		if (len(r.Scalars)+len(r.Series) == 0) != (err != nil) {
			t.Errorf("%d scalars, %d series, %v", len(r.Scalars), len(r.Series), err)
		}
		for _, s := range r.Scalars {
			if s.Metric == "" || math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
				t.Errorf("%+v", s)
			}
		}
		for _, s := range r.Series {
			for i, p := range s.Points {
				if i > 0 && p.At < s.Points[i-1].At || math.IsNaN(p.Value) {
					t.Errorf("%+v", s)
				}
			}
		}
	})
}
