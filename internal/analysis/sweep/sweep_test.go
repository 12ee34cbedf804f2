package sweep

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/analysis/attribution"
	"github.com/cnsbench/cnsbench/internal/op"
)

func point(label string, level, rate float64, shares ...attribution.Share) Point {
	total := 0.0
	for _, s := range shares {
		total += s.MeanNs
	}
	for i := range shares {
		shares[i].Share = shares[i].MeanNs / total
	}
	return Point{Label: label, Level: level, N: 100, PerMinute: []float64{rate}, Shares: shares}
}

func share(component string, ms float64) attribution.Share {
	return attribution.Share{Component: component, MeanNs: ms * 1e6}
}

// The sentence follows the throughput and what grew, whichever that is.
func TestSentences(t *testing.T) {
	s := Series{Points: []Point{
		point("1", 1, 60, share(attribution.Kubelet, 700), share(attribution.Provisioner, 200),
			share(attribution.Driver, 100)),
		point("10", 10, 540, share(attribution.Kubelet, 750), share(attribution.Provisioner, 260),
			share(attribution.Driver, 100)),
		point("30", 30, 570, share(attribution.Provisioner, 2300), share(attribution.Kubelet, 750),
			share(attribution.Driver, 110)),
		point("70", 70, 575, share(attribution.Scheduler, 4000), share(attribution.Provisioner, 2400),
			share(attribution.Kubelet, 900)),
	}}
	s.Describe("parallelism")
	want := [][]string{
		{"At parallelism 1: 60 a minute", "70 % is kubelet and container runtime", "20 % is csi-provisioner"},
		{"×9 of that at 1 for ×10 at once: it still scales", "csi-provisioner (200 ms → 260 ms, ×1.3)."},
		{"×1.06 of that at 10 for ×3 at once: saturated", "97 % of what was added is csi-provisioner",
			"the limit is a sidecar (csi-provisioner)."},
		{"saturated", "scheduler (0 ns → 4 s): the limit is the scheduler."},
	}
	for i, parts := range want {
		for _, part := range parts {
			if !strings.Contains(s.Points[i].Sentence, part) {
				t.Errorf("%s\n\twant in it: %s", s.Points[i].Sentence, part)
			}
		}
	}
	if strings.Contains(s.Points[1].Sentence, "the limit is") {
		t.Errorf("a limit is named though throughput scales: %s", s.Points[1].Sentence)
	}
}

// Where the driver's time is not known apart the limit may be the driver too, and the
// sentence says how to find out.
func TestSentencesOfUnseenDriver(t *testing.T) {
	for component, want := range map[string]string{
		attribution.ProvisionerOrDriver: "a sidecar (csi-provisioner) or the driver",
		attribution.AttacherOrDriver:    "the attach controller, a sidecar (csi-attacher) or the driver",
		attribution.SnapshotterOrDriver: "a sidecar (csi-snapshotter) or the driver",
		attribution.ResizerOrDriver:     "a sidecar (csi-resizer) or the driver",
		attribution.KubeletOrDriver:     "the node (kubelet and container runtime) or the driver",
		attribution.WorkloadOrDriver:    "the workload itself or the driver",
		attribution.ControllersOrDriver: "the controllers of the objects, their pods or the driver",
	} {
		s := Series{Points: []Point{point("1", 1, 60, share(component, 100)),
			point("10", 10, 61, share(component, 990))}}
		s.Describe("parallelism")
		want = component + " (100 ms → 990 ms, ×9.9): the limit is " + want +
			" (a CSI proxy on the driver's socket tells which)."
		if got := s.Points[1].Sentence; !strings.HasSuffix(got, want) {
			t.Errorf("%s\n\twant at its end: %s", got, want)
		}
	}
}

// A factor that differs between trials has an interval, and where that has room
// for two verdicts the sentence says so.
func TestSentencesOfTrials(t *testing.T) {
	driver := share(attribution.Driver, 100)
	tests := []struct {
		name      string
		at1, at10 []float64
		want      string
	}{
		{"sure", []float64{60, 61, 62}, []float64{598, 600, 610},
			"×9.84 [9.65, 10.2] of that at 1 for ×10 at once: it still scales."},
		{"unsure", []float64{60, 61, 62}, []float64{90, 200, 400},
			"it hardly scales any more (the interval also allows: saturated, and: it still scales)."},
		{"the least is the verdict", []float64{60, 61, 62}, []float64{61, 62, 200},
			": saturated (the interval also allows: it hardly scales any more)."},
		{"the most is the verdict", []float64{60, 61, 62}, []float64{90, 400, 410},
			": it still scales (the interval also allows: saturated)."},
		{"too few", []float64{60, 90}, []float64{300, 600}, "×5.77 of that at 1 for ×10 at once: it still scales."},
		{"once", []float64{60}, []float64{600}, "×10 of that at 1 for ×10 at once: it still scales."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := Series{Points: []Point{point("1", 1, 0, driver), point("10", 10, 0, driver)}}
			s.Points[0].PerMinute, s.Points[1].PerMinute = tt.at1, tt.at10
			s.Describe("parallelism")
			if got := s.Points[1].Sentence; !strings.Contains(got, tt.want) {
				t.Errorf("%s\n\twant in it: %s", got, tt.want)
			}
		})
	}
}

