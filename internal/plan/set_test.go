package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const small = `apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: small}
spec:
  actions:
    - name: fio
      createObjSpec: {workload: fio, vars: {storageClass: hostdir}}
    - name: v
      rateName: r
      createObjSpec: {volume: {storageClass: hostdir}}
  rates:
    - {name: r, limit: 3, constantRateSpec: {interval: 1s}}
`

func load(t testing.TB, in Input) (*Plan, []Problem) {
	t.Helper()
	if in.Files == nil {
		in.Files = []File{{Name: "small.yaml", Data: []byte(small)}}
	}
	if in.Capabilities.Engine == "" {
		in.Capabilities = local()
	}
	return Load(t.Context(), in)
}

// TestSet checks that --set changes fields, variables and metadata.
func TestSet(t *testing.T) {
	p, problems := load(t, Input{Set: []string{"spec.runtime=10s", "spec.actions.v.createObjSpec.count=5",
		"spec.rates[0].limit=7",
		"fio.iodepth=4", "vars.bs=8k", "vars.storageClass=null", "spec.gracePeriod=1s", "metadata.name=other"}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if p.Name != "other" {
		t.Errorf("name %q", p.Name)
	}
	if p.Runtime != 10*time.Second || p.Grace != time.Second || p.Actions[1].Count != 5 || p.Rates[0].Limit != 7 {
		t.Errorf("runtime %v, grace %v, count %d, limit %d", p.Runtime, p.Grace, p.Actions[1].Count, p.Rates[0].Limit)
	}
	vars := p.Actions[0].Workload.Vars
	if vars["iodepth"] != "4" || vars["bs"] != "8k" || vars["storageClass"] != "null" {
		t.Errorf("vars %v", vars)
	}
}

// TestSetLeavesOut checks that a list element without a value is left out, and that problems of those after it keep
// their place.
func TestSetLeavesOut(t *testing.T) {
	const text = head + `spec:
  actions:
    - {name: a, createObjSpec: {volume: {storageClass: "null"}}}
    - {name: b, createObjSpec: {volume: {storageClass: "null"}}}
    - {name: c, createObjSpec: {volume: {storageClass: "null"}, cuont: 2}}
`
	files := []File{{Name: "f.yaml", Data: []byte(text)}}
	_, before := Load(t.Context(), Input{Files: files, Capabilities: local()})
	_, after := Load(t.Context(), Input{Files: files, Capabilities: local(), Set: []string{"spec.actions.a=null",
		"spec.actions.b.createObjSpec.count=2"}})
	if len(before) != 1 || len(after) != 1 || before[0].Line == 0 || after[0].Line != before[0].Line ||
		after[0].Path != "spec.actions[1].createObjSpec.cuont" {
		t.Errorf("before %v, after %v", before, after)
	}
	files[0].Data = []byte(strings.Replace(text, ", cuont: 2", "", 1))
	p, problems := Load(t.Context(), Input{Files: files, Capabilities: local(), Set: []string{"spec.actions.b=null"}})
	if len(problems) > 0 || len(p.Actions) != 2 || p.Actions[1].Name != "c" {
		t.Errorf("%v %v", p, problems)
	}
}

// TestSetProblems checks the problems for invalid --set flags.
func TestSetProblems(t *testing.T) {
	tests := []struct{ set, want string }{
		{"runtime", `--set runtime: not of the form KEY=VALUE (such as spec.runtime=10s or vars.storageClass=btrfs)`},
		{"runtime=10s", `--set runtime=10s: unknown key "runtime" (a key begins with spec., metadata., vars. or the name of an action)`},
		{"spec.runtime=soon",
			`--set spec.runtime=soon: spec.runtime: "soon" is not a length of time (such as 500ms, 30s, 5m or 1h30m)`},
		{"spec.runtime=", `--set spec.runtime=: the value is missing (such as spec.runtime=10s; an empty text is written KEY='""')`},
		{"metadata.name=Foo", `--set metadata.name=Foo: metadata.name: "Foo" cannot be a name (small letters, digits, dashes and dots, a letter or digit first and last)`},
		{"metadata.nam=foo", `--set metadata.nam=foo: metadata.nam: unknown field "nam"`},
		{"spec.runtme=10s", `--set spec.runtme=10s: spec.runtme: unknown field "runtme" (did you mean "runtime"?)`},
		{"spec.actions.foi.timeout=10s",
			`--set spec.actions.foi.timeout=10s: there is no "foi" in spec.actions (did you mean "fio"?)`},
		{"foi.bs=8k", `--set foi.bs=8k: no action "foi" creates a workload (did you mean "fio"?)`},
		{"fio.bss=8k", `--set fio.bss=8k: spec.actions[0].createObjSpec.vars.bss: workload "fio" has no variable "bss" (did you mean "bs"?)`},
		{"vars.blocksiz=8k", `--set vars.blocksiz=8k: no workload of this file has a variable "blocksiz" (there are: accessMode, bs, countSyncs, direct, extra, fillPercent, fsync, histogramMsec, image, iodepth, ioengine, nonRoot, numjobs, rampTime, rateIops, readPercent, runtime, rw, seed, storageClass, user, volumeSize)`},
		{"spec.runtime.x=1", `--set spec.runtime.x=1: small.yaml`},
		{"spec.runtime={a: [",
			`--set spec.runtime={a: [: yaml: line 1: did not find expected node content (the value is YAML)`},
	}
	for _, tt := range tests {
		t.Run(tt.set, func(t *testing.T) {
			_, problems := load(t, Input{Set: []string{tt.set}})
			if tt.set == "spec.runtime.x=1" {
				if len(problems) != 1 || problems[0].Path != "spec.runtime" {
					t.Errorf("got %v", problems)
				}
				return
			}
			if len(problems) != 1 || problems[0].String() != tt.want {
				t.Errorf("got  %v\nwant %s", problems, tt.want)
			}
		})
	}
}

// TestSetOfUnknownWorkload checks that a misspelt workload is the only problem: the variable may be one of it.
func TestSetOfUnknownWorkload(t *testing.T) {
	text := head + "spec: {actions: [{name: fio, createObjSpec: {workload: foi}}]}\n"
	_, problems := Load(t.Context(), Input{Files: []File{{Name: "f.yaml", Data: []byte(text)}}, Capabilities: local(),
		Set: []string{"vars.storageClass=hostdir", "fio.bs=8k"}})
	if len(problems) != 1 || !strings.Contains(problems[0].Message, `workload "foi" not found`) {
		t.Errorf("%v", problems)
	}
}

// TestBudgetOfFastRates checks that a budget writes numbers in full.
func TestBudgetOfFastRates(t *testing.T) {
	p := good(t, Input{}, `spec:
  actions:
    - {name: v, createObjSpec: {count: 2000, workload: write-once, vars: {storageClass: hostdir}}}
    - {name: s, rateName: r, snapshotSpec: {actionName: v}}
  rates: [{name: r, constantRateSpec: {interval: 1s}}]
`)
	if diff := cmp.Diff([]string{"r: 2000 snapshots per second until the workloads end"}, p.Budget.Open); diff != "" {
		t.Error(diff)
	}
}
