package expr

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// table answers queries from a map; what is not in it has no data.
type table map[string]Value

func (t table) Value(q Query) (Value, error) {
	if v, ok := t[q.String()]; ok {
		return v, nil
	}
	if q.Metric.Action == "broken" {
		return Value{}, errors.New("no such metric in the run")
	}
	return Value{}, fmt.Errorf("%w: no ops of %s", ErrNoData, q.Metric.Action)
}

const ms = 1e6

func TestJudge(t *testing.T) {
	src := table{
		"p99(snapshots.ready)":                              {Number: 412 * ms, N: 18, Warning: "needs n ≥ 299"},
		"p99(fio.read, during(\"snapshots\"))":              {Number: 9 * ms, N: 1000},
		"p99(fio.read, outside(\"snapshots\"))":             {Number: 5 * ms, N: 9000},
		"count(snapshots)":                                  {Number: 18, N: 18},
		"errors(snapshots)":                                 {Number: 0, N: 18},
		"rate(snapshots)":                                   {Number: 0.2, N: 18},
		"throughput(fio.read)":                              {Number: 3 << 20, N: 7},
		`interference(fio.read, during("snapshots"))`:       {Number: 1.5, N: 900},
		`interference(fio.read, 0.99, during("snapshots"))`: {Number: 1.8, N: 900},
		"p99(slow)":                 {Number: 2000 * ms, N: 3, AtLeast: true, High: math.Inf(1)},
		"p99(between)":              {Number: 100 * ms, N: 3, AtLeast: true, High: 120 * ms},
		"p99(lost)":                 {Number: math.Inf(1), N: 3},
		"quantile(snapshots, 0.75)": {Number: 300 * ms, N: 18},
		`p50(span(snapshots, "a.start", "a.end"))`: {Number: 100 * ms, N: 18},
		`max(action("my-action").ready.service)`:   {Number: 1500 * ms, N: 2},
		`p50(snapshots["a/b"])`:                    {Number: 1500 * ms, N: 2},
		`violations(gold)`:                         {Number: 4500 * ms, N: 40},
		`violations("gold-1")`:                     {Number: 0, N: 40},
		`compliance(gold)`:                         {Number: 0.8875, N: 40},
	}
	tests := []struct {
		name, expr string
		want       Status
	}{
		{"below", `p99(snapshots.ready) < duration("10s")`, Pass},
		{"above", `p99(snapshots.ready) < duration("400ms")`, Fail},
		{"bound on the left", `duration("10s") > p99(snapshots.ready)`, Pass},
		{"number times duration", `p99(fio.read, during("snapshots")) < 2.0 * p99(fio.read, outside("snapshots"))`,
			Pass},
		{"duration times integer", `p99(fio.read, during("snapshots")) >= p99(fio.read, outside("snapshots")) * 2`,
			Fail},
		{"ratio", `p99(fio.read, during("snapshots")) / p99(fio.read, outside("snapshots")) == 1.8`, Pass},
		{"duration over number", `p99(snapshots.ready) / 2 < duration("207ms")`, Pass},
		{"sum", `p99(snapshots.ready) + duration("88ms") == duration("500ms")`, Pass},
		{"minus", `-duration("1s") < duration("0s")`, Failed}, // asks nothing: see TestCompileErrors
		{"negative", `p99(snapshots.ready) > -duration("1s")`, Pass},
		{"integers", `count(snapshots) >= 10`, Pass},
		{"integer on the left", `0 == errors(snapshots)`, Pass},
		{"not equal", `count(snapshots) != 18`, Fail},
		{"and", `count(snapshots) >= 10 && errors(snapshots) == 0`, Pass},
		{"share", `errors(snapshots) / count(snapshots) < 0.01`, Pass},
		{"rate", `rate(snapshots) > 0.1`, Pass},
		{"throughput", `throughput(fio.read) >= 3145728.0`, Pass},
		{"interference", `interference(fio.read, during("snapshots")) < 1.6`, Pass},
		{"interference, its own quantile", `interference(fio.read, 0.9, during("snapshots")) == 1.5`, Pass},
		{"interference, another quantile", `interference(fio.read, 0.99, during("snapshots")) < 1.6`, Fail},
		{"quantile", `quantile(snapshots, 0.75) <= duration("300ms")`, Pass},
		{"span", `p50(span(snapshots, "a.start", "a.end")) <= duration("100ms")`, Pass},
		{"odd name and view", `max(action("my-action").ready.service) < duration("2s")`, Pass},
		{"odd milestone", `p50(snapshots["a/b"]) < duration("2s")`, Pass},
		{"conditional", `count(snapshots) > 5 ? p99(snapshots.ready) < duration("1s") : errors(snapshots) == 1`, Pass},
		{"no data", `p99(nothing) < duration("10s")`, NoData},
		{"no data behind or", `count(snapshots) >= 10 || p99(nothing) < duration("10s")`, NoData},
		{"no data before or", `p99(nothing) < duration("10s") || count(snapshots) >= 10`, NoData},
		{"no data negated", `!(p99(nothing) < duration("10s"))`, NoData},
		{"no data behind a conditional",
			`count(snapshots) > 5 ? errors(snapshots) == 0 : p99(nothing) < duration("1s")`, NoData},
		{"false whatever is missing", `count(snapshots) < 10 && p99(nothing) < duration("10s")`, Fail},
		{"dropped", `p99(lost) < duration("1000h")`, Fail},
		{"dropped, negated", `!(p99(lost) >= duration("1s"))`, Fail},
		{"infinite over infinite", `p99(lost) / p99(lost) < 2.0`, NoData},
		{"lower bound decides against", `p99(slow) < duration("1s")`, Fail},
		{"lower bound decides for", `p99(slow) > duration("1s")`, Pass},
		{"lower bound does not decide", `p99(slow) < duration("10s")`, NoData},
		{"lower bound, negated", `!(p99(slow) >= duration("10s"))`, NoData},
		{"two bounds decide for", `p99(between) < duration("1s")`, Pass},
		{"two bounds decide against", `p99(between) < duration("100ms")`, Fail},
		{"two bounds do not decide", `p99(between) < duration("110ms")`, NoData},
		{"lower bound scaled", `2 * p99(slow) < duration("4s")`, Fail},
		{"lower bound in a divisor", `p99(snapshots.ready) / p99(slow) < 0.3`, Pass},
		{"division by zero", `count(snapshots) / errors(snapshots) < 5`, NoData},
		{"violations", `violations(gold) < duration("5s") && violations("gold-1") == duration("0s")`, Pass},
		{"compliance", `compliance(gold) > 0.9`, Fail},
		{"no such tenant in the run", `compliance(silver) > 0.9`, NoData},
		{"source fails", `p99(broken) < duration("1s") || count(snapshots) >= 10`, Failed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Compile(tt.expr, Env{})
			if err != nil {
				if tt.want != Failed {
					t.Fatal(err)
				}
				return
			}
			if got := p.Judge(src, false); got.Status != tt.want {
				t.Errorf("%s: got %s (%s), want %s", tt.expr, got.Status, got.Message, tt.want)
			} else if got.Status != Pass && got.Status != Fail && got.Message == "" {
				t.Errorf("%s: %s without a reason", tt.expr, got.Status)
			}
		})
	}
}

