package study

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
)

const loops = `apiVersion: cnsbench.dev/v1alpha1
kind: Study
metadata: {name: x}
spec:
  seed: 7
  blocks: 1
  factors:
    spec.rates.loop.concurrencySpec.parallelism: [1, 8]
  metrics: [{response: rate(create)}, {response: p99(create)}, {response: p50(create)}, {response: max(create)}]
  benchmark:
    actions: [{name: create, rateName: loop, createObjSpec: {volume: {size: 64Mi, storageClass: fast}}}]
    rates: [{name: loop, concurrencySpec: {parallelism: 1}}]
`

// loopTrial leaves the bundle of closed loops whose operations take about 300 ms.
func loopTrial(t *testing.T, dir string, parallelism, waves int) {
	t.Helper()
	w, err := bundle.Create(dir, bundle.Run{ID: "r", Name: "x", Engine: "local",
		Spec: []byte(`{"actions":[{"name":"create","rateName":"loop","createObjSpec":{"volume":{}}}],` +
			`"rates":[{"name":"loop","concurrencySpec":{"parallelism":1}}]}`),
		Clock: bundle.ClockInfo{Start: time.Unix(0, 0), Source: "test", Resolution: 1}})
	if err != nil {
		t.Fatal(err)
	}
	const took = op.Time(300e6)
	for i := range op.Time(waves) {
		for j := range op.Time(parallelism) {
			at := i*took + j*1000
			id := int64(i)*int64(parallelism) + int64(j)
			w.Op(op.Op{ID: id, Episode: id, Action: "create", Kind: op.Create, Intended: at, Started: at, Ended: at + took,
				Outcome: op.OK})
		}
	}
	if err := w.Close(func(r *bundle.Run) { r.State, r.EndedAt = bundle.Complete, op.Time(waves)*took+1e9 }); err != nil {
		t.Fatal(err)
	}
}

// TestKnownValues: the throughput of closed loops is found in the table and in the sentences, and a p99 of too few
// operations is no value.
func TestKnownValues(t *testing.T) {
	d, err := New(loaded(t, loops), Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := begin(t, t.TempDir()+"/s", d, Occasion{Begun: time.Unix(0, 0), Zone: "UTC"})
	for _, x := range d.Trials {
		if d.Cells[x.Cell].Levels[0].Value == "1" {
			loopTrial(t, dir.Of(x), 1, 4)
		} else {
			loopTrial(t, dir.Of(x), 8, 38) // 304 operations
		}
	}
	table, err := dir.Table()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{1 / 0.3, 8 / 0.3} {
		if got := *table.Rows[i].Values[0].Median; math.Abs(got/want-1) > 1e-4 {
			t.Errorf("row %d: rate %g, want %g", i, got, want)
		}
	}
	few, enough := table.Rows[0].Values[1], table.Rows[1].Values[1]
	if few.N != 0 || few.Few != 1 || few.String() != "n<299" || few.Trials[0].Missing != "tooFew" ||
		few.Trials[0].Operations != 4 || few.Trials[0].Value != nil {
		t.Errorf("p99 of 4 operations: %+v", few)
	}
	if enough.N != 1 || enough.Few != 0 || math.Abs(*enough.Median/300e6-1) > 0.01 {
		t.Errorf("p99 of 304 operations: %+v", enough)
	}
	for i := 2; i < 4; i++ {
		if v := table.Rows[0].Values[i]; v.N != 1 || v.Few != 0 {
			t.Errorf("%s of 4 operations: %+v", table.Responses[i], v)
		}
	}
	notes := table.Notes()
	if len(notes) != 1 || !strings.Contains(notes[0], "p99(create) needs 299 operations in a trial; 1 of 2 trials have "+
		"fewer (4 to 4)") {
		t.Errorf("notes %q", notes)
	}
	sweeps, err := dir.Sweeps()
	if err != nil {
		t.Fatal(err)
	}
	if text := sweeps[0].Series[0].Points[1].Sentence; !strings.Contains(text, "×8 of that at 1 for ×8 at once") {
		t.Errorf("sentence %q", text)
	}
}

// TestCheckNames: a response must be about an action, a metric, a phase and a tenant that the Benchmark has.
func TestCheckNames(t *testing.T) {
	p := &plan.Plan{Names: expr.Env{Actions: map[string][]string{"volumes": {"ready"}, "fio": {"read"}},
		Tenants: []string{"gold"}}}
	for response, want := range map[string]string{
		"p50(nothere)":       `action "nothere" not found; there are fio, volumes`,
		"rate(volume)":       `column 6: action "volume" not found; did you mean "volumes"?`,
		"iops(fio.raed)":     `fio has no metric "raed"; did you mean "read"?`,
		"p99(volumes.read)":  `volumes has no metric "read"`,
		"violations(silver)": `tenant "silver" not found; there are gold`,
		"interference(fio.read, during(\"snaps\"))": `action "snaps" not found`,
		"p50(volumes.ready)":                        "",
		"iops(fio.read)":                            "",
	} {
		d := &Design{Responses: []string{response}}
		err := d.CheckNames(p, nil)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", response, err, want)
		}
	}
}

// TestCheckNamesWithout: what a cell leaves out is missing in its Benchmark only.
func TestCheckNamesWithout(t *testing.T) {
	p := &plan.Plan{Names: expr.Env{Actions: map[string][]string{"fio": {"read"}}}}
	d := &Design{Responses: []string{"iops(fio.read)", "p50(snapshots.ready)", `p99(fio.read, during("snapshots"))`}}
	if err := d.CheckNames(p, []string{"snapshots"}); err != nil {
		t.Error(err)
	}
	if err := d.CheckNames(p, []string{"others"}); err == nil || !strings.Contains(err.Error(), `"snapshots" not found`) {
		t.Errorf("%v", err)
	}
}

// TestDeclaredRates: a workload whose parser declares rates has them as responses, and the unit and direction of their
// values are those of the metric.
func TestDeclaredRates(t *testing.T) {
	responses := DefaultResponses([]Action{{Name: "pg", Rates: []string{"tps"}}, {Name: "fio", IO: []string{"read"}}})
	if want := []string{"p50(pg)", "value(pg.tps)", "p50(fio)", "iops(fio.read)"}; !slices.Equal(responses, want) {
		t.Errorf("responses %q, want %q", responses, want)
	}
	queries, err := Responses(responses)
	if err != nil {
		t.Fatal(err)
	}
	m := (&Design{}).metric(responses[1], queries[1])
	if m.Unit != "" || m.Direction != "" {
		t.Errorf("before a value is known: %+v", m)
	}
	var s sample
	s.add(Trial{}, expr.Value{Number: 812, Unit: "1/s", Better: metric.Higher})
	if s.unit != "1/s" || s.better != metric.Higher || s.value(queries[1], s.unit).String() != "812/s" {
		t.Errorf("%+v: %s", s, s.value(queries[1], s.unit))
	}
}
