package parts

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/hack/testbed/internal/settings"
)

func all(t *testing.T, args string) map[string]Part {
	t.Helper()
	s := settings.Defaults()
	if _, err := s.Parse("up", strings.Fields(args)); err != nil {
		t.Fatal(err)
	}
	byName := map[string]Part{}
	for _, p := range All(settings.Layout{Repo: "/repo", Dir: "/state"}, s) {
		if _, twice := byName[p.Name]; twice {
			t.Errorf("two parts are called %s", p.Name)
		}
		byName[p.Name] = p
	}
	return byName
}

func (p Part) has(arg string) bool {
	if slices.Contains(p.Argv, arg) {
		return true
	}
	for _, text := range p.Files {
		if strings.Contains(text, arg) {
			return true
		}
	}
	return false
}

func TestFlagsReachTheirParts(t *testing.T) {
	tests := []struct {
		flags, part, want string
	}{
		{"--provisioner-qps 5 --provisioner-burst 7", "csi-provisioner-null", "--kube-api-qps=5"},
		{"--provisioner-qps 5 --provisioner-burst 7", "csi-provisioner-btrfs", "--kube-api-burst=7"},
		{"--provisioner-qps 5", "csi-attacher-null", "--kube-api-qps=500"},
		{"--sidecar-timeout 10s", "csi-snapshotter-loopfile", "--timeout=10s"},
		{"--resizer-workers 3", "csi-resizer-null", "--workers=3"},
		{"--attacher-workers 3", "csi-attacher-null", "--worker-threads=3"},
		{"--snapshot-controller-workers 2", "snapshot-controller", "--worker-threads=2"},
		{"--kcm-qps 20 --kcm-burst 30", "kcm", "--kube-api-qps=20"},
		{"--scheduler-qps 11", "scheduler", "qps: 11,"},
		{"--kubelet-qps 12", "kubelet-node2", "kubeAPIQPS: 12"},
		{"--node-status 10s", "kubelet-node1", "nodeStatusUpdateFrequency: 10s"},
		{"--audit-level Metadata", "apiserver", "  - level: Metadata\n    resources:"},
		{"--arg kcm=--v=4", "kcm", "--v=4"},
		{"--arg csi-attacher=--v=5", "csi-attacher-loopfile", "--v=5"},
		{"--seed 7", "driver-null", "--seed=7"},
	}
	for _, tt := range tests {
		t.Run(tt.part+" "+tt.flags, func(t *testing.T) {
			p, ok := all(t, tt.flags)[tt.part]
			if !ok || !p.has(tt.want) {
				t.Errorf("%q is missing in %q and %v", tt.want, p.Argv, p.Files)
			}
		})
	}
}

// TestOnlyWhatIsToldChanges: a flag of one part must not start others anew.
func TestOnlyWhatIsToldChanges(t *testing.T) {
	before, after := all(t, ""), all(t, "--provisioner-qps 5")
	for name, p := range before {
		same := slices.Equal(p.Argv, after[name].Argv) && p.Inputs() == after[name].Inputs()
		if same == strings.HasPrefix(name, "csi-provisioner") {
			t.Errorf("%s: same %t", name, same)
		}
	}
}

func TestPorts(t *testing.T) {
	urls := map[string]string{}
	for name, p := range all(t, "") {
		if other, twice := urls[p.Health.URL]; twice && p.Health.URL != "" {
			t.Errorf("%s and %s both serve %s", name, other, p.Health.URL)
		}
		urls[p.Health.URL] = name
	}
}

func TestMatches(t *testing.T) {
	p := Part{Name: "csi-provisioner-null"}
	for name, want := range map[string]bool{"csi-provisioner": true, "csi-provisioner-null": true, "csi": true,
		"csi-prov": false, "csi-attacher": false} {
		if got := p.Matches(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestDriverServesBothNodes(t *testing.T) {
	parts := all(t, "--sidecar-timeout "+(2*time.Second).String())
	for _, n := range settings.Nodes() {
		socket := settings.Layout{Dir: "/state"}.DriverSocket("null", &n)
		if !parts["driver-null"].has("--node=" + n.Name + "=" + socket) {
			t.Errorf("the driver does not serve %s", n.Name)
		}
		if !parts["registrar-"+n.Name].has("--driver=null=null.csi.cnsbench.dev=" + socket) {
			t.Errorf("the registrar of %s offers another socket: %q", n.Name, parts["registrar-"+n.Name].Argv)
		}
	}
	if parts["csi-snapshotter-null"].has("--timeout=2s") == false || parts["snapshot-controller"].has("--timeout=2s") {
		t.Error("the sidecars' timeout went astray")
	}
	if _, ok := parts["csi-attacher-btrfs"]; ok {
		t.Error("there is an attacher for a driver that does not attach")
	}
}
