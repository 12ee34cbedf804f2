package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// instances follows the workloads from their creation to their end. The run
// lasts as long as those of the start do. Safe for concurrent use.
type instances struct {
	mu     sync.Mutex
	byName map[string]*instance
	all    []string // names in order of their readiness, also of those gone
	starts map[string]op.Time
	action map[string]string
	phases map[string]int  // the last that began of each that has any
	over   map[string]bool // containers that were ended with their phase
}

type instance struct {
	name, group string
	initial     bool // made at the start: the run waits for its end
	service     bool // does not end by itself
	ended       chan struct{}
	end         op.InstanceEnd
	stopping    bool // we asked it to end, so how it ends is no failure
	restarting  int  // ops under way that end its processes to make them again, likewise
	ready       bool // the op that made it succeeded; before, a failure is the op's
}

func newInstances() *instances {
	return &instances{byName: map[string]*instance{}, starts: map[string]op.Time{}, action: map[string]string{},
		phases: map[string]int{}, over: map[string]bool{}}
}

// get returns the instance of that name, making it if need be: an engine may
// report an end before the op that made the instance has returned.
func (s *instances) get(name string) *instance {
	i, ok := s.byName[name]
	if !ok {
		i = &instance{name: name, ended: make(chan struct{})}
		s.byName[name] = i
	}
	return i
}

// created takes over an instance whose op has succeeded; an error if it has
// already ended badly.
func (s *instances) created(action, name, group string, initial, service bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, name)
	s.action[name] = action
	i := s.get(name)
	i.group, i.initial, i.service, i.ready = group, initial, service, true
	select {
	case <-i.ended:
		return i.failure()
	default:
		return nil
	}
}

// hasEnded records an end. If that is a failure of the run, fail learns of it
// before those who wait for the instance do: else they could end the run as
// complete first.
func (s *instances) hasEnded(e op.InstanceEnd, fail func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.get(e.Instance)
	select {
	case <-i.ended:
		return
	default:
	}
	i.end = e
	for _, c := range e.Containers {
		if c.PhaseOver {
			s.over[e.Instance+"/"+c.Name] = true
		}
	}
	if err := i.failure(); err != nil {
		fail(err)
	}
	close(i.ended)
}

func (i *instance) failure() error {
	if i.end.OK || i.stopping || i.restarting > 0 || !i.ready {
		return nil
	}
	return fmt.Errorf("workload %s failed: %s", i.name, describe(i.end))
}

func describe(e op.InstanceEnd) string {
	for _, c := range e.Containers {
		var why string
		switch {
		case c.Replaced, c.PhaseOver:
			continue
		case c.OOM:
			why = "was killed by the kernel for want of memory"
		case c.Signal != "":
			why = "was killed by " + c.Signal
		case c.ExitCode != 0:
			why = fmt.Sprintf("exited with %d", c.ExitCode)
		default:
			continue
		}
		text := fmt.Sprintf("container %s %s", c.Name, why)
		if c.Message != "" {
			text += ": " + strings.TrimSpace(c.Message)
		}
		return text
	}
	return "no container says why"
}

// running lists the instances that have not ended and marks them as ended by
// us from now on.
func (s *instances) running() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, i := range s.byName {
		select {
		case <-i.ended:
		default:
			i.stopping = true
			names = append(names, i.name)
		}
	}
	return names
}

// deleted marks a workload that an op removed, so that its end is no failure.
func (s *instances) deleting(o engine.Object) {
	if o.Kind != engine.WorkloadObject {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.get(o.Name).stopping = true
}

// markRestarting records that an op is about to end a workload's processes and to make them again. markRestarted and lost end that state.
func (s *instances) markRestarting(name string) {
	if name == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.get(name).restarting++
}

func (s *instances) markRestarted(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i, ok := s.byName[name]; ok { // not deleted meanwhile
		i.restarting--
	}
}

// lost ends the mark of an op that has failed, and says whether the workload
// ended with it; one that still runs may end by it at any time.
func (s *instances) lost(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.byName[name]
	if !ok {
		return false // deleted meanwhile
	}
	i.restarting--
	first := i.over() && !i.end.OK && !i.stopping
	i.stopping = true
	return first
}

func (i *instance) over() bool {
	select {
	case <-i.ended:
		return true
	default:
		return false
	}
}

// isRunning reports whether a workload has not ended.
func (s *instances) isRunning(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, known := s.byName[name]
	return !known || !i.over()
}

// groups lists the instances of the start by sync group.
func (s *instances) groups() map[string][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	groups := map[string][]string{}
	for _, i := range s.byName {
		if i.initial {
			groups[i.group] = append(groups[i.group], i.name)
		}
	}
	return groups
}

// any says whether the run has workloads whose end it waits for.
func (s *instances) any() bool { return len(s.awaited()) > 0 }

func (s *instances) awaited() []*instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*instance
	for _, i := range s.byName {
		if i.initial && !i.service {
			list = append(list, i)
		}
	}
	return list
}

// wait returns when every workload of the start has ended, or ctx has.
func (s *instances) wait(ctx context.Context) {
	for _, i := range s.awaited() {
		select {
		case <-i.ended:
		case <-ctx.Done():
			return
		}
	}
}

// waitFor returns when the named instance has ended, or ctx has.
func (s *instances) waitFor(ctx context.Context, name string) {
	s.mu.Lock()
	ended := s.get(name).ended
	s.mu.Unlock()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// forget drops an instance that is gone, so that churn does not add up.
func (s *instances) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byName, name)
}

func (s *instances) hasStarted(e op.InstanceStart) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starts[e.Instance+"/"+e.Container] = e.At
	if e.Phase > 0 {
		s.phases[e.Instance] = max(s.phases[e.Instance], e.Phase)
	}
}

// phaseBegan says whether an instance came as far as a phase.
func (s *instances) phaseBegan(instance string, phase int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phases[instance] >= phase
}

// started is when a container began its work; Never if it did not.
func (s *instances) started(instance, container string) op.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.starts[instance+"/"+container]; ok {
		return at
	}
	return op.Never
}

// phaseOver says whether a container was ended with its phase.
func (s *instances) phaseOver(instance, container string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over[instance+"/"+container]
}

// containers lists what the record calls a container of an instance: more than
// one where several of its pods have it, each with its pod's name before it, and
// where it was made again.
func (s *instances) containers(instance, container string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for key := range s.starts {
		name, ok := strings.CutPrefix(key, instance+"/")
		own, _, _ := strings.Cut(name, "~") // without the number of its restart
		if ok && (own == container || strings.HasSuffix(own, "."+container)) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return []string{container}
	}
	slices.Sort(names)
	return names
}

// of lists the instances of an action that were ever ready, in the order of their
// numbers.
func (s *instances) of(action string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, n := range s.all {
		if s.action[n] == action {
			names = append(names, n)
		}
	}
	slices.SortFunc(names, func(a, b string) int { // fio-2 before fio-10
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	return names
}
