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

// instances tracks the workload instances from their creation to their end. The run lasts until those of the
// set-up have ended. It is safe for concurrent use.
type instances struct {
	mu        sync.Mutex
	byName    map[string]*instance
	all       []string // names in the order in which they became ready, including deleted ones
	starts    map[string]op.Time
	farClocks map[string]farWall // of the containers whose machines are not the runner's
	action    map[string]string
	phases    map[string]int  // the last phase that began, of instances with phases
	over      map[string]bool // containers that were ended at the end of their phase
}

// farWall is a wall clock that is not the runner's.
type farWall struct {
	op.WallClock
	machine string
	since   op.Time // when it was that far ahead
}

type instance struct {
	name, group string
	initial     bool // made in the set-up: the run waits for its end
	service     bool // does not end by itself
	ended       chan struct{}
	end         op.InstanceEnd
	stopping    bool // the run asked it to end, so that its end is not a failure
	restarting  int  // ops in flight that restart its processes, likewise
	ready       bool // the op that made it succeeded; until then, a failure belongs to the op
}

func newInstances() *instances {
	return &instances{byName: map[string]*instance{}, starts: map[string]op.Time{},
		farClocks: map[string]farWall{}, action: map[string]string{},
		phases: map[string]int{}, over: map[string]bool{}}
}

// get returns the instance with that name and creates it if necessary: an engine can report an end before the
// op that made the instance has returned. The caller holds mu.
func (s *instances) get(name string) *instance {
	i, ok := s.byName[name]
	if !ok {
		i = &instance{name: name, ended: make(chan struct{})}
		s.byName[name] = i
	}
	return i
}

// created registers an instance whose op has succeeded. It returns an error if the instance has already
// failed.
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

// hasEnded records an end. If that is a failure of the run, it calls fail before it closes ended: otherwise a
// waiter could end the run as complete first.
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
			why = "was OOM-killed"
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

// running returns the instances that have not ended, and marks them as being stopped by the run.
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

// deleting marks a workload that an op removes, so that its end is not a failure.
func (s *instances) deleting(o engine.Object) {
	if o.Kind != engine.WorkloadObject {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.get(o.Name).stopping = true
}

// markRestarting records that an op is about to restart a workload's processes. markRestarted and lost end
// that state.
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
	if i, ok := s.byName[name]; ok { // not deleted in the meantime
		i.restarting--
	}
}

// lost ends the restarting state after an op that failed, and reports whether the workload ended because of
// it. A workload that still runs may end because of the op later; that is not a failure.
func (s *instances) lost(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.byName[name]
	if !ok {
		return false // deleted in the meantime
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

// groups returns the instances of the set-up by sync group.
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

// any reports whether the run has workloads whose end it waits for.
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

// wait returns when every workload of the set-up has ended, or when ctx ends.
func (s *instances) wait(ctx context.Context) {
	for _, i := range s.awaited() {
		select {
		case <-i.ended:
		case <-ctx.Done():
			return
		}
	}
}

// waitFor returns when the named instance has ended, or when ctx ends.
func (s *instances) waitFor(ctx context.Context, name string) {
	s.mu.Lock()
	ended := s.get(name).ended
	s.mu.Unlock()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// forget removes a deleted instance, so that memory does not grow with churn.
func (s *instances) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byName, name)
}

func (s *instances) hasStarted(e op.InstanceStart) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starts[e.Instance+"/"+e.Container] = e.At
	if e.Wall != nil {
		s.farClocks[e.Instance+"/"+e.Container] = farWall{*e.Wall, e.Machine, e.At}
	}
	if e.Phase > 0 {
		s.phases[e.Instance] = max(s.phases[e.Instance], e.Phase)
	}
}

// phaseBegan reports whether a phase of an instance began.
func (s *instances) phaseBegan(instance string, phase int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phases[instance] >= phase
}

// started returns when a container began its work, or Never.
func (s *instances) started(instance, container string) op.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.starts[instance+"/"+container]; ok {
		return at
	}
	return op.Never
}

// wall returns the wall clock of a container's machine relative to the runner's at the start of the run, that machine
// as farClocks knows it, and the instant from which steps of its clock are not in the former.
func (s *instances) wall(instance, container string) (ahead op.WallClock, machine string, since op.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if far, ok := s.farClocks[instance+"/"+container]; ok {
		return far.WallClock, far.machine, far.since
	}
	return op.WallClock{}, "", always
}

// maxSlew is the most by which a wall clock is slewed, and so moves away from what it was (adjtimex(2)).
const maxSlew = 500e-6

// wallError returns how wrong times of the wall clocks of an instance's machines can be at an instant; 0: they are
// the runner's, which was not set.
func (s *instances) wallError(instance string, at op.Time, clocks *wallClocks) (most op.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	most = clocks.doubt("", at)
	for key, w := range s.farClocks {
		if strings.HasPrefix(key, instance+"/") {
			slewed := op.Time(2 * maxSlew * float64(at)) // of both clocks
			most = max(most, op.Time(w.ErrNanos)+slewed+clocks.doubt(w.machine, at))
		}
	}
	return most
}

// phaseOver reports whether a container was ended because its phase was over.
func (s *instances) phaseOver(instance, container string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over[instance+"/"+container]
}

// containers returns the names under which the record has a container of an instance. There is more than one
// if several pods of the instance have the container, each with its pod's name as prefix, or if it was
// restarted.
func (s *instances) containers(instance, container string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for key := range s.starts {
		name, ok := strings.CutPrefix(key, instance+"/")
		// The suffix "~N" is the number of the restart.
		own, _, _ := strings.Cut(name, "~")
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

// startedBefore returns the containers of an instance that started before an instant, in that order, under the names
// that the record has.
func (s *instances) startedBefore(instance string, before op.Time) (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, at := range s.starts {
		if name, ok := strings.CutPrefix(key, instance+"/"); ok && at < before {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(s.starts[instance+"/"+a], s.starts[instance+"/"+b]), cmp.Compare(a, b))
	})
	return names
}

// of returns the instances of an action that were ever ready, in the order of their numbers.
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