func TestObserved(t *testing.T) {
	p, err := Compile(`count(a) > 0 || p99(a.ready) < duration("1s") || p50(gone) < duration("1s") || max(late) > duration("1s") || max(lost) > duration("1s")`, Env{})
	if err != nil {
		t.Fatal(err)
	}
	v := p.Judge(table{
		"count(a)": {Number: 18, N: 18}, "p99(a.ready)": {Number: 412e6, N: 18, Warning: "needs n ≥ 299"},
		"max(late)": {Number: 3.21e9, N: 1, AtLeast: true, High: math.Inf(1)}, "max(lost)": {Number: math.Inf(1), N: 1},
	}, false)
	got := map[string]string{}
	for _, o := range v.Observed {
		got[o.Expr] = fmt.Sprintf("%v %s", o, o.Warning)
	}
	want := map[string]string{
		"count(a)":     "count(a) = 18 (n=18) ",
		"p99(a.ready)": "p99(a.ready) = 412 ms (n=18) needs n ≥ 299",
		"p50(gone)":    "p50(gone) = no data ",
		"max(late)":    "max(late) ≥ 3.21 s (n=1) ",
		"max(lost)":    "max(lost) = ∞ (n=1) ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if v.Status != NoData {
		t.Errorf("got %s, want %s", v.Status, NoData)
	}
}

