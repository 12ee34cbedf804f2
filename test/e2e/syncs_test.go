package e2e

import (
	"os"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
)

// TestSyncs: the calls of fsync that the kernel saw of fio are those that fio counted. An ordinary user reads why there
// are none. Of a command that is not asked about nothing is said.
func TestSyncs(t *testing.T) {
	for _, fsync := range []string{"4", "0"} {
		t.Run("fsync="+fsync, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			file := b.write("bench.yaml", `
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: syncs}
spec:
  actions:
    - name: fio
      createObjSpec:
        workload: fio
        vars: {storageClass: hostdir, volumeSize: 64Mi, fillPercent: 10, rw: randwrite, runtime: 1, fsync: `+fsync+`}
`)
			b.run(b.runArgs(file)...).wants(t, 0)
			var s summary.Summary
			decode(t, b.run("show", "--output", "json", b.bundle()).wants(t, 0).stdout, &s)
			syncs := s.Workloads[0].Syncs
			switch {
			case fsync == "0":
				if syncs != nil {
					t.Errorf("not asked for: %+v", syncs)
				}
			case syncs == nil || syncs.Containers != 1 || syncs.Tool == nil || *syncs.Tool < 2:
				t.Errorf("the calls are %+v, want those of one container and the tool's", syncs)
			case os.Geteuid() != 0:
				if syncs.NotObserved == "" || syncs.Fsync != 0 {
					t.Errorf("as a user: %+v, want why they were not observed", syncs)
				}
			case syncs.Fsync != *syncs.Tool || syncs.NotObserved != "":
				t.Errorf("the kernel saw %+v, fio %d", syncs, *syncs.Tool)
			}
			b.clean()
		})
	}
}
