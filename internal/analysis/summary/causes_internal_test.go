package summary

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

func TestControllerFlags(t *testing.T) {
	t.Parallel()
	process := func(name string, flags map[string]any) map[string]any {
		return map[string]any{"controller": name, "image": "i", "flags": flags}
	}
	got := controllerFlags(map[string]any{
		"kube-system/a/attacher": process("csi-attacher", map[string]any{"worker-threads": "10", "kube-api-qps": "5",
			"timeout": "15s"}),
		"kube-system/p/provisioner": process("csi-provisioner", nil),
		"of another form":           "x",
	})
	delete(got, "") // of the other form
	want := map[string][]string{"csi-attacher": {"--kube-api-qps=5 --kube-api-burst=10 (default) --worker-threads=10"},
		"csi-provisioner": {"--kube-api-qps=5 (default) --kube-api-burst=10 (default) --worker-threads=100 (default)"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := controllerFlags("pods of other namespaces cannot be read"); got != nil {
		t.Errorf("unknown limits: %v", got)
	}
}

// TestMachineNames: an op is on the machine of its instance, or on the only one; else its machine is not known.
func TestMachineNames(t *testing.T) {
	t.Parallel()
	instances := []bundle.Instance{{Name: "fio-0", Starts: []op.InstanceStart{{Machine: "node1"}}}, {Name: "fio-1"}}
	for _, tt := range []struct {
		engine   string
		machines []op.Machine
		want     map[string]string
	}{
		{"local", []op.Machine{{ID: "here"}}, map[string]string{"": "here", "fio-0": "node1"}},
		{"kubernetes", []op.Machine{{ID: "both"}, {ID: "both", Instance: "fio-0"}},
			map[string]string{"": "both", "fio-0": "node1"}},
		{"kubernetes", []op.Machine{{ID: "runner"}, {ID: "node1", Instance: "fio-0"}}, map[string]string{"fio-0": "node1"}},
	} {
		d := &dataset.Data{Bundle: &bundle.Bundle{Run: bundle.Run{Engine: tt.engine}}, Machines: tt.machines,
			Instances: instances}
		if diff := cmp.Diff(tt.want, machineNames(d)); diff != "" {
			t.Errorf("%s, %v: %s", tt.engine, tt.machines, diff)
		}
	}
}
