package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/test/bench/scalemodel"
)

// savePoints adds points to the file of -points, if there is one.
func (e *env) savePoints(points []scalemodel.Point) error {
	if e.points == "" {
		return nil
	}
	old, err := scalemodel.ReadPoints(e.points)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return scalemodel.WritePoints(e.points, append(old, points...))
}

// scaleGrid returns the sizes of the points of the model, in an order in which the number of nodes grows. Instances do
// not follow the rate, in neither half of the points, so that their costs can be told apart.
func scaleGrid(e *env) []scaleSize {
	rates, few, many := []float64{2, 5, 10, 20, 40}, 80, 160
	grid := []struct {
		nodes     int
		instances []int // by rate
	}{
		{100, []int{many, few, few, many, many}},
		{400, []int{few, many, many, few, few}},
		{1000, []int{few, many, many, few, few}},
	}
	if e.quick {
		grid = grid[:1]
	}
	var all []scaleSize
	for _, row := range grid {
		for i, instances := range row.instances {
			all = append(all, scaleSize{nodes: row.nodes, instances: instances, volumes: instances, perSecond: rates[i],
				inFlight: 40, length: pick(e, 90*time.Second, 10*time.Second)})
		}
	}
	return all
}

// scalePoints measures the points of the model.
func scalePoints(ctx context.Context, e *env) (t table, err error) {
	f, err := e.startFakeNodes(ctx)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, f.stop(ctx)) }()
	for _, size := range scaleGrid(e) {
		if err := f.grow(ctx, size.nodes); err != nil {
			return t, err
		}
		s, err := e.runScale(ctx, f, size)
		if s != nil && s.trial != nil {
			s.trial.remove()
		}
		if err != nil {
			return t, fmt.Errorf("%v: %w", size, err)
		}
		p := s.point
		t.info(len(s.moves), size.String(), "%.2f/s, response p50 %.2f s, %.2f CPUs busy, lateness p99 %.1f ms",
			p.Achieved, p.ResponseP50, p.Busy, 1000*p.LatenessP99)
		if err := e.savePoints([]scalemodel.Point{p}); err != nil {
			return t, err
		}
	}
	return t, nil
}

// scalePointsFile is the file of the measured points from which docs/design/scale.md was made.
func (e *env) scalePointsFile() string {
	return cmp.Or(e.points, filepath.Join(e.root, "test", "bench", "testdata", "scale-points.json"))
}

// scaleModel fits the simulation to half of the measured points, compares its predictions with the other half, and
// states what a large cluster costs.
func scaleModel(_ context.Context, e *env) (t table, err error) {
	points, err := scalemodel.ReadPoints(e.scalePointsFile())
	if err != nil {
		return t, err
	}
	fitted, rest := scalemodel.Halves(points)
	m, err := scalemodel.Fit(fitted, runnerComponent, agentsComponent)
	if err != nil {
		return t, err
	}
	t.unitCosts(m)
	errs := t.predicted(m, rest, e.seed)
	within, worst := judged(errs)
	t.add("predictions of rates and CPUs within 20 %", fmt.Sprintf("%d of %d; largest error %.0f %%", within, len(errs),
		100*worst), "all", metIf(within == len(errs)), len(errs))
	exchanged, err := scalemodel.Fit(rest, runnerComponent, agentsComponent)
	if err != nil {
		return t, err
	}
	errs = new(table).predicted(exchanged, fitted, e.seed)
	within, worst = judged(errs)
	t.info(len(errs), "the same, if the other half is fitted", "%d of %d; largest error %.0f %%", within, len(errs),
		100*worst)
	t.fanIn(slices.MaxFunc(points, func(a, b scalemodel.Point) int { return cmp.Compare(a.Moves, b.Moves) }))
	t.large(m)
	return t, nil
}

// judged returns how many relative errors are within 20 %, and the size of the largest.
func judged(errs []float64) (within int, worst float64) {
	for _, off := range errs {
		worst = max(worst, max(off, -off))
		if off <= 0.2 && off >= -0.2 {
			within++
		}
	}
	return within, worst
}

// predicted adds what the model says of points, and returns the relative errors of their rates and CPUs.
func (t *table) predicted(m *scalemodel.Model, points []scalemodel.Point, seed uint64) (errs []float64) {
	for _, p := range points {
		got := m.Predict(p, seed)
		rate, used := got.Achieved/p.Achieved-1, got.Used/p.Used()-1
		what := fmt.Sprintf("%d nodes, %d instances, %d volumes, %.1f/s offered", p.Nodes, p.Instances, p.Volumes,
			p.Offered)
		t.info(int(p.Moves), what+": moves per second; response p50",
			"measured %.2f, predicted %.2f (%+.0f %%); %.2f s, %.2f s", p.Achieved, got.Achieved, 100*rate,
			p.ResponseP50, got.ResponseP50)
		t.info(int(p.Moves), what+": CPUs of all components", "measured %.2f, predicted %.2f (%+.0f %%)", p.Used(),
			got.Used, 100*used)
		errs = append(errs, rate, used)
	}
	return errs
}

// fanIn adds the events that each runner of a cluster gets of the moves of all.
func (t *table) fanIn(p scalemodel.Point) {
	const kind = "volumeattachments.storage.k8s.io"
	perMove := float64(p.Events[kind]) / float64(int64(p.Instances)+p.Moves)
	t.info(int(p.Moves), "events of VolumeAttachments for each attach and detach; per second at 100 moves, in each runner",
		"%.1f; %.0f", perMove, 100*perMove)
}

func (t *table) unitCosts(m *scalemodel.Model) {
	for _, c := range m.Components() {
		u := m.Costs[c]
		t.info(m.Points, "unit costs of "+c, "%.4f CPUs idle, %.3f ms/s for each node, %.3f ms/s for each instance, "+
			"%.2f ms for each move, %.2f ms/s for √(moves per second)", u.Idle, 1000*u.PerNode, 1000*u.PerInstance,
			1000*u.PerMove, 1000*u.PerBatch)
	}
	t.info(m.Points, "work of a move at 2, 10 and 40 per second, all components; delays that are not work",
		"%.1f, %.1f, %.1f ms; %.2f s", 1000*m.Work(2), 1000*m.Work(10), 1000*m.Work(40), m.Delay)
}

// large adds what a cluster of 5000 nodes and 100 000 volumes needs by the unit costs.
func (t *table) large(m *scalemodel.Model) {
	for _, size := range []struct {
		instances int
		perSecond float64
	}{{1000, 100}, {5000, 100}, {100_000, 100}} {
		var parts []string
		all := m.Needs(5000, size.instances, size.perSecond)
		for _, c := range m.Components() {
			if all[c] >= 0.05 {
				parts = append(parts, fmt.Sprintf("%s %.1f", c, all[c]))
			}
		}
		t.info(m.Points, fmt.Sprintf("CPUs for 5000 nodes, %d instances with agents, %g moves per second", size.instances,
			size.perSecond), "%s", strings.Join(parts, ", "))
		t.info(m.Points, fmt.Sprintf("runners of one CPU for %d instances, %g moves per second", size.instances,
			size.perSecond), "%d", m.Shards(runnerComponent, size.instances, size.perSecond))
	}
}
