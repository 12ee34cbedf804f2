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

// count is a command that records its start on its volume, writes the number of starts to its output, and
// runs until it is ended.
const count = `trap 'exit 0' TERM; echo x >> /data/starts; wc -l < /data/starts > /output/starts
while :; do sleep 0.05; done`

// startCounter creates a workload that counts its starts, releases it, and waits for the first start.
func (s *session) startCounter(name string) engine.Object {
	s.t.Helper()
	_, w := s.must(s.workload(name, script(count), waits("main")))
	if err := s.engine.Release(s.t.Context(), "main", []string{name}, s.clock.Now()); err != nil {
		s.t.Fatal(err)
	}
	s.eventually("the first start", func() bool { return s.text(name+"/main/output/starts") == "1" })
	return w
}

// text returns an output so far.
func (s *session) text(key string) string {
	s.sink.mu.Lock()
	defer s.sink.mu.Unlock()
	return strings.TrimSpace(string(s.sink.output[key]))
}

func (s *session) eventually(what string, done func() bool) {
	s.t.Helper()
	for end := time.Now().Add(s.sink.timeout); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			s.sink.mu.Lock()
			defer s.sink.mu.Unlock()
			s.t.Fatalf("%s: not within %v; outputs %v", what, s.sink.timeout, keys(s.sink.output))
		}
	}
}

