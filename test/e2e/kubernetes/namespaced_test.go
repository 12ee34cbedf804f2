//go:build e2e

package kubernetes

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
)

// testNamespacedOperator checks that an operator with --namespaced runs only the Benchmarks of its namespaces and has no
// rights in others, and that an installation can be changed from one namespace to the cluster and back.
func testNamespacedOperator(t *testing.T) {
	bed := newBed(t)
	in, out := bed.project(t, allRights), bed.project(t, allRights)
	namespaced := []string{"--namespaced", "--benchmark-namespace", in.name}
	bed.install(t, namespaced...)
	served, ignored := in.benchmark("3s", "null"), out.benchmark("3s", "null")
	in.wait(served, v1alpha1.ConditionComplete)
	in.nothingLeft()
	if err := bed.Get(t.Context(), client.ObjectKeyFromObject(ignored), ignored); err != nil {
		t.Fatal(err)
	}
	if len(ignored.Status.Conditions) > 0 || len(out.jobs()) > 0 {
		t.Errorf("the Benchmark of another namespace: %+v, Jobs %v", ignored.Status, out.jobs())
	}
	bed.operatorMay(t, in.name, true)
	bed.operatorMay(t, out.name, false)

	bed.reinstall(t)
	bed.operatorMay(t, out.name, true)
	out.wait(ignored, v1alpha1.ConditionComplete)

	// Its finalizer would keep it for ever.
	if text, err := bed.cnsbench(t, bed.installation(namespaced...)...); err == nil ||
		!strings.Contains(text, out.name+"/small") {
		t.Errorf("%v, %s: want an error that names the Benchmark of the other namespace", err, text)
	}
	out.delete(ignored)
	bed.reinstall(t, namespaced...)
	bed.operatorMay(t, in.name, true)
	bed.operatorMay(t, out.name, false)
	in.delete(served)
	again := in.benchmark("3s", "null")
	in.wait(again, v1alpha1.ConditionComplete)
	in.delete(again) // an installation with Benchmarks is not uninstalled
}

// reinstall changes the installation that install made to other flags.
func (bed *testBed) reinstall(t *testing.T, flags ...string) {
	t.Helper()
	if _, err := bed.cnsbench(t, bed.installation(flags...)...); err != nil {
		t.Fatal(err)
	}
}

// operatorMay checks whether the account of the operator may create Jobs in a namespace. The API server's cache of rights
// follows a change of a Role within seconds.
func (bed *testBed) operatorMay(t *testing.T, namespace string, want bool) {
	t.Helper()
	var said string
	if !poll(20*time.Second, 500*time.Millisecond, func() bool {
		out, _ := exec.CommandContext(t.Context(), "kubectl", "auth", "can-i", "create", "jobs", "--namespace", namespace,
			"--as", "system:serviceaccount:"+bed.namespace+":cnsbench-operator").CombinedOutput()
		said = strings.TrimSpace(string(out))
		return strings.HasPrefix(said, "yes") == want
	}) {
		t.Errorf("may the operator create Jobs in %s: %s, want %t", namespace, said, want)
	}
}
