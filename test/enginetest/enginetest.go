// Package enginetest is the conformance suite of engines: the behaviour that the loop relies on. An engine's
// own tests call Run.
package enginetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
)

// Target is an engine under test with a StorageClass to test it on.
type Target struct {
	New           func(t *testing.T) engine.Engine
	StorageClass  storagev1.StorageClass
	SnapshotClass engine.SnapshotClass
	// Dead returns an engine that is not open, for the clean-up after a dead run with that identity; nil:
	// New.
	Dead func(t *testing.T, own owned.Identity) engine.Engine
	// Storage is the directory in which the engine's drivers keep volumes, if any.
	Storage string
	// Leaks lists what a run has left on the machine; called after Close.
	Leaks func(t *testing.T) []string
	// Skip names the parts that the driver under test does not support, with the reason.
	Skip map[string]string
	Size string // of volumes; "64Mi" when empty
	// Unobserved are milestones that the platform does not expose.
	Unobserved map[string]bool
	// Modification are parameters that the driver can change; may be empty if the platform allows that.
	Modification map[string]string
	// NeedsAll says that the engine checks only the needs of the session, so that the session must name all
	// of them.
	NeedsAll bool
	// Shared is the access mode by which two pods share a volume; ReadWriteMany when empty.
	Shared corev1.PersistentVolumeAccessMode
	// DetachLosesData says that a volume loses its data when it is detached.
	DetachLosesData bool
	// Timeout is how long an instance may take to end; 30 s when 0.
	Timeout time.Duration

	live time.Duration // of the session
}

// Run runs the whole suite.
func Run(t *testing.T, target Target) {
	if target.Dead == nil {
		target.Dead = func(t *testing.T, _ owned.Identity) engine.Engine { return target.New(t) }
	}
	if target.Size == "" {
		target.Size = "64Mi"
	}
	parts := []struct {
		name string
		test func(*testing.T, *session)
	}{
		{"loop", testLoop},
		{"volume", testVolume},
		{"snapshot", testSnapshot},
		{"clone", testClone},
		{"resize", testResize},
		{"group", testGroup},
		{"modify", testModify},
		{"errors", testErrors},
		{"cancel", testCancel},
		{"workload", testWorkload},
		{"output without end", testOutputLimit},
		{"exits", testExits},
		{"barrier", testBarrier},
		{"stop", testStop},
		{"parser", testParser},
		{"kill", testKill},
		{"pod deletion", testPodDeletion},
		{"hang", testHang},
		{"reattach", testReattach},
		{"rollout", testRollout},
		{"shared", testShared},
		{"phases", testPhases},
		{"phases made again", testPhasesAfterRestart},
		{"dead run", testDeadRun},
	}
	for _, p := range parts {
		t.Run(p.name, func(t *testing.T) {
			if why := target.Skip[p.name]; why != "" {
				t.Skip(why)
			}
			s := open(t, target)
			p.test(t, s)
			s.end()
		})
	}
	target.live = 200 * time.Millisecond
	t.Run("live", func(t *testing.T) {
		if why := target.Skip["live"]; why != "" {
			t.Skip(why)
		}
		s := open(t, target)
		testLive(t, s)
		s.end()
	})
}

// maxOutput is the sessions' limit of an instance's output.
const maxOutput = 4 << 20

// session is one open engine with its reports.
type session struct {
	t       *testing.T
	target  Target
	engine  engine.Engine
	clock   op.Clock
	ledger  *Ledger
	sink    *sink
	dir     string
	n       int
	closed  bool
	current engine.Session
}

func open(t *testing.T, target Target) *session {
	t.Helper()
	s := &session{t: t, target: target, engine: target.New(t), clock: op.NewClock(), ledger: &Ledger{},
		sink: newSink(t, target.Timeout), dir: t.TempDir()}
	kinds := map[op.Kind]bool{op.Create: true, op.Delete: true}
	features := map[string]bool{}
	if target.NeedsAll {
		kinds[op.Snapshot], kinds[op.Restore] = true, true
		features["groupSnapshot"] = target.Skip["group"] == ""
	}
	s.current = engine.Session{RunID: fmt.Sprintf("t%x", time.Now().UnixNano()&0xffffffff), Clock: s.clock,
		Ledger: s.ledger, Sink: s.sink, Dir: s.dir, MaxOutput: maxOutput, Live: target.live,
		Needs:           engine.Needs{Kinds: kinds, Features: features},
		Queue:           engine.Queue{Policy: v1alpha1.QueueShare}, // the suite's part loop is a run of its own beside it
		StorageClasses:  map[string]storagev1.StorageClass{target.StorageClass.Name: target.StorageClass},
		SnapshotClasses: map[string]engine.SnapshotClass{target.SnapshotClass.Name: target.SnapshotClass}}
	s.current.Identity = owned.New(s.current.RunID)
	s.current.Identity.Scratch, s.current.Identity.Storage = s.dir, target.Storage
	if err := s.engine.Open(t.Context(), s.current); err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = s.finish() })
	return s
}