// A rate that asks for more each second is spoken of as such; what was done once
// has no rate, and nothing is made of it.
func TestSentencesOfOtherSeries(t *testing.T) {
	driver := share(attribution.Driver, 100)
	s := Series{Points: []Point{point("10", 10, 600, driver), point("20", 20, 630, driver), point("40", 40, 0, driver)}}
	s.Points[2].PerMinute = nil
	s.Describe("perSecond")
	for i, want := range []string{"At perSecond 10: 600 a minute; ", "630 a minute, ×1.05 of that at 10 for ×2 asked for: saturated.", "At perSecond 40: too few for a rate, without a rate to compare it with."} {
		if got := s.Points[i].Sentence; !strings.Contains(got, want) {
			t.Errorf("%s\n\twant in it: %s", got, want)
		}
	}
}

func TestGather(t *testing.T) {
	const s = op.Time(1e9)
	pod := func(name string, start, scheduled, end op.Time) op.Op {
		return op.Op{Target: name, Intended: start, Started: start, Ended: end, Outcome: op.OK,
			Milestones: []op.Milestone{{Name: op.Scheduled, At: scheduled}, {Name: op.Running, At: end}}}
	}
	ops := []op.Op{
		pod("a", 0, 1*s, 4*s), pod("b", 0, 2*s, 8*s), pod("c", 4*s, 6*s, 12*s),
		{Target: "d", Intended: 4 * s, Started: 4 * s, Ended: 12 * s, Outcome: op.Censored,
			Message: "no room\nin the pool"},
	}
	var g Gather
	g.Trial(ops, 0.25, false, map[string]op.Time{"a": 6 * s})
	p := g.Point(2, "2", 1)
	if p.N != 4 || p.Failed != 1 || len(p.PerMinute) != 1 || p.PerMinute[0] != 15 {
		t.Errorf("n %d, failed %d, per minute %v; want 4, 1, 15", p.N, p.Failed, p.PerMinute)
	}
	if want := "censored: no room"; p.Why != want {
		t.Errorf("failed because of %q, want %q", p.Why, want)
	}
	if last := p.CDF[len(p.CDF)-1]; last.P != 0.75 {
		t.Errorf("the distribution ends at %v: one of four had not ended", last.P)
	}
	at := func(sec int) [3]int {
		i := sec * (instants - 1) / 12
		for op.Time(sec)*s > p.States.At[i] {
			i++
		}
		return [3]int{p.States.Pending[i], p.States.Creating[i], p.States.Running[i]}
	}
	got := [][3]int{at(0), at(1), at(3), at(5), at(7), at(9)}
	want := [][3]int{{2, 0, 0}, {1, 1, 0}, {0, 2, 0}, {2, 1, 1}, {1, 2, 0}, {1, 1, 0}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if statesOf(nil, nil) != nil {
		t.Error("states of nothing")
	}
}

// TestSerialDriver finds how many calls a driver works on at a time, of which many are in progress there: those of a
// simulated driver with workers, called in a closed loop.
func TestSerialDriver(t *testing.T) {
	for workers, want := range map[int]string{1: "100 ms each, 10 a second are those of 1.0 at a time",
		3: "100 ms each, 30 a second are those of 3.0 at a time"} {
		s := Series{}
		for _, parallelism := range []int{1, 30} {
			var g Gather
			ops := closedLoop(parallelism, workers, 100e6, 600)
			g.Trial(ops, float64(len(ops))/(float64(ops[len(ops)-1].Ended)/1e9), true, nil)
			s.Points = append(s.Points, g.Point(float64(parallelism), fmt.Sprint(parallelism), 1))
		}
		s.Describe("parallelism")
		if got := s.Points[1].Sentence; !strings.Contains(got, "the limit is the driver. CreateVolume takes") ||
			!strings.Contains(got, want) {
			t.Errorf("%d workers: %s\n\twant in it: %s", workers, got, want)
		}
	}
}

// closedLoop returns n operations, of which as many as parallelism are in progress, on a first-come first-served driver.
func closedLoop(parallelism, workers int, serviceNs op.Time, n int) (ops []op.Op) {
	free := make([]op.Time, workers)
	ready := make([]op.Time, parallelism)
	for range n {
		slices.Sort(free)
		slices.Sort(ready)
		start := ready[0]
		end := max(start, free[0]) + serviceNs
		free[0], ready[0] = end, end
		ops = append(ops, op.Op{Kind: op.Create, Intended: start, Started: start, Ended: end, Outcome: op.OK,
			Milestones: []op.Milestone{{Name: "CreateVolume.start", At: start}, {Name: "CreateVolume.end", At: end},
				{Name: op.Provisioned, At: end}, {Name: op.Ready, At: end}}})
	}
	return ops
}
