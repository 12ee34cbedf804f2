package local

import (
	"context"
	"strings"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/local/pod"
	"github.com/cnsbench/cnsbench/internal/op"
)

func (s *podSink) owns(pod string, i incarnation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owners[pod] = i
}

func (s *podSink) owner(pod string) (incarnation, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.owners[pod]
	return i, ok
}

// names returns the names of instance and container in the bundle: the container's own, prefixed with the
// pod's if the instance has several, and suffixed with a number if the pod was replaced.
func (s *podSink) names(pod, container string) (string, string) {
	i, ok := s.owner(pod)
	if !ok {
		return pod, container
	}
	return i.workload.name, i.container(container)
}

func (i incarnation) container(name string) string {
	name = engine.Restarted(name, i.n)
	if i.name == i.workload.name {
		return name
	}
	return strings.TrimPrefix(strings.TrimPrefix(i.name, i.workload.name+"."), i.workload.name+"-") + "." + name
}

func (s *podSink) Started(e op.InstanceStart) {
	e.Instance, e.Container = s.names(e.Instance, e.Container)
	s.Sink.Started(e)
}

func (s *podSink) Sample(p op.Sample) {
	if i, ok := s.owner(p.Instance); ok {
		p = i.workload.sumSamples(p)
	}
	s.Sink.Sample(p)
}

func (s *podSink) Canary(pod, volume string, ios []op.CanaryIO) {
	instance, _ := s.names(pod, "")
	s.Sink.Canary(instance, volume, ios)
}

// CanaryOpen passes the report on to sinks that need it.
func (s *podSink) CanaryOpen(pod, volume string, open []op.CanaryIO, at op.Time) {
	if live, ok := s.Sink.(engine.LiveSink); ok {
		instance, _ := s.names(pod, "")
		live.CanaryOpen(instance, volume, open, at)
	}
}

func (s *podSink) Output(pod, container, file string, data []byte) int {
	instance, container := s.names(pod, container)
	return s.Sink.Output(instance, container, file, data)
}

func (s *podSink) Cut(pod, container, file string, discarded int64, final bool) {
	instance, container := s.names(pod, container)
	s.Sink.Cut(instance, container, file, discarded, final)
}

// Ended collects the ends of an instance's pods.
func (s *podSink) Ended(e op.InstanceEnd) {
	i, ok := s.owner(e.Instance)
	if !ok {
		return
	}
	s.mu.Lock()
	delete(s.owners, e.Instance)
	s.mu.Unlock()
	for k := range e.Containers {
		e.Containers[k].Name = i.container(e.Containers[k].Name)
	}
	if end := i.workload.ended(i, e); end != nil {
		s.report(i.workload, *end)
	}
}

// report reports the end of an instance and stops its servers.
func (s *podSink) report(w *workload, end op.InstanceEnd) {
	for _, m := range w.all() {
		if m.service {
			go func() {
				_ = eachPod([]*podSlot{m}, func(p *pod.Pod) error {
					return p.Stop(context.WithoutCancel(w.engine.ctx),
						deleteGrace)
				})
			}()
		}
	}
	s.Sink.Ended(end)
}
