package e2e

import (
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// TestBusyHost checks that a run beside processes that use the CPUs reports the load and names
// these processes. CPU time of the run itself does not count as load.
func TestBusyHost(t *testing.T) {
	b := newBox(t)
	const spec = "spec: {runtime: 4s, actions: [{name: v, rateName: r, createObjSpec: {volume: {storageClass: sut}}}],\n" +
		"  rates: [{name: r, constantRateSpec: {interval: 200ms}}]}\n"
	hog(t, 1)
	b.bench(head+spec+class("null"), "--strict").wants(t, 4)
	var s struct {
		Machines []struct {
			CPUs int  `json:"cpus"`
			By   bool `json:"byProcess"`
		} `json:"machines"`
		Validity []struct{ Name, Severity, Evidence string } `json:"validity"`
	}
	decode(t, b.run("show", b.bundle(), "--output", "json").wants(t, 0).stdout, &s)
	if len(s.Machines) != 1 || s.Machines[0].CPUs != runtime.NumCPU() {
		t.Errorf("machines: %+v", s.Machines)
	}
	if len(s.Machines) == 1 && !s.Machines[0].By {
		t.Skip("the processes of this machine are not visible to the tests")
	}
	for _, f := range s.Validity {
		if f.Name == "hostBusy" && f.Severity == "warning" && strings.Contains(f.Evidence, "mostly ") {
			return
		}
	}
	t.Errorf("no flag hostBusy: %+v", s.Validity)
}

// hog keeps all CPUs busy until the test ends, each with so many processes.
func hog(t *testing.T, each int) {
	t.Helper()
	for range each * runtime.NumCPU() {
		c := exec.Command("sh", "-c", "while :; do :; done")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	}
}
