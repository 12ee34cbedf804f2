package enginetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// phaseLength is long compared with a start on a busy machine.
const phaseLength = 3 * time.Second

// phasedWorkload returns a workload with one container per script, each with its own phase and output
// directory. The last phase has no end. The grace periods are long, as a busy machine may need them.
func (s *session) phasedWorkload(name string, scripts ...string) engine.Request {
	r := s.workload(name, script(scripts[0]), waits("main"))
	p := &r.Workload.Pods[0]
	for k, text := range scripts {
		ph := engine.Phase{Container: "main", Number: k, From: time.Duration(k) * phaseLength, Grace: time.Second / 2}
		if k == 0 {
			ph.Grace = phaseLength
		}
		if k+1 < len(scripts) {
			ph.Until = ph.From + phaseLength
		}
		if k > 0 {
			ph.Container = fmt.Sprintf("main-phase-%d", k)
			c := script(text)
			c.Name, c.VolumeMounts[1].Name = ph.Container, "output-"+ph.Container
			p.Spec.Containers = append(p.Spec.Containers, c)
			p.Spec.Volumes = append(p.Spec.Volumes,
				corev1.Volume{Name: c.VolumeMounts[1].Name,
					VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
			p.Sync = append(p.Sync, c.Name)
		}
		p.Phases = append(p.Phases, ph)
	}
	return r
}

// began returns the started containers of an instance, by name.
func (s *session) began(name string) map[string]op.InstanceStart {
	s.sink.mu.Lock()
	defer s.sink.mu.Unlock()
	all := map[string]op.InstanceStart{}
	for _, e := range s.sink.starts {
		if e.Instance == name {
			all[e.Container] = e
		}
	}
	return all
}

// testPhases shows that each container runs in its phase and is ended with it, which is no failure, and that
// a container that fails fails its instance.
func testPhases(t *testing.T, s *session) {
	_, w := s.must(s.phasedWorkload("p-0",
		`trap 'echo bye > /output/last; exit 128' TERM; while :; do sleep 0.05; done`,
		`trap '' TERM; echo rude > /output/last; while :; do sleep 0.05; done`,
		`echo quick > /output/last`))
	at := s.clock.Now() + op.Time(200*time.Millisecond)
	if err := s.engine.Release(t.Context(), "main", []string{"p-0"}, at); err != nil {
		t.Fatal(err)
	}
	end := s.sink.waitEnd("p-0")
	if !end.OK || len(end.Containers) != 3 {
		t.Errorf("ended %+v, want OK and three containers", end)
	}
	for k, name := range []string{"main", "main-phase-1", "main-phase-2"} {
		e, ok := s.began("p-0")[name]
		want := at + op.Time(time.Duration(k)*phaseLength)
		if skew := time.Duration(e.At - want); !ok || e.Phase != k || e.Intended != want ||
			skew < -time.Duration(e.Err) || skew > time.Second {
			t.Errorf("%s: began %+v, want phase %d at %d", name, e, k, want)
		}
		if got, want := s.text("p-0/"+name+"/output/last"), []string{"bye", "rude", "quick"}[k]; got != want {
			t.Errorf("%s: output %q, want %q", name, got, want)
		}
		i := slices.IndexFunc(end.Containers, func(c op.ContainerEnd) bool { return c.Name == name })
		if i < 0 || end.Containers[i].PhaseOver != (k < 2) {
			t.Errorf("%s: ended %+v", name, end.Containers)
		}
	}
	s.must(engine.Request{Kind: op.Delete, Target: w})

	_, w = s.must(s.phasedWorkload("f-0", `echo broken >&2; exit 3`, `sleep 1000`, `sleep 1000`))
	at = s.clock.Now()
	if err := s.engine.Release(t.Context(), "main", []string{"f-0"}, at); err != nil {
		t.Fatal(err)
	}
	end = s.sink.waitEnd("f-0")
	i := slices.IndexFunc(end.Containers, func(c op.ContainerEnd) bool { return c.ExitCode == 3 })
	if end.OK || i < 0 || end.Containers[i].PhaseOver || !strings.Contains(end.Containers[i].Message, "broken") {
		t.Errorf("ended %+v, want a failure of the first phase", end)
	}
	if late := time.Duration(end.At - at); late > 2*phaseLength {
		t.Errorf("it ended %v after the barrier: the phases after a failure were waited for", late)
	}
	s.must(engine.Request{Kind: op.Delete, Target: w})
}

// testPhasesAfterRestart shows that a replaced pod continues with the current phase.
func testPhasesAfterRestart(t *testing.T, s *session) {
	_, w := s.must(s.phasedWorkload("a-0", count, count, count))
	at := s.clock.Now()
	if err := s.engine.Release(t.Context(), "main", []string{"a-0"}, at); err != nil {
		t.Fatal(err)
	}
	s.eventually("the last phase", func() bool { return s.text("a-0/main-phase-2/output/starts") != "" })
	o, _ := s.must(engine.Request{Kind: op.Kill, Target: w, Kill: &engine.Kill{Signal: "SIGKILL"}})
	s.inOrder(o, op.Signalled, op.Gone, op.Replaced, op.FirstWrite)
	s.eventually("the last phase again", func() bool { return s.text("a-0/main-phase-2~1/output/starts") != "" })
	o, _ = s.must(engine.Request{Kind: op.Kill, Target: w,
		Kill: &engine.Kill{Signal: "SIGSTOP", StopFor: 100 * time.Millisecond}})
	s.inOrder(o, op.Signalled, op.Resumed, op.FirstWrite)
	if err := s.engine.Stop(t.Context(), []string{"a-0"}, 10*time.Second); err != nil {
		t.Error(err)
	}
	if end := s.sink.waitEnd("a-0"); !end.OK {
		t.Errorf("ended %+v", end)
	}
	began := s.began("a-0")
	for _, over := range []string{"main~1", "main-phase-1~1"} {
		if e, ok := began[over]; ok {
			t.Errorf("%s began again: %+v", over, e)
		}
	}
	again := began["main-phase-2~1"]
	if skew := time.Duration(again.At - again.Intended); again.Phase != 2 ||
		again.Intended < at+op.Time(2*phaseLength) || skew > time.Second {
		t.Errorf("the last phase began again %+v, which it was to be at once", again)
	}
	s.must(engine.Request{Kind: op.Delete, Target: w})
}
