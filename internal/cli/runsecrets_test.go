package cli

import (
	"slices"
	"testing"

	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/workload"
)

// TestSecretValues checks that secrets of the environment and of the plan's Secrets are known, plain and encoded.
func TestSecretValues(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "from-the-environment")
	t.Setenv("CNSBENCH_PLAIN", "not-secret")
	p := &plan.Plan{Actions: []plan.Action{{Name: "w", Workload: &plan.Workload{
		Params: []workload.Params{{Action: "w", Count: 1, Cluster: true}},
		Template: &workload.Entry{Name: "w", Parts: []workload.Part{
			{Key: "pod.yaml", Text: "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, command: [x]}]}\n"},
			{Key: "secret.yaml", Text: "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n" +
				"data: {a: ZW5jb2RlZC1vbmU=}\nstringData: {b: plain-one}\n"}}}}}, {Name: "v"}}}
	got := secretValues(p, "r1")
	for _, want := range []string{"from-the-environment", "encoded-one", "ZW5jb2RlZC1vbmU=", "plain-one"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not known", want)
		}
	}
	if slices.Contains(got, "not-secret") {
		t.Error("a variable that is no secret is known")
	}
}
