package plan

import (
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/schedule"
)

// traced is a Benchmark whose rate replays a trace.
const traced = `
spec:
  actions:
    - {name: slow, rateName: t, createObjSpec: {volume: {storageClass: loopfile}}}
    - {name: fast, rateName: t, createObjSpec: {volume: {storageClass: "null"}}}
    - {name: snap, rateName: t, snapshotSpec: {actionName: fast}}
    - {name: restore, rateName: t, restoreSpec: {actionName: snap}}
    - {name: unslow, rateName: t, deleteSpec: {actionName: slow}}
    - {name: unfast, rateName: t, deleteSpec: {actionName: fast}}
    - {name: unsnap, rateName: t, deleteSpec: {actionName: snap}}
  rates:
    - {name: t, traceRateSpec: {source: a.csv, timeScale: 0.5}}
`

func opener(text string) func(string) (io.ReadCloser, error) {
	return func(name string) (io.ReadCloser, error) {
		if name != "a.csv" {
			return nil, fmt.Errorf("open %s: no such file", name)
		}
		return io.NopCloser(strings.NewReader(text)), nil
	}
}

// TestTraceIsResolved checks the steps, the schedule, the budget and the warnings of a
// replayed trace.
func TestTraceIsResolved(t *testing.T) {
	p := good(t, Input{Open: opener(`# cnsbench trace 1
time,op,kind,object,source,class
-5000000000,create,volume,old,,null
-4000000000,snapshot,snapshot,olds,old,
-3000000000,create,volume,unused,,null
0,exists,volume,older,,other
1000000000,create,volume,a,,null
1000000000,create,volume,b,,loopfile
2000000000,snapshot,snapshot,s,a,
3000000000,restore,volume,r,olds,
4000000000,resize,volume,a,,
5000000000,delete,volume,b,,
5000000000,delete,volume,b,,
6000000000,delete,volume,a,,
7000000000,delete,volume,older,,
8000000000,delete,snapshot,s,,
9000000000,snapshot,snapshot,s2,unheard,
9000000000,end,,,,
`)}, traced)
	type named struct{ Action, Makes, On string }
	names := func(steps []Step) (list []named) {
		for _, s := range steps {
			list = append(list, named{p.Actions[s.Action].Name, s.Makes, s.On})
		}
		return list
	}
	r := p.Rates[0]
	want := []named{
		{"fast", "volume/a", ""}, {"slow", "volume/b", ""}, {"snap", "snapshot/s", "volume/a"}, {"restore", "volume/r",
			"snapshot/olds"},
		{"unslow", "", "volume/b"}, {"unfast", "", "volume/a"}, {"unslow", "", "volume/older"}, {"unsnap", "",
			"snapshot/s"},
		{"snap", "snapshot/s2", "volume/unheard"},
	}
	if diff := cmp.Diff(want, names(r.Steps)); diff != "" {
		t.Error(diff)
	}
	// Objects without later operations are not created. If no action has the class of a
	// record, the first action creates the object.
	want = []named{{"fast", "volume/old", ""}, {"snap", "snapshot/olds", "volume/old"}, {"slow", "volume/older", ""},
		{"slow", "volume/unheard", ""}}
	if diff := cmp.Diff(want, names(r.Before)); diff != "" {
		t.Error(diff)
	}
	const half = 500 * time.Millisecond
	if diff := cmp.Diff(schedule.Trace{half * 1, half, 2 * half, 3 * half, 5 * half, 6 * half, 7 * half, 8 * half,
		9 * half}, r.Schedule); diff != "" {
		t.Error(diff)
	}
	if b := p.Budget; b.Volumes != 6 || b.Snapshots != 3 || len(b.Open) > 0 {
		t.Errorf("budget %+v, want 6 volumes and 3 snapshots", b)
	}
	var warnings []string
	for _, w := range p.Warnings {
		warnings = append(warnings, w.Message)
	}
	if got := strings.Join(warnings, "\n"); !strings.Contains(got,
		"1 of 16 records are not replayed: no action of the rate does resize of a volume") ||
		!strings.Contains(got, "1 of 16 records are not replayed: they act on what was deleted before") {
		t.Errorf("warnings:\n%s", got)
	}
}