// finish tears down and closes, once.
func (s *session) finish() error {
	if s.closed {
		return nil
	}
	s.closed = true
	ctx := context.WithoutCancel(s.t.Context())
	return errors.Join(s.engine.Teardown(ctx, s.ledger), s.engine.Close())
}

// end checks that nothing is left.
func (s *session) end() {
	s.t.Helper()
	if err := s.finish(); err != nil {
		s.t.Errorf("teardown: %v", err)
	}
	if open := s.ledger.Open(); len(open) > 0 {
		s.t.Errorf("the ledger still lists %v", open)
	}
	if left := s.target.Leaks(s.t); len(left) > 0 {
		s.t.Errorf("left behind: %s", strings.Join(left, ", "))
	}
}

// do executes a request as the loop does.
func (s *session) do(ctx context.Context, r engine.Request) (op.Op, []engine.Object, error) {
	s.n++
	r.ID = int64(s.n)
	if r.Name == "" {
		r.Name = fmt.Sprintf("obj-%d", s.n)
	}
	if p, ok := s.engine.(engine.Preparer); ok {
		if err := p.Prepare(r); err != nil {
			return op.Op{}, nil, err
		}
	}
	tr := op.NewTrace(s.clock)
	o := op.Op{Started: s.clock.Now()}
	made, err := s.engine.Do(ctx, Complete(r), tr)
	o.Ended = s.clock.Now()
	tr.Fill(&o)
	CheckMilestones(s.t, o)
	return o, made, err
}

// CheckMilestones fails the test if an op has a milestone before its start: it would belong to another op, or
// to an earlier object of the same name. An op that was not started has none but Unblocked.
func CheckMilestones(t *testing.T, o op.Op) {
	t.Helper()
	for _, m := range o.Milestones {
		if m.Name != op.Unblocked && (!o.Started.Known() || m.At+op.Time(m.Err) < o.Started) {
			t.Errorf("%s %s, started at %d, has milestone %s of before: %d ± %d (%s)",
				&o, o.Target, o.Started, m.Name, m.At, m.Err, m.Source)
		}
	}
}

// must is do, and ends the test on failure.
func (s *session) must(r engine.Request) (op.Op, engine.Object) {
	s.t.Helper()
	o, made, err := s.do(s.t.Context(), r)
	if err != nil {
		s.t.Fatalf("%s: %v", r.Name, err)
	}
	if len(made) == 0 {
		return o, engine.Object{}
	}
	return o, made[0]
}

func (s *session) claim(name string) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &s.target.StorageClass.Name,
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceStorage: resource.MustParse(s.target.Size)}},
		},
	}
}

func (s *session) volume(name string, attach bool) engine.Object {
	s.t.Helper()
	_, v := s.must(engine.Request{Name: name, Volume: &engine.Volume{Claim: s.claim(name), Attach: attach}})
	return v
}

// inOrder checks that the op has these milestones in order, within its own span.
func (s *session) inOrder(o op.Op, names ...string) {
	s.t.Helper()
	at := o.Started
	for _, n := range names {
		if s.target.Unobserved[n] {
			continue
		}
		m := o.Milestone(n)
		if !m.Known() {
			s.t.Errorf("no milestone %s among %v", n, o.Milestones)
			continue
		}
		// Two clocks may disagree by the error that each states.
		if slack := op.Time(errorOf(o, n)); m < at-slack || m > o.Ended+slack {
			s.t.Errorf("milestone %s at %d ± %d is not between %d and %d", n, m, slack, at, o.Ended)
		}
		at = max(at, m)
	}
}

