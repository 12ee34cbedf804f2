// Package parts turns settings into processes: the arguments and configuration files of everything that runs. It is
// pure:
// what is started, and whether something else runs already, is for package cluster.
package parts

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/hack/testbed/internal/settings"
)

// Part is one process.
type Part struct {
	Name string
	// Stage orders the start: all of a stage are well before the next begins.
	Stage Stage
	// Node, when set, is the node in whose network namespace it runs.
	Node *settings.Node
	Argv []string // Argv[0] is the name of a built program
	Env  []string
	// Files are written before the start; another content means a new start.
	Files map[string]string
	// Follows, when set, is the part with which it is started anew: a sidecar ends when it loses its driver, and in a
	// cluster a kubelet would start it again.
	Follows string
	// Nice is its nice value: a control plane has a machine of its own, and here one that goes first.
	Nice int
	// Health says how to see that it works; without any, it has only to stay alive.
	Health Health
}

// Health is one way to see that a part works.
type Health struct {
	URL    string // answers 200
	Socket string // can be dialled
}

// Stage is a step of the start.
type Stage int

// The stages, in order.
const (
	Storage Stage = iota // etcd, the drivers and the nodes' container runtimes
	API                  // the API server
	Control              // what is a client of it
	Kubelets
	Services // what wants nodes and custom resources
	stages
)

// Stages lists the stages in order.
func Stages() []Stage {
	var all []Stage
	for s := range stages {
		all = append(all, s)
	}
	return all
}

// Inputs is a digest of the files.
func (p Part) Inputs() string {
	h := sha256.New()
	for _, path := range slices.Sorted(maps.Keys(p.Files)) {
		fmt.Fprintf(h, "%s\n%d\n%s", path, len(p.Files[path]), p.Files[path])
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// Matches says whether a part is meant by a name: its own, or the common beginning of several, up to a hyphen.
func (p Part) Matches(name string) bool {
	return p.Name == name || strings.HasPrefix(p.Name, name+"-")
}

// All lists the parts of a test bed, ordered by stage.
func All(l settings.Layout, s settings.Settings) []Part {
	b := builder{l, s}
	all := []Part{b.etcd(), b.apiserver(), b.kcm(), b.scheduler(), b.snapshotController(), b.dns(), b.gateway()}
	all = append(all, b.cosi()...)
	for _, n := range settings.Nodes() {
		all = append(all, b.containerd(n), b.kubelet(n), b.proxy(n), b.registrar(n))
	}
	for _, d := range settings.Drivers() {
		all = append(all, b.driver(d), b.provisioner(d), b.resizer(d), b.snapshotter(d))
		if d.Attaches {
			all = append(all, b.attacher(d))
		}
	}
	for i := range all {
		all[i].Argv = append(all[i].Argv, b.extra(all[i].Name)...)
	}
	slices.SortStableFunc(all, func(a, b Part) int { return int(a.Stage) - int(b.Stage) })
	return all
}

type builder struct {
	l settings.Layout
	s settings.Settings
}

// extra are the arguments that the user adds to a part, or to all of its kind.
func (b builder) extra(name string) []string {
	var args []string
	for _, to := range slices.Sorted(maps.Keys(b.s.Extra)) {
		if (Part{Name: name}).Matches(to) {
			args = append(args, b.s.Extra[to]...)
		}
	}
	return args
}

func (b builder) pki(file string) string { return b.l.Path("pki", file) }

// qps are the flags by which the components of Kubernetes and its sidecars are limited.
func (b builder) qps(name string) []string {
	l := b.s.Limits[name]
	return []string{fmt.Sprintf("--kube-api-qps=%g", l.QPS), fmt.Sprintf("--kube-api-burst=%d", l.Burst)}
}
