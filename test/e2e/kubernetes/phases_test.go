//go:build e2e

package kubernetes

import (
	"math"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
)

// testPhases checks that a workload changes its load within one pod, that its figures name the
// phase in which they were measured, and that its phases end without a failure. The phases are longer
// than fio takes to start on a busy machine.
func testPhases(p *project) {
	c := p.command("local", `
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: e2e}
spec:
  actions:
    - name: fio
      createObjSpec:
        workload: fio
        vars: {storageClass: hostdir, volumeSize: 64Mi, rw: randwrite, rateIops: 50, runtime: 600}
        phases:
          - {startAfter: 20s, vars: {rateIops: 150}}
          - {startAfter: 40s, vars: {rateIops: 50, bs: 8k, runtime: 6}}
  slos:
    - {name: busier, expr: 'iops(fio.write, phase(1)) > 2.0 * iops(fio.write, phase(0))'}
`)
	p.ends(c, 0)
	b, _ := p.bundle(c)
	s, err := summary.Make(b)
	if err != nil || len(s.Workloads) != 1 || len(s.Workloads[0].Phases) != 3 {
		p.t.Fatalf("summary %+v, %v", s, err)
	}
	for i, ph := range s.Workloads[0].Phases {
		for _, m := range ph.Metrics {
			if want := []float64{50, 150, 50}[i]; m.Name == "write" &&
				(m.PerSecond == nil || math.Abs(*m.PerSecond-want) > 0.2*want) {
				p.t.Errorf("%s: %+v, %v were asked for", ph.Title(), m, want)
			}
		}
	}
	end := p.instance(b).End
	over := 0
	for _, c := range end.Containers {
		if c.PhaseOver {
			over++
		}
	}
	if !end.OK || over != 2 {
		p.t.Errorf("ended %+v, want OK and two containers that were ended with their phases", end)
	}
}
