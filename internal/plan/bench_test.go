package plan

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkVariants loads a Benchmark whose 10 000 instances have different variables.
func BenchmarkVariants(b *testing.B) {
	var values []string
	for i := range 100 {
		values = append(values, fmt.Sprint(1+i))
	}
	list := strings.Join(values, ", ")
	text := "apiVersion: cnsbench.dev/v1alpha1\nkind: Benchmark\nmetadata: {name: many}\nspec:\n  actions:\n" +
		"    - name: fio\n      createObjSpec: {workload: fio, vars: {storageClass: hostdir}, " +
		"matrix: {iodepth: [" + list + "], runtime: [" + list + "]}}\n"
	for b.Loop() {
		p, problems := load(b, Input{Files: []File{{Name: "many.yaml", Data: []byte(text)}}})
		if len(problems) > 0 || p.Actions[0].Count != 10_000 {
			b.Fatal(problems)
		}
	}
}