// checkReplaced checks that a workload's pod was replaced, with its volume, and that the instance's end is
// that of the last pod.
func (s *session) checkReplaced(name string, starts ...string) {
	s.t.Helper()
	s.eventually("the second start", func() bool {
		return slices.Contains(starts,
			s.text(name+"/main~1/output/starts"))
	})
	s.sink.mu.Lock()
	_, ended := s.sink.ends[name]
	began := slices.ContainsFunc(s.sink.starts, func(e op.InstanceStart) bool {
		return e.Instance == name &&
			e.Container == "main~1"
	})
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
	end := s.sink.waitEnd(name)
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

// testKill shows that a pod killed by a signal is replaced, which does not end its instance.
func testKill(t *testing.T, s *session) {
	w := s.startCounter("k-0")
	o, _ := s.must(engine.Request{Kind: op.Kill, Target: w, Kill: &engine.Kill{Signal: "SIGKILL"}})
	s.inOrder(o, op.Signalled, op.Gone, op.Replaced, op.FirstWrite)
	s.checkReplaced("k-0", "2")
	_, _, err := s.do(t.Context(), engine.Request{Kind: op.Kill, Target: w, Kill: &engine.Kill{Signal: "SIGKILL"}})
	var coded *engine.Error
	if !errors.As(err, &coded) || coded.Code != "Ended" {
		t.Errorf("killing what has ended: %v, want Ended", err)
	}
	s.must(engine.Request{Kind: op.Delete, Target: w})
}

// testPodDeletion is testKill with SIGTERM and a grace period.
func testPodDeletion(_ *testing.T, s *session) {
	w := s.startCounter("k-0")
	o, _ := s.must(engine.Request{Kind: op.Kill, Target: w, Kill: &engine.Kill{Grace: 10 * time.Second}})
	s.inOrder(o, op.Signalled, op.Gone, op.Replaced, op.FirstWrite)
	s.checkReplaced("k-0", "2", s.startsAfterDetach()) // some engines detach then
	s.must(engine.Request{Kind: op.Delete, Target: w})
}

// startsAfterDetach is the count of a replaced pod after its volume was detached.
func (s *session) startsAfterDetach() string {
	if s.target.DetachLosesData {
		return "1"
	}
	return "2"
}

// testHang shows that SIGSTOP stops the processes for the requested time.
func testHang(t *testing.T, s *session) {
	const hang = time.Second
	_, w := s.must(s.workload("h-0",
		script(`trap 'exit 0' TERM; while :; do date +%s%N >> /output/ticks; sleep 0.02; done`)))
	s.eventually("ticks", func() bool { return strings.Count(s.text("h-0/main/output/ticks"), "\n") > 5 })
	o, _ := s.must(engine.Request{Kind: op.Kill, Target: w, Kill: &engine.Kill{Signal: "SIGSTOP", StopFor: hang}})
	s.inOrder(o, op.Signalled, op.Resumed, op.FirstWrite)
	if d := time.Duration(o.Milestone(op.Resumed) - o.Milestone(op.Signalled)); d < hang {
		t.Errorf("the hang took %v, want %v", d, hang)
	}
	after := strings.Count(s.text("h-0/main/output/ticks"), "\n")
	s.eventually("more ticks", func() bool { return strings.Count(s.text("h-0/main/output/ticks"), "\n") > after+5 })
	if err := s.engine.Stop(t.Context(), []string{"h-0"}, 10*time.Second); err != nil {
		t.Error(err)
	}
	if end := s.sink.waitEnd("h-0"); !end.OK {
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

// testReattach detaches and attaches an unused volume and one of a workload.
func testReattach(t *testing.T, s *session) {
	v := s.volume("v-0", true)
	o, _ := s.must(engine.Request{Kind: op.Reattach, Target: v, Reattach: &engine.Reattach{Node: engine.NodeAny}})
	s.inOrder(o, op.Detached, op.Attached, op.Published, op.FirstWrite)
	loose := s.volume("l-0", false)
	_, _, err := s.do(t.Context(), engine.Request{Kind: op.Reattach, Target: loose,
		Reattach: &engine.Reattach{Node: engine.NodeAny}})
	var coded *engine.Error
	if !errors.As(err, &coded) || coded.Code != "FailedPrecondition" {
		t.Errorf("reattaching what is not attached: %v, want FailedPrecondition", err)
	}

	w := s.startCounter("r-0")
	of := engine.Object{Kind: engine.VolumeObject, Name: "r-0-data", Owner: "r-0", Action: "w"}
	o, _ = s.must(engine.Request{Kind: op.Reattach, Target: of, Reattach: &engine.Reattach{Node: engine.NodeSame}})
	// A pod that has ended lets go of its volume, and may be there a while longer.
	s.inOrder(o, op.Gone, op.Attached)
	s.inOrder(o, op.Detached, op.Attached, op.Published, op.FirstWrite)
	s.checkReplaced("r-0", s.startsAfterDetach())
	s.must(engine.Request{Kind: op.Delete, Target: w})
	s.must(engine.Request{Kind: op.Delete, Target: v})
}

// twoPods adds a second pod on the same volume.
func (s *session) twoPods(second corev1.Container) func(*engine.Workload) {
	return func(w *engine.Workload) {
		w.Claims[0].Spec.AccessModes = []corev1.PersistentVolumeAccessMode{cmp.Or(s.target.Shared,
			corev1.ReadWriteMany)}
		first := &w.Pods[0]
		p := engine.Pod{Pod: *first.Pod.DeepCopy(), Outputs: first.Outputs, Sync: first.Sync}
		first.Name, p.Name = first.Name+"-a", first.Name+"-b"
		p.Spec.Containers = []corev1.Container{second}
		w.Pods = append(w.Pods, p)
	}
}

// testRollout shows that each pod of an instance is replaced once.
func testRollout(t *testing.T, s *session) {
	_, w := s.must(s.workload("r-0", script(count), s.twoPods(script(count))))
	s.eventually("both starts", func() bool {
		return s.text("r-0/a.main/output/starts") != "" && s.text("r-0/b.main/output/starts") != ""
	})
	o, _ := s.must(engine.Request{Kind: op.Rollout, Target: w, Rollout: &engine.Rollout{}})
	s.inOrder(o, op.Gone+"/r-0-a", op.Replaced+"/r-0-a", op.Gone+"/r-0-b", op.Replaced+"/r-0-b")
	s.eventually("both again", func() bool {
		return s.text("r-0/a.main~1/output/starts") != "" && s.text("r-0/b.main~1/output/starts") != ""
	})
	if err := s.engine.Stop(t.Context(), []string{"r-0"}, 10*time.Second); err != nil {
		t.Error(err)
	}
	if end := s.sink.waitEnd("r-0"); !end.OK || len(end.Containers) != 4 {
		t.Errorf("ended %+v, want OK and four containers", end)
	}
}

// testShared shows that several pods can use one volume concurrently.
func testShared(t *testing.T, s *session) {
	_, w := s.must(s.workload("s-0", script("echo from-a > /data/a; until [ -e /data/b ]; do sleep 0.02; done"),
		s.twoPods(script("until [ -s /data/a ]; do sleep 0.02; done; cat /data/a > /output/seen; echo from-b > /data/b"))))
	if end := s.sink.waitEnd("s-0"); !end.OK {
		t.Errorf("ended %+v", end)
	}
	if got := s.text("s-0/b.main/output/seen"); got != "from-a" {
		t.Errorf("the second pod saw %q", got)
	}
	s.must(engine.Request{Kind: op.Delete, Target: w})
}
