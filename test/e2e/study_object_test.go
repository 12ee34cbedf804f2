//go:build e2e

package e2e

import (
	"fmt"
	"testing"
)

// objectStudy repeats a Benchmark with object I/O.
const objectStudy = `apiVersion: cnsbench.dev/v1alpha1
kind: Study
metadata: {name: endpoints}
spec:
  seed: 5
  blocks: 2
  factors:
    spec.actions.objects.createObjSpec.objectSpec.storage.s3Spec.endpoint: [%q, %q]
  responses: [iops(objects.read), p50(objects.read)]
  benchmark:
    actions:
      - name: objects
        createObjSpec:
          workload: object
          objectSpec:
            storage: {s3Spec: {endpoint: "http://replaced"}}
            stages:
              - name: init
                works: [{type: init, workers: 1, containers: "r(1,2)"}]
              - name: main
                works:
                  - workers: 2
                    runtime: 500ms
                    operations: [{type: read, containers: "u(1,2)", objects: "u(1,10)"}]
              - name: dispose
                works: [{type: dispose, workers: 1, containers: "r(1,2)"}]
`

// capacityStudy repeats a capacity search.
const capacityStudy = `apiVersion: cnsbench.dev/v1alpha1
kind: Study
metadata: {name: capacity}
spec:
  seed: 5
  blocks: 2
  objectWorkload:
    file: reads.xml
    flags: {find-max: p50(read) < 1s, find-from: 100, find-most: 200, window: 500ms, warm-up: 100ms}
  factors:
    env.S3_ENDPOINT: [%q, %q]
  metrics:
    - {response: findMax(main), marginPercent: 10}
`

const reads = `<workload name="reads">
<storage type="s3" config="endpoint=${S3_ENDPOINT};path_style_access=true"/><workflow>
<workstage name="init"><work type="init" workers="1" config="containers=r(1,2)"/></workstage>
<workstage name="main"><work name="main" workers="4" runtime="1">
<operation type="read" config="containers=u(1,2);objects=u(1,10)"/></work></workstage>
<workstage name="dispose"><work type="dispose" workers="1" config="containers=r(1,2)"/></workstage>
</workflow></workload>
`

// TestStudyOfEndpoints checks that object endpoints are providers: of a Benchmark with object I/O, and of a capacity
// search, whose result is a response.
func TestStudyOfEndpoints(t *testing.T) {
	b := newBox(t)
	first, one := b.nullServer()
	second, other := b.nullServer()
	b.write("reads.xml", reads)
	for name, text := range map[string]string{"io": objectStudy, "search": capacityStudy} {
		file := b.write(name+".yaml", fmt.Sprintf(text, first, second))
		r := b.run("study", "run", file, "--out", b.in(name), "--storage-dir", b.in("storage"),
			"--output", "json").wants(t, 0)
		var table studyJSON
		decode(t, r.stdout, &table)
		if len(table.Rows) != 2 {
			t.Fatalf("%+v", table)
		}
		for i, row := range table.Rows {
			if level := row.Levels[0].Value; level != []string{first, second}[i] || row.Done != 2 {
				t.Errorf("%s: %+v", name, row)
			}
			for j, v := range row.Values {
				if v.N != 2 || v.Median == nil || *v.Median <= 0 {
					t.Errorf("%s: no %s: %+v", name, table.Responses[j], v)
				}
				// The condition holds at every rate up to the greatest.
				if name == "search" && *v.Median != 200 {
					t.Errorf("the highest rate is %g, want 200", *v.Median)
				}
			}
		}
	}
	one.kill()
	other.kill()
	b.clean()
}