func TestCompileErrors(t *testing.T) {
	env := Env{Actions: map[string][]string{
		"snapshots": {"ready", "taken", "CreateSnapshot.start", "CreateSnapshot.end"},
		"fio":       {"read", "write"},
		"any":       nil,
		"mk-ext4":   {"ready"},
		"a-b-c":     nil,
		"many":      strings.Fields("m00 m01 m02 m03 m04 m05 m06 m07 m08 m09 m10 m11 m12 m13 m14"),
	}, Tenants: []string{"gold", "gold-1"}}
	tests := []struct {
		name, expr string
		column     int
		want       string
	}{
		{"misspelt action", `p99(snapshot.ready) < duration("1s")`, 13,
			`action "snapshot" not found; did you mean "snapshots"`},
		{"unknown action", `p99(zzzzzzzzz) < duration("1s")`, 5, `there are a-b-c, any, fio`},
		{"misspelt metric", `p99(snapshots.redy) < duration("1s")`, 14, `no metric "redy"; did you mean "ready"`},
		{"value of whole ops", `value(snapshots) > 1`, 7, `value applies to a metric of a workload's tool, such as snapshots.tps`},
		{"value with a view", `value(fio.read.service) > 1`, 15, `value applies to a metric`},
		{"value for duration", `value(fio.read) < duration("1s")`, 17, `"<" does not go with number and duration`},
		{"misspelt function", `p98(snapshots) < duration("1s")`, 4, `no function "p98"; did you mean`},
		{"misspelt window", `p99(fio.read, durin("snapshots")) < duration("1s")`, 20, `windows`},
		{"window of unknown action", `p99(fio.read, during("snapshot")) < duration("1s")`, 21,
			`did you mean "snapshots"`},
		{"number for duration", `p99(snapshots) < 10`, 16, `a duration is written`},
		{"duration for number", `count(snapshots) < duration("1s")`, 18, `"<" does not go with number and duration`},
		{"bad duration", `p99(snapshots) < duration("10")`, 27, `invalid duration "10"`},
		{"no comparison", `p99(snapshots)`, 1, `not a boolean`},
		{"no query", `1 < 2`, 1, `names no action`},
		{"syntax", `p99(snapshots <`, 16, ``},
		{"empty", ``, 1, ``},
		{"action bare", `snapshots < 3`, 1, `snapshots is an action`},
		{"part of ops", `errors(snapshots.ready) == 0`, 17, `whole ops: write errors(snapshots)`},
		{"iops of ops", `iops(snapshots) > 1`, 6, `workload's metric`},
		{"quantile out of range", `quantile(fio.read, 99) < duration("1s")`, 20, `(0, 1)`},
		{"nested", `p99(max(snapshots)) < duration("1s")`, 8, `a metric is wanted`},
		{"span unknown", `p99(span(snapshots, "taken", "reddy")) < duration("1s")`, 30, `did you mean "ready"`},
		{"action without name", `p99(action()) < duration("1s")`, 11, `action takes a name`},
		{"unit bare", `p99(snapshots.ready) < 5s`, 25,
			`syntax error at column 25: a duration is written duration("5s")`},
		{"unit apart", `p99(snapshots.ready) < 1.5 ms`, 28, `duration("1.5ms")`},
		{"=>", `count(snapshots) => 5`, 18, `syntax error at column 18: unexpected `},
		{"and", `count(fio) > 1 and count(fio) < 5`, 16, `unexpected "and"`},
		{"half a text", `p99(snapshots) < duration("5s`, 27, `unterminated string`},
		{"strange", `count(fio) $ 5`, 12, `unexpected character "$"`},
		{"ends early", `count(fio) <`, 13, `unexpected end: want a value`},
		{"parenthesis", `p99(snapshots < duration("1s")`, 31, `missing )`},
		{"one too many", `count(fio)) < 3`, 11, `unexpected ")"`},
		{"on the second line", "count(fio)\n  =< 3", 3, `syntax error at line 2, column 3: unexpected `},
		{"dashes", `p99(mk-ext4.ready) < duration("1s")`, 7, `action("mk-ext4").ready`},
		{"more dashes", `count(a-b-c) > 3`, 10, `action("a-b-c")`},
		{"many names", `p99(many.q) < duration("1s")`, 9, `m11 and 3 more`},
		{"too long", strings.Repeat(" ", 5000), 4097, `at most`},
		{"too deep", strings.Repeat("(", 500) + "1" + strings.Repeat(")", 500), 0, ``},
		{"misspelt tenant", `violations(glod) < duration("5s")`, 12, `tenant "glod" not found; did you mean "gold"`},
		{"action for tenant", `compliance(fio) > 0.5`, 12, `tenant "fio" not found`},
		{"part of a tenant", `violations(gold.write) < duration("5s")`, 16, `takes the name of one tenant`},
		{"window of a tenant", `compliance(gold, during("fio")) > 0.5`, 12, `takes the name of one tenant`},
		{"violations without a unit", `violations(gold) < 5`, 18, `a duration is written`},
		{"CEL's macros are off", `[1].all(x, x < count(fio))`, 0, ``},
		{"slots cannot be named", `count(fio) > @slot0`, 0, ``},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Compile(tt.expr, env)
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("Compile(%s) = %v, want *Error", tt.expr, err)
			}
			if !strings.Contains(e.Message, tt.want) || tt.column != 0 && e.Column != tt.column {
				t.Errorf("Compile(%s)\n got %v\nwant column %d: …%s…", tt.expr, e, tt.column, tt.want)
			}
		})
	}
}