// errorOf is the largest ± error of the op's milestones if the named one has an error, else 0.
func errorOf(o op.Op, name string) int64 {
	largest, own := int64(0), int64(0)
	for _, m := range o.Milestones {
		largest = max(largest, m.Err)
		if m.Name == name {
			own = m.Err
		}
	}
	if own == 0 && largest == 0 {
		return 0
	}
	return largest + own
}

// Ledger is a ledger in memory. The zero Ledger is empty; it is safe for concurrent use.
type Ledger struct {
	mu      sync.Mutex
	entries []op.LedgerEntry
}

// Add adds e, or replaces the entry of the same kind and name.
func (l *Ledger) Add(e op.LedgerEntry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, x := range l.entries {
		if x.Kind == e.Kind && x.Name == e.Name {
			l.entries[i] = e
			return nil
		}
	}
	l.entries = append(l.entries, e)
	return nil
}

// Note is Add.
func (l *Ledger) Note(e op.LedgerEntry) error { return l.Add(e) }

// Done removes an entry.
func (l *Ledger) Done(kind, name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = slices.DeleteFunc(l.entries, func(e op.LedgerEntry) bool { return e.Kind == kind && e.Name == name })
	return nil
}

// Open lists the entries that are not done.
func (l *Ledger) Open() []op.LedgerEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries)
}

// sink records an engine's reports.
type sink struct {
	engine.DiscardSink
	t       *testing.T
	timeout time.Duration
	mu      sync.Mutex
	starts  []op.InstanceStart
	ends    map[string]op.InstanceEnd
	ended   map[string]chan struct{}
	output  map[string][]byte
	cut     map[string]int64
	canary  map[string][]op.CanaryIO
	samples []op.Sample
	opened  []op.Time // of reports of open I/Os
	lost    bool
}

func newSink(t *testing.T, patience time.Duration) *sink {
	if patience == 0 {
		patience = 30 * time.Second
	}
	return &sink{t: t, timeout: patience, ends: map[string]op.InstanceEnd{}, ended: map[string]chan struct{}{},
		output: map[string][]byte{}, cut: map[string]int64{}, canary: map[string][]op.CanaryIO{}}
}

func (s *sink) Started(e op.InstanceStart) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starts = append(s.starts, e)
}

func (s *sink) channel(name string) chan struct{} {
	if s.ended[name] == nil {
		s.ended[name] = make(chan struct{})
	}
	return s.ended[name]
}

func (s *sink) Ended(e op.InstanceEnd) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, twice := s.ends[e.Instance]; twice {
		s.t.Errorf("%s ended twice", e.Instance)
		return
	}
	s.ends[e.Instance] = e
	close(s.channel(e.Instance))
}

// waitEnd waits for an instance's end.
func (s *sink) waitEnd(name string) op.InstanceEnd {
	s.t.Helper()
	s.mu.Lock()
	c := s.channel(name)
	s.mu.Unlock()
	select {
	case <-c:
	case <-time.After(s.timeout):
		s.t.Fatalf("%s did not end", name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ends[name]
}

func (s *sink) Canary(instance, _ string, ios []op.CanaryIO) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.canary[instance] = append(s.canary[instance], ios...)
}

func (s *sink) Sample(x op.Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples = append(s.samples, x)
}

// CanaryOpen records the report of a session with Live.
func (s *sink) CanaryOpen(instance, _ string, open []op.CanaryIO, at op.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened = append(s.opened, at)
	for _, io := range open {
		if instance != "w-0" || io.Intended > at {
			s.t.Errorf("%s at %d: open I/O %+v", instance, at, io)
		}
	}
}

func (s *sink) Output(instance, container, file string, data []byte) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := instance + "/" + container + "/" + strings.TrimPrefix(file, "/")
	s.output[key] = append(s.output[key], data...)
	return len(data)
}

func (s *sink) Cut(instance, container, file string, discarded int64, final bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if final {
		s.cut[instance+"/"+container+"/"+strings.TrimPrefix(file, "/")] = discarded
	}
}

func (s *sink) Log(source, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.lost {
		s.t.Logf("%s: %s", source, line)
	}
}

func (s *sink) Failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.lost {
		s.t.Errorf("platform failed: %v", err)
	}
}

// ignoreLoss makes the loss of the platform no error from now on.
func (s *sink) ignoreLoss() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = true
}
