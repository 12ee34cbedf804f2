package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// lightly is a Benchmark with n instances of a workload that waits at the barrier and writes a block.
func lightly(n int) string {
	const command = `[sh, -c, "dd if=/dev/zero of=/data/file bs=4k count=1 status=none; sleep 3; echo done"]`
	entry := strings.Replace(workload(command), "{role: workload}", `{role: workload, sync: "true"}`, 1)
	const actions = "spec: {actions: [{name: w, timeout: 20m, createObjSpec: {workload: mine, count: %d}}]}\n"
	return head + fmt.Sprintf(actions, n) + entry + class("hostdir")
}

// TestTooFewFiles checks that a run with more instances than this machine's limits allow ends before it has made
// anything, with the limit and what to do.
func TestTooFewFiles(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	file := b.write("bench.yaml", lightly(100))
	line := `ulimit -n 200 && exec "$0" "$@"`
	cmd := b.command(t.Context(), "sh", append([]string{"-c", line, b.cnsbench()}, b.runArgs(file)...)...)
	r := b.finish(t.Context(), cmd).wants(t, 2)
	const want = "100 containers, which need 264 open files; RLIMIT_NOFILE allows 200: raise the hard limit"
	if !strings.Contains(r.said(), want) {
		t.Errorf("want %q: %v", want, r)
	}
	b.clean()
}