func TestCompileKnown(t *testing.T) {
	env := Env{Actions: map[string][]string{"snapshots": {"ready", "taken", "CreateSnapshot.start",
		"CreateSnapshot.end"}, "any": nil, "import": nil}}
	for _, src := range []string{
		`p99(snapshots.CreateSnapshot.end) < duration("1s")`,
		`p99(span(snapshots, "CreateSnapshot.start/data", "CreateSnapshot.end/data")) < duration("1s")`,
		`p99(span(snapshots, "intended", "ended")) < duration("1s")`,
		`p99(any.thing.at.all.service) < duration("1s")`,
		`p99(action("import")) < duration("1s")`,
		`p99(snapshots.response) < duration("1s")`,
		`value(any.tps, during("snapshots"), phase(1)) > 0.5 * value(any["a b"])`,
	} {
		if _, err := Compile(src, env); err != nil {
			t.Errorf("Compile(%s): %v", src, err)
		}
	}
}

// FuzzCompile: nothing panics, a query compiles again to itself, and an
// expression without data never passes.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{
		`p99(snapshots.ready) < duration("10s")`,
		`p99(fio.read, during("snapshots")) < 2.0 * p99(fio.read, outside("a", "b"))`,
		`!(count(a) >= 10 && errors(a) == 0) || dropped(a) != 1u ? true : false`,
		`quantile(action("x-y")["p/q"].service, 0.5) / 3 - duration("1s") > -max(a)`,
		`p50(span(a, "b", "c")) == mean(a.b.c.response)`,
		`recovery(a.tps, after("x"), 0.5) < duration("9s") && recovery(a.tps, after("x")) > outage(a.tps, after("x"))`,
		"p99(a)\n<\nduration(\"1h\")", `p99(@`, `1 ? 2 : 3`, `a.b(c)`, `{"a": p99(a)}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		p, err := Compile(src, Env{})
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Column < 1 || e.Message == "" {
				t.Errorf("Compile(%q): %v", src, err)
			}
			return
		}
		if v := p.Judge(table{}, false); v.Status == Pass {
			t.Errorf("%q passed without data", src)
		}
		for _, q := range p.Queries() {
			text := q.String() + " == " + q.String()
			again, err := Compile(text, Env{})
			if err != nil {
				t.Fatalf("Compile(%q), from %q: %v", text, src, err)
			}
			if diff := cmp.Diff(q, again.Queries()[0]); diff != "" {
				t.Errorf("%q: %s", src, diff)
			}
		}
	})
}

// TestAfter: recovery and outage take a rate and the ops that it is after.
func TestAfter(t *testing.T) {
	p, err := CompileShort(`recovery(pg.tps, after("kill")) < 20s && recovery(pg.tps, 0.5, after("kill")) < 9s &&
		outage(pg.tps, after("kill")) < 5s`, Env{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, q := range p.Queries() {
		got = append(got, q.String())
	}
	want := []string{`recovery(pg.tps, after("kill"))`, `recovery(pg.tps, 0.5, after("kill"))`, `outage(pg.tps, after("kill"))`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	known := Env{Actions: map[string][]string{"pg": {"tps"}, "kill": nil}}
	for text, message := range map[string]string{
		`recovery(pg, after("kill")) < 5s`:              `recovery takes a rate of a workload's tool and the ops`,
		`recovery(pg.tps) < 5s`:                         `recovery takes the ops that it is after: recovery(pg.tps, after("kill"))`,
		`recovery(pg.tps, during("kill")) < 5s`:         `recovery takes a metric and the ops, such as recovery(pg.tps, after("kill"))`,
		`recovery(pg.tps, after("kil")) < 5s`:           `action "kil" not found; did you mean "kill"?`,
		`recovery(pg.tps, after("kill"), 1.5) < 5s`:     `the share of the level is a number in (0, 1]`,
		`outage(pg.tps, after("kill"), 0.5) < 5s`:       `outage takes a metric and the ops`,
		`outage(pg.tps, after("kill", "b")) < 5s`:       `after takes the name of an action`,
		`outage(pg.tps, after("kill")) < 5`:             `"<" does not go with duration and number`,
		`recovery(pg.tps.service, after("kill")) < 5s`:  `recovery takes a rate of a workload's tool and the ops`,
		`recovery(pg.tps, after("a"), after("b")) < 5s`: `action "a" not found`,
	} {
		if _, err := CompileShort(text, known); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: %v, want %q", text, err, message)
		}
	}
}

