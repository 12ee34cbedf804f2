package web

import (
	"slices"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Host is a machine that does work of a run: a node, this machine, or a worker of an object workload.
type Host struct {
	Name           string `json:"name"`
	Instances      int    `json:"instances" doc:"workload instances that have started there"`
	InstancesEnded int    `json:"instancesEnded" doc:"those of them that have ended"`
	Ops            int    `json:"ops" doc:"operations that have ended there"`
}

// placement says where the instances and operations of a live run are.
type placement struct {
	workers []string          // hosts of an object workload, by the number of their instances
	nodes   map[string]string // of instances, by the last operation that started their containers
	ops     map[string]int    // operations that have ended, by node
}

func (p *placement) addOp(o *op.Op) {
	if o.Node == "" {
		return
	}
	p.ops[o.Node]++
	runs := func(m op.Milestone) bool { name, _ := m.Split(); return name == op.Running }
	if o.Outcome == op.OK && slices.ContainsFunc(o.Milestones, runs) {
		p.nodes[o.Target] = o.Node
	}
}

// of returns the host of an instance. The instances of an object workload have the numbers of its hosts.
func (p *placement) of(instance string) (string, bool) {
	if name, ok := p.nodes[instance]; ok {
		return name, true
	}
	n, err := strconv.Atoi(instance[strings.LastIndexByte(instance, '-')+1:])
	if err != nil || n < 0 || n >= len(p.workers) {
		return "", false
	}
	return p.workers[n], true
}
