package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOrdinaryUser checks the shortened quickstart without privileges. hostdir replaces loopfile,
// which is reported once. Everything else is the same.
func TestOrdinaryUser(t *testing.T) {
	t.Parallel()
	needProgram(t, "fio")
	if n, err := os.ReadFile("/proc/sys/user/max_user_namespaces"); err != nil || strings.TrimSpace(string(n)) == "0" {
		t.Skip("needs user namespaces: /proc/sys/user/max_user_namespaces")
	}
	b := newBox(t)
	if os.Geteuid() == 0 {
		b.asNobody()
	}
	text, err := os.ReadFile(filepath.Join(module, "examples", "quickstart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	file := b.write("quickstart.yaml", string(text)) // readable by user nobody
	r := b.run("run", file, "--out", b.bundle(), "--set", "fio.runtime=3", "--set", "fio.volumeSize=64Mi", "--set",
		"spec.rates.each5s.constantRateSpec.interval=900ms")
	if n := strings.Count(r.stderr, "hostdir stands in for loopfile"); n != 1 {
		t.Errorf("the substitution is said %d times, not once\n%v", n, r)
	}
	s, ops := b.readable(b.bundle())
	b.judged(r, s)
	if s.State != "complete" {
		t.Errorf("state %q: %s\n%v", s.State, s.Reason, r)
	}
	if got := outcomes(ops, "fio")["ok"]; got != 3 {
		t.Errorf("%d instances of fio, want 3\n%v", got, r)
	}
	if got := outcomes(ops, "snapshots"); got["ok"] < 3 || got["error"] > 0 {
		t.Errorf("snapshots %v\n%v", got, r)
	}
	for _, w := range s.Workloads {
		for _, m := range w.Metrics {
			if m.Name == "read" && m.Latency.N == 0 {
				t.Errorf("fio's reads were not parsed\n%v", r)
			}
		}
	}
	b.clean()
}
