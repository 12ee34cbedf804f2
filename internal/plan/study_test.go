package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestStudyOfNothing checks that null values in factors, variants and scales of a Study
// are reported. A null is most often the string null without quotes.
func TestStudyOfNothing(t *testing.T) {
	const text = `apiVersion: cnsbench.dev/v1alpha1
kind: Study
metadata: {name: x}
spec:
  factors: {vars.storageClass: [null, hostdir], fio.bs: ["null"]}
  variants:
    - {name: plain}
    - {name: deep, set: {fio.iodepth: , fio.bs: 4k}}
  scales:
    small: {set: {fio.runtime: ~}, factors: {fio.bs: [4k, ~]}}
    tiny: {variants: [{name: deep, set: {fio.iodepth: ~}}]}
  benchmark: {actions: [{name: fio, createObjSpec: {workload: fio, vars: {bs: }}}]}
`
	_, problems := LoadStudy([]File{{Name: "x.yaml", Data: []byte(text)}})
	var got []string
	for _, p := range problems {
		got = append(got, p.String())
	}
	const missing = `: the value is missing (the text null is written "null")`
	want := []string{
		"x.yaml:5:33: spec.factors.vars.storageClass[0]" + missing,
		"x.yaml:8:39: spec.variants[1].set.fio.iodepth" + missing,
		"x.yaml:10:32: spec.scales.small.set.fio.runtime" + missing,
		"x.yaml:10:59: spec.scales.small.factors.fio.bs[1]" + missing,
		"x.yaml:11:55: spec.scales.tiny.variants[0].set.fio.iodepth" + missing,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
