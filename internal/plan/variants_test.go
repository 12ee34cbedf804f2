package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestVariants checks the variants of varsList and matrix, and their instances.
func TestVariants(t *testing.T) {
	tests := []struct {
		name, spec string
		set        []string
		want       []string // own variables of the variants
		count      int
		volumes    int64
	}{
		{name: "none", spec: "count: 3", want: []string{""}, count: 3, volumes: 3},
		{name: "a matrix", spec: "count: 2, matrix: {rw: [read, write], bs: [4k, 64k]}",
			want:  []string{"bs=4k rw=read", "bs=4k rw=write", "bs=64k rw=read", "bs=64k rw=write"},
			count: 8, volumes: 8},
		{name: "a list", spec: "varsList: [{rw: read, bs: 1m}, {rw: randwrite, iodepth: 1}]",
			want: []string{"bs=1m rw=read", "iodepth=1 rw=randwrite"}, count: 2, volumes: 2},
		{name: "both", spec: "varsList: [{rw: read}, {rw: write}], matrix: {bs: [4k, 8k]}",
			want:  []string{"bs=4k rw=read", "bs=8k rw=read", "bs=4k rw=write", "bs=8k rw=write"},
			count: 4, volumes: 4},
		{name: "a flag instead of a list", spec: "varsList: [{rw: read}, {rw: write}], matrix: {bs: [4k, 8k]}",
			set:  []string{"w.rw=randrw", "vars.bs=1m"},
			want: []string{""}, count: 1, volumes: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := good(t, Input{Set: tt.set}, "spec: {actions: [{name: w, createObjSpec: {workload: fio, vars: {storageClass: hostdir}, "+tt.spec+"}}]}\n")
			a := p.Actions[0]
			var got []string
			for _, own := range a.Workload.Own {
				var parts []string
				for _, k := range sortedKeys(own) {
					parts = append(parts, k+"="+own[k])
				}
				got = append(got, strings.Join(parts, " "))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if a.Count != tt.count || p.Budget.Volumes != tt.volumes || p.Budget.Ops != int64(tt.count) {
				t.Errorf("count %d, budget %+v", a.Count, p.Budget)
			}
			// Each instance is rendered with the variables of its variant.
			for i := range a.Count {
				w, err := a.Workload.Render("r", i)
				if err != nil {
					t.Fatal(err)
				}
				job := w.ConfigMaps[0].Data["fio.job"]
				for k, v := range a.Workload.Own[i%len(a.Workload.Own)] {
					if !strings.Contains(job, k+"="+v+"\n") {
						t.Errorf("instance %d has not %s=%s:\n%s", i, k, v, job)
					}
				}
			}
		})
	}
}

// TestVariantsThatCannotBe checks the problems for invalid varsList and matrix values.
func TestVariantsThatCannotBe(t *testing.T) {
	var many []string
	for i := range 12 {
		many = append(many, fmt.Sprintf("v%d: [a, b, c, d, e, f, g, h, i, j]", i))
	}
	tests := []struct{ name, spec, path, want string }{
		{"given twice", "matrix: {storageClass: [hostdir, loopfile]}", "spec.actions[0].createObjSpec.matrix.storageClass[0]", "is given at spec.actions[0].createObjSpec.vars.storageClass already"},
		{"an unknown variable", "matrix: {rv: [read]}", "spec.actions[0].createObjSpec.matrix.rv[0]",
			`no variable "rv"`},
		{"no values", "matrix: {rw: []}", "spec.actions[0].createObjSpec.matrix.rw", `variable "rw" has no values`},
		{"more than memory holds", "matrix: {" + strings.Join(many, ", ") + "}", "spec.actions[0].createObjSpec.matrix",
			"more than 10000 combinations"},
		{"no quantity", "varsList: [{volumeSize: 1Gi}, {volumeSize: big}]",
			"spec.actions[0].createObjSpec.varsList[1].volumeSize", "not a quantity"},
		{"too many", "count: 6000, matrix: {rw: [read, write]}", "spec.actions[0].createObjSpec", "12000 instances"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := head + "spec: {actions: [{name: w, createObjSpec: {workload: fio, vars: {storageClass: hostdir}, " + tt.spec + "}}]}\n"
			_, problems := load(t, Input{Files: []File{{Name: "x.yaml", Data: []byte(text)}}})
			if len(problems) == 0 || problems[0].Path != tt.path || !strings.Contains(problems[0].Message, tt.want) {
				t.Errorf("%+v\nwant %s: %s", problems, tt.path, tt.want)
			}
		})
	}
}
