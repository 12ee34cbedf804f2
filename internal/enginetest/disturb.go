package enginetest

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// count is a command that notes on its volume that it has started, writes how
// often that was to its output, and goes on until it is ended.
const count = `trap 'exit 0' TERM; echo x >> /data/starts; wc -l < /data/starts > /output/starts; while :; do sleep 0.05; done`

// counting makes a workload that counts its starts, lets it go, and waits until
// the first is noted.
func (s *session) counting(name string) engine.Object {
	s.t.Helper()
	_, w := s.must(s.workload(name, script(count), waits("main")))
	if err := s.engine.Release(s.t.Context(), "main", []string{name}, s.clock.Now()); err != nil {
		s.t.Fatal(err)
	}
	s.eventually("the first start", func() bool { return s.text(name+"/main/output/starts") == "1" })
	return w
}

// text is an output so far.
func (s *session) text(key string) string {
	s.sink.mu.Lock()
	defer s.sink.mu.Unlock()
	return strings.TrimSpace(string(s.sink.output[key]))
}

func (s *session) eventually(what string, done func() bool) {
	s.t.Helper()
	for end := time.Now().Add(s.sink.patience); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			s.sink.mu.Lock()
			defer s.sink.mu.Unlock()
			s.t.Fatalf("%s: not within %v; outputs %v", what, s.sink.patience, keys(s.sink.output))
		}
	}
}

// madeAgain checks that a workload which was ended has been made again as it
// was, with its volume, and that its end is that of the last.
func (s *session) madeAgain(name string, starts ...string) {
	s.t.Helper()
	s.eventually("the second start", func() bool { return slices.Contains(starts, s.text(name+"/main~1/output/starts")) })
	s.sink.mu.Lock()
	_, ended := s.sink.ends[name]
	began := slices.ContainsFunc(s.sink.starts, func(e op.InstanceStart) bool { return e.Instance == name && e.Container == "main~1" })
	s.sink.mu.Unlock()
	if ended {
		s.t.Errorf("%s has ended, though it was made again", name)
	}
	if !began {
		s.t.Errorf("the second start of %s was not reported", name)
	}
	if err := s.engine.Stop(s.t.Context(), []string{name}, 10*time.Second); err != nil {
		s.t.Error(err)
	}
	end := s.sink.await(name)
	var first, second bool
	for _, c := range end.Containers {
		first = first || c.Name == "main" && c.Replaced
		second = second || c.Name == "main~1" && !c.Replaced && c.ExitCode == 0
	}
	if !end.OK || !first || !second {
		s.t.Errorf("ended %+v, want OK, main replaced and main~1 ended by itself", end)
	}
	if got := s.text(name + "/main/output/starts"); got != "1" {
		s.t.Errorf("the first one's output is %q by now", got)
	}
}

// testKill: what is killed by a signal is made again, and that is no end.
func testKill(t *testing.T, s *session) {
	w := s.counting("k-0")
	o, _ := s.must(engine.Request{Kill: &engine.Kill{Target: w, Signal: "SIGKILL"}})
	s.inOrder(o, op.Signalled, op.Gone, op.Replaced, op.FirstWrite)
	s.madeAgain("k-0", "2")
	_, _, err := s.do(t.Context(), engine.Request{Kill: &engine.Kill{Target: w, Signal: "SIGKILL"}})
	var coded *engine.Error
	if !errors.As(err, &coded) || coded.Code != "Ended" {
		t.Errorf("killing what has ended: %v, want Ended", err)
	}
	s.must(engine.Request{Delete: &engine.Delete{Target: w}})
}

// testPodDeletion: as a kill, with SIGTERM and a grace.
func testPodDeletion(_ *testing.T, s *session) {
	w := s.counting("k-0")
	o, _ := s.must(engine.Request{Kill: &engine.Kill{Target: w, Grace: 10 * time.Second}})
	s.inOrder(o, op.Signalled, op.Gone, op.Replaced, op.FirstWrite)
	s.madeAgain("k-0", "2", s.afterDetach()) // some engines detach then
	s.must(engine.Request{Delete: &engine.Delete{Target: w}})
}

// afterDetach is what a pod counts that is made again after its volume was
// detached.
func (s *session) afterDetach() string {
	if s.target.Forgets {
		return "1"
	}
	return "2"
}