// TestBaseline checks that baseline marks the query in it, and is refused where there is one run only.
func TestBaseline(t *testing.T) {
	p, err := CompileShort("iops(fio.write) >= 0.9 * baseline(iops(fio.write)) && p99(snap) < 5s", Env{Baseline: true})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, q := range p.Queries() {
		got = append(got, q.String())
	}
	want := []string{"iops(fio.write)", "baseline(iops(fio.write))", "p99(snap)"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for text, message := range map[string]string{
		"baseline(3) < 4":                                 "baseline takes one call",
		"baseline(iops(fio.write), 3) < 4":                "baseline takes one call",
		"baseline(baseline(iops(fio.write))) < 4":         "baseline takes one call",
		"baseline(iops(fio.write) + count(a)) < 4":        "baseline takes one call",
		"p99(snap) < 5s && baseline(iops(fio.wrte)) < 5s": `"<" does not go with number and duration`,
	} {
		if _, err := CompileShort(text, Env{Baseline: true}); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: %v, want %q", text, err, message)
		}
	}
	if _, err := Compile("baseline(count(a)) < 4", Env{}); err == nil || !strings.Contains(err.Error(), "--find-max") {
		t.Errorf("an objective with a baseline: %v", err)
	}
}

// TestShortDurations checks that 20ms is a duration outside of quotes, and that places of errors are those of the text.
func TestShortDurations(t *testing.T) {
	env := Env{Actions: map[string][]string{"a-1s": nil, "a": nil}}
	for _, text := range []string{"p99(a) < 1.5s", `p99(action("a-1s")) < 20ms`, `p99(a) < duration("1s")`} {
		if _, err := CompileShort(text, env); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	var where *Error
	if _, err := CompileShort("p99(a) < 20ms && p99(b) < 1s", env); !errors.As(err, &where) || where.Column != 22 {
		t.Errorf("%v, want column 22", err)
	}
}
