package plan

import (
	"fmt"
	"strings"
	"testing"
)

// TestMaxOutput checks the resolution of spec.maxOutput and its problems.
func TestMaxOutput(t *testing.T) {
	for _, tt := range []struct {
		name, spec string
		set        []string
		want       MaxOutput
		problem    string
	}{
		{"default", "", nil, MaxOutput{256 << 20, 1 << 30}, ""},
		{"one given", "maxOutput: {perRun: 512Mi}", nil, MaxOutput{256 << 20, 512 << 20}, ""},
		{"both given", "maxOutput: {perInstance: 1Mi, perRun: 2Mi}", nil, MaxOutput{1 << 20, 2 << 20}, ""},
		{"set", "", []string{"spec.maxOutput.perInstance=1Gi"}, MaxOutput{1 << 30, 1 << 30}, ""},
		{"nothing", "maxOutput: {perInstance: 0}", nil, MaxOutput{},
			"spec.maxOutput.perInstance: 0 is less than the least"},
		{"less than nothing", "maxOutput: {perRun: -1Gi}", nil, MaxOutput{},
			"spec.maxOutput.perRun: -1Gi is less than the least"},
		{"no end", "maxOutput: {perRun: 2Ti}", nil, MaxOutput{}, "spec.maxOutput.perRun: 2Ti is more than the most"},
		{"less for all than for one", "maxOutput: {perInstance: 2Gi}", nil, MaxOutput{},
			"1Gi for all instances is less than 2Gi for one"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := fmt.Sprintf("apiVersion: cnsbench.dev/v1alpha1\nkind: Benchmark\nmetadata: {name: b}\nspec:\n  %s\n"+
				"  actions: [{name: v, createObjSpec: {volume: {storageClass: hostdir, size: 1Gi}}}]\n", tt.spec)
			p, problems := load(t, Input{Files: []File{{Name: "b.yaml", Data: []byte(text)}}, Set: tt.set})
			if tt.problem != "" {
				if got := fmt.Sprint(problems); !strings.Contains(got, tt.problem) {
					t.Errorf("problems %s, want %q", got, tt.problem)
				}
				return
			}
			if p == nil || p.MaxOutput != tt.want {
				t.Errorf("%+v, %v, want %+v", p, problems, tt.want)
			}
		})
	}
}
