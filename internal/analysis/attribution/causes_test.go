package attribution

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
)

// seeds of each cause, and how many of them must rank it first.
const (
	seeds = 50
	least = 45 // 9 of 10
)

// injections are causes, one at a time.
var injections = []struct {
	name     string
	inject   func(*simulation)
	observed string // the component with a proxy
	unseen   string // and without; empty: it cannot be named
	kind     Kind
	evidence []string
}{
	{"attacher at 5 requests per second", func(s *simulation) { s.attacherGap = 200 * time.Millisecond },
		Attacher, AttacherOrDriver, RateLimited, []string{"once in 2", "csi-attacher runs with --kube-api-qps=5"}},
	{"provisioner with one worker", func(s *simulation) { s.provisioners, s.createVolume = 1, 250*time.Millisecond },
		Provisioner, ProvisionerOrDriver, OneAtATime,
		[]string{"no two calls of CreateVolume", "csi-provisioner runs with --worker-threads=1"}},
	{"slow RPC", func(s *simulation) { s.createVolume = 3 * time.Second }, Driver, ProvisionerOrDriver, Slow,
		[]string{"CreateVolume takes 3"}},
	{"scheduler wait", func(s *simulation) { s.scheduler = 3 * time.Second }, Scheduler, Scheduler, Slow,
		[]string{"the wait for scheduled takes 3"}},
	{"slow mkfs", func(s *simulation) { s.mkfs = 3 * time.Second }, Formatting, "", Slow, []string{"mkfs takes 3"}},
	{"busy node", func(s *simulation) { s.nodeFactor, s.busyFor = 6, 9*time.Second }, Busy, Busy, BusyMachine,
		[]string{"stress 1.9 of 2 CPUs"}},
}

// TestInjected injects one cause at a time, and wants it ranked first, with its evidence.
func TestInjected(t *testing.T) {
	t.Parallel()
	for _, x := range injections {
		for _, arrivals := range []float64{10, 0} {
			for _, observed := range []bool{true, false} {
				want := map[bool]string{true: x.observed, false: x.unseen}[observed]
				if want == "" {
					continue
				}
				t.Run(fmt.Sprintf("%s, %g per second, observed %t", x.name, arrivals, observed), func(t *testing.T) {
					first, says := 0, 0
					var last string
					for seed := range uint64(seeds) {
						s := newSimulation(seed)
						s.observed, s.perSecond = observed, arrivals
						x.inject(s)
						s.run(60)
						found := s.search(seed)
						causes := found.Causes()
						last = found.StandsOut(causes)
						if len(causes) == 0 || causes[0].Component != want || !causes[0].StandsOut {
							continue
						}
						first++
						all := !observed || causes[0].Kind == x.kind
						for _, e := range x.evidence {
							all = all && (!observed || strings.Contains(last, e))
						}
						if all {
							says++
						}
					}
					t.Logf("ranked first in %d of %d, with its evidence in %d; the last: %s", first, seeds, says, last)
					if first < least || says < least {
						t.Errorf("ranked first in %d of %d, with its evidence in %d: want %d", first, seeds, says, least)
					}
				})
			}
		}
	}
}

// TestNothingInjected: none stands out, with all ops at once and with ten per second.
func TestNothingInjected(t *testing.T) {
	t.Parallel()
	for i := range 4 {
		observed, arrivals := i%2 == 0, float64(i/2*10)
		none := 0
		for seed := range uint64(seeds) {
			s := newSimulation(seed)
			s.observed, s.perSecond = observed, arrivals
			s.run(60)
			found := s.search(seed)
			if found.StandsOut(found.Causes()) == "none stands out" {
				none++
			}
		}
		t.Logf("%g per second, observed %t: none stands out in %d of %d", arrivals, observed, none, seeds)
		if none < least {
			t.Errorf("%g per second, observed %t: none stands out in %d of %d", arrivals, observed, none, seeds)
		}
	}
}

// TestEvenArrivals: ops of equal length that begin at even intervals end at even intervals; nothing limits them. In a
// closed loop such intervals are evidence.
func TestEvenArrivals(t *testing.T) {
	t.Parallel()
	for _, closed := range []bool{false, true} {
		s := Search{Context: Context{ClosedLoop: closed}}
		for i := range 40 {
			from := op.Time(i) * op.Time(200*time.Millisecond)
			s.Add(&op.Op{Outcome: op.OK, Intended: from, Started: from, Ended: from + op.Time(5*time.Second), Milestones: []op.Milestone{
				{Name: op.Acked, At: from + 1}, {Name: "CreateVolume.start", At: from + 2},
				{Name: "CreateVolume.end", At: from + op.Time(5*time.Second)}}})
		}
		want := map[bool]Kind{false: Slow, true: RateLimited}[closed]
		if c := s.Causes(); len(c) != 1 || c[0].Kind != want || !c[0].StandsOut {
			t.Errorf("closed loop %t: %+v", closed, c)
		}
	}
}

// TestUnknown: too few ops, or none, are no reason to say that none stands out.
func TestUnknown(t *testing.T) {
	t.Parallel()
	var s Search
	if text := s.StandsOut(s.Causes()); text != "" {
		t.Errorf("without ops: %q", text)
	}
	for range LeastOps - 1 {
		s.Add(&op.Op{Outcome: op.OK, Ended: op.Time(10 * time.Second)})
	}
	s.Add(&op.Op{Outcome: op.Error, Ended: op.Time(time.Hour)})
	if text := s.StandsOut(s.Causes()); !strings.Contains(text, "too few ops to say what stands out (n = 9, want 10)") {
		t.Errorf("%q", text)
	}
	s.Add(&op.Op{Outcome: op.OK, Ended: op.Time(10 * time.Second)})
	if text := s.StandsOut(s.Causes()); !strings.HasPrefix(text, Unknown+" stands out: 100 % of the time [100, 100]") {
		t.Errorf("%q", text)
	}
}

// TestManyOps: what is left out is said.
func TestManyOps(t *testing.T) {
	t.Parallel()
	var s Search
	for i := range maxOps + 5 {
		s.Add(&op.Op{Outcome: op.OK, Intended: op.Time(i), Started: op.Time(i), Ended: op.Time(i + 5)})
	}
	if text := s.StandsOut(s.Causes()); text != "none stands out (of the first 20000 ops; 5 more are left out)" {
		t.Errorf("%q", text)
	}
}

// TestPause: a time that was asked for is no cause.
func TestPause(t *testing.T) {
	t.Parallel()
	var s Search
	for i := range 20 {
		from := op.Time(i) * op.Time(time.Minute)
		s.Add(&op.Op{Kind: op.Kill, Outcome: op.OK, Intended: from, Started: from, Ended: from + op.Time(10*time.Second),
			Milestones: []op.Milestone{{Name: op.Signalled, At: from + 1}, {Name: op.Resumed, At: from + op.Time(10*time.Second)}}})
	}
	if c := s.Causes(); len(c) != 0 {
		t.Errorf("%+v", c)
	}
}

// TestOrdinary: every component that may stand for the driver has the ordinary time of both.
func TestOrdinary(t *testing.T) {
	t.Parallel()
	for known, or := range orDriver {
		if got, want := ordinaryNs(or), ordinaryNs(known)+ordinaryNs(Driver); got != want || ordinaryNs(known) == 0 {
			t.Errorf("%s: %d, want %d", or, got, want)
		}
	}
}
