package web

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/queue"
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

// readWorkers reads the hosts of an object workload, once they are recorded.
func (l *live) readWorkers(dir string) {
	if !l.run.ObjectsOnly() || l.places.workers != nil {
		return
	}
	if e, err := (&bundle.Bundle{Dir: dir}).Environment(); err == nil { // none yet, or not whole
		l.places.workers = append([]string{}, e.Hosts()...)
	}
}

// hosts returns the hosts in order of their names. An instance is at none until the operation that starts it has ended,
// unless it is of a stand-alone object workload.
func (l *live) hosts() []Host {
	all := map[string]*Host{}
	at := func(name string) *Host {
		if all[name] == nil {
			all[name] = &Host{Name: name}
		}
		return all[name]
	}
	for name, n := range l.places.ops {
		at(name).Ops = n
	}
	for _, name := range l.places.workers {
		at(name)
	}
	for instance := range l.started {
		name, ok := l.places.of(instance)
		if !ok {
			continue
		}
		h := at(name)
		h.Instances++
		if l.ended[instance] {
			h.InstancesEnded++
		}
	}
	var list []Host
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, *all[name])
	}
	return list
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

// hosts returns those of the run in progress of a submission.
func (s *Server) hosts(sub *queue.Submission) []Host {
	id := sub.Out
	if sub.Study {
		id = s.newestRun(sub.Out)
	}
	dir, err := s.place(id, runFile)
	if err != nil {
		return nil
	}
	if b, err := bundle.Look(dir); err != nil || !b.Live {
		return nil
	}
	h, err := s.hubs.join(dir)
	if err != nil {
		return nil
	}
	defer h.leave()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.live.hosts()
}

// newestRun returns the run of a study that was written to last: its runs are made one after another.
func (s *Server) newestRun(study string) (id string) {
	entries, err := fs.ReadDir(s.root.FS(), study)
	if err != nil {
		return ""
	}
	var newest time.Time
	for _, e := range entries {
		at := path.Join(study, e.Name())
		if info, err := e.Info(); err == nil && e.IsDir() && info.ModTime().After(newest) && s.has(path.Join(at, runFile)) {
			id, newest = at, info.ModTime()
		}
	}
	return id
}