// TestTraceIsIdentified checks that a plan has the hash of the trace file, over all its
// bytes and without decompression.
func TestTraceIsIdentified(t *testing.T) {
	const text = "# cnsbench trace 1\ntime,op,kind,object\n0,exists,volume,a\n1,delete,volume,a\n9,end,,\n"
	var packed strings.Builder
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte(text)); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{"plain": text, "a remark at the end": text + "# the end",
		"compressed": packed.String()} {
		p := good(t, Input{Open: opener(file)}, traced)
		want := &TraceFile{Name: "a.csv", SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(file))), Records: 3}
		if diff := cmp.Diff(want, p.Rates[0].Trace); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestTooLate checks the warnings about operations of a trace and about an action that
// are due after the end of the run.
func TestTooLate(t *testing.T) {
	p := good(t, Input{Open: opener(`# cnsbench trace 1
time,op,kind,object
1000000000,create,volume,a
2000000000,create,volume,b
3000000000,delete,volume,a
`)}, `
spec:
  runtime: 2s
  actions:
    - {name: v, rateName: t, createObjSpec: {volume: {storageClass: "null"}}}
    - {name: d, rateName: t, deleteSpec: {actionName: v}}
    - {name: s, startAfter: 2s, snapshotSpec: {actionName: v}}
  rates:
    - {name: t, startAfter: 500ms, traceRateSpec: {source: a.csv}}
`)
	var got []string
	for _, w := range p.Warnings {
		got = append(got, w.Path+": "+w.Message)
	}
	want := []string{
		"spec.actions[2].startAfter: the first trigger is due after 2s, but the run ends after 2s",
		"spec.rates[0].traceRateSpec.source: 2 of the trace's 3 operations are due after the run's end, 2s after the barrier",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestRateProblems checks the problems for invalid rates.
func TestRateProblems(t *testing.T) {
	const volume = `{name: v, rateName: r, createObjSpec: {volume: {storageClass: "null"}}}`
	const removal = `{name: d, rateName: r, deleteSpec: {actionName: v}}`
	tests := []struct{ name, actions, rate, want string }{
		{"no file", volume, `traceRateSpec: {source: b.csv}`, "traceRateSpec.source: open b.csv: no such file"},
		{"no trace", volume, `traceRateSpec: {source: a.csv}`, "a.csv: trace: line 1"},
		{"one way only", volume, `constantIncreaseDecreaseRateSpec: {incInterval: 1s, decInterval: 1s, min: 1, max: 3}`,
			"only go one way"},
		{"too fast", volume + ", " + removal, `constantIncreaseDecreaseRateSpec: {incInterval: 1ns, decInterval: 1s, min: 1, max: 3}`, "incInterval: no more than a million"},
		{"ramp to nothing", volume, `rampRateSpec: {stages: [{duration: 1s, perSecond: 0}, {duration: 3s, perSecond: 0.5}]}`, "rampRateSpec.stages: all of them together make 0.75 triggers"},
		{"ramp below nothing", volume, `rampRateSpec: {stages: [{duration: 1s, perSecond: -1}]}`,
			"rampRateSpec.stages[0].perSecond: "},
		{"ramp without length", volume, `rampRateSpec: {stages: [{duration: 0s, perSecond: 3}]}`,
			"rampRateSpec.stages[0].duration: must be more than 0"},
		{"life of what is made", volume, `lifetimeRateSpec: {mean: 1m}`, "for actions that are done to single objects"},
		{"quantiles fall", removal, `lifetimeRateSpec: {quantiles: [2s, 1s]}`,
			"quantiles[1]: 1s is less than the one before"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := fmt.Sprintf("spec: {runtime: 1m, actions: [%s], rates: [{name: r, %s}]}", tt.actions, tt.rate)
			_, problems := Load(t.Context(), Input{Files: []File{{Name: "b.yaml", Data: []byte(head + text)}},
				Capabilities: local(), Open: opener("nonsense\n")})
			var all []string
			for _, p := range problems {
				all = append(all, p.String())
			}
			if got := strings.Join(all, "\n"); !strings.Contains(got, tt.want) {
				t.Errorf("problems:\n%s\nwant %q", got, tt.want)
			}
		})
	}
}