// testHang: SIGSTOP holds the processes for as long as it is to, and no longer.
func testHang(t *testing.T, s *session) {
	const hang = time.Second
	_, w := s.must(s.workload("h-0", script(`trap 'exit 0' TERM; while :; do date +%s%N >> /output/ticks; sleep 0.02; done`)))
	s.eventually("ticks", func() bool { return strings.Count(s.text("h-0/main/output/ticks"), "\n") > 5 })
	o, _ := s.must(engine.Request{Kill: &engine.Kill{Target: w, Signal: "SIGSTOP", StopFor: hang}})
	s.inOrder(o, op.Signalled, op.Resumed, op.FirstWrite)
	if d := time.Duration(o.Milestone(op.Resumed) - o.Milestone(op.Signalled)); d < hang {
		t.Errorf("the hang took %v, want %v", d, hang)
	}
	after := strings.Count(s.text("h-0/main/output/ticks"), "\n")
	s.eventually("more ticks", func() bool { return strings.Count(s.text("h-0/main/output/ticks"), "\n") > after+5 })
	if err := s.engine.Stop(t.Context(), []string{"h-0"}, 10*time.Second); err != nil {
		t.Error(err)
	}
	if end := s.sink.await("h-0"); !end.OK {
		t.Errorf("ended %+v", end)
	}
	var last, longest int64
	for line := range strings.Lines(s.text("h-0/main/output/ticks")) {
		at, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err != nil {
			continue // no date has nanoseconds in some tools' images
		}
		if last > 0 {
			longest = max(longest, at-last)
		}
		last = at
	}
	if d := time.Duration(longest); d < hang*9/10 || d > 3*hang {
		t.Errorf("the longest time without a tick was %v, want about %v", d, hang)
	}
}

// testReattach: a volume is detached and attached again, one that nobody uses
// and one of a workload.
func testReattach(t *testing.T, s *session) {
	v := s.volume("v-0", true)
	o, _ := s.must(engine.Request{Reattach: &engine.Reattach{Target: v, Node: engine.NodeAny}})
	s.inOrder(o, op.Detached, op.Attached, op.Published, op.FirstWrite)
	loose := s.volume("l-0", false)
	_, _, err := s.do(t.Context(), engine.Request{Reattach: &engine.Reattach{Target: loose, Node: engine.NodeAny}})
	var coded *engine.Error
	if !errors.As(err, &coded) || coded.Code != "FailedPrecondition" {
		t.Errorf("reattaching what is not attached: %v, want FailedPrecondition", err)
	}

	w := s.counting("r-0")
	of := engine.Object{Kind: engine.VolumeObject, Name: "r-0-data", Owner: "r-0", Action: "w"}
	o, _ = s.must(engine.Request{Reattach: &engine.Reattach{Target: of, Node: engine.NodeSame}})
	// A pod that has ended lets go of its volume, and may be there a while longer.
	s.inOrder(o, op.Gone, op.Attached)
	s.inOrder(o, op.Detached, op.Attached, op.Published, op.FirstWrite)
	s.madeAgain("r-0", s.afterDetach())
	s.must(engine.Request{Delete: &engine.Delete{Target: w}})
	s.must(engine.Request{Delete: &engine.Delete{Target: v}})
}

// twoPods makes a second pod like the first, on the same volume.
func (s *session) twoPods(second corev1.Container) func(*engine.Workload) {
	return func(w *engine.Workload) {
		w.Claims[0].Spec.AccessModes = []corev1.PersistentVolumeAccessMode{cmp.Or(s.target.Shared, corev1.ReadWriteMany)}
		first := &w.Pods[0]
		p := engine.Pod{Pod: *first.Pod.DeepCopy(), Outputs: first.Outputs, Sync: first.Sync}
		first.Name, p.Name = first.Name+"-a", first.Name+"-b"
		p.Spec.Containers = []corev1.Container{second}
		w.Pods = append(w.Pods, p)
	}
}

// testRollout: the pods of an instance are replaced, each once.
func testRollout(t *testing.T, s *session) {
	_, w := s.must(s.workload("r-0", script(count), s.twoPods(script(count))))
	s.eventually("both starts", func() bool {
		return s.text("r-0/a.main/output/starts") != "" && s.text("r-0/b.main/output/starts") != ""
	})
	o, _ := s.must(engine.Request{Rollout: &engine.Rollout{Target: w}})
	s.inOrder(o, op.Gone+"/r-0-a", op.Replaced+"/r-0-a", op.Gone+"/r-0-b", op.Replaced+"/r-0-b")
	s.eventually("both again", func() bool {
		return s.text("r-0/a.main~1/output/starts") != "" && s.text("r-0/b.main~1/output/starts") != ""
	})
	if err := s.engine.Stop(t.Context(), []string{"r-0"}, 10*time.Second); err != nil {
		t.Error(err)
	}
	if end := s.sink.await("r-0"); !end.OK || len(end.Containers) != 4 {
		t.Errorf("ended %+v, want OK and four containers", end)
	}
}

// testShared: several pods use one volume at the same time.
func testShared(t *testing.T, s *session) {
	_, w := s.must(s.workload("s-0", script("echo from-a > /data/a; until [ -e /data/b ]; do sleep 0.02; done"),
		s.twoPods(script("until [ -s /data/a ]; do sleep 0.02; done; cat /data/a > /output/seen; echo from-b > /data/b"))))
	if end := s.sink.await("s-0"); !end.OK {
		t.Errorf("ended %+v", end)
	}
	if got := s.text("s-0/b.main/output/seen"); got != "from-a" {
		t.Errorf("the second pod saw %q", got)
	}
	s.must(engine.Request{Delete: &engine.Delete{Target: w}})
}
