// Package scalemodel predicts what a cluster needs and reaches when volumes are moved between its nodes at a rate: unit
// costs of each component, fitted to measured points, and a simulation of the moves on the CPUs that are left. It is
// pure, but for the file of the points.
package scalemodel

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
)

// Point is one measured run.
type Point struct {
	Nodes     int     `json:"nodes"`
	Instances int     `json:"instances"` // pods with agents
	Volumes   int     `json:"volumes"`
	Offered   float64 `json:"offered"`  // moves per second that came in, of a random process
	InFlight  int     `json:"inFlight"` // at most; others are dropped
	Seconds   float64 `json:"seconds"`
	CPUs      int     `json:"cpus"` // of the machine

	Achieved    float64            `json:"achieved"` // moves per second that ended within Seconds
	Moves       int64              `json:"moves"`    // that succeeded, also later
	Dropped     int64              `json:"dropped"`
	Failed      int64              `json:"failed"`
	ResponseP50 float64            `json:"responseP50"` // s
	LatenessP99 float64            `json:"latenessP99"` // s; negative: too few moves for a quantile
	Busy        float64            `json:"busy"`        // CPUs of the machine that ran something of normal priority
	Nice        float64            `json:"nice"`        // and of low priority
	Cores       map[string]float64 `json:"cores"`       // CPUs by component
	RSS         map[string]int64   `json:"rss"`         // bytes by component, at the end
	Grown       map[string]int64   `json:"grown"`       // bytes by component, by which RSS grew in the set-up
	Events      map[string]int64   `json:"events"`      // that the runner's watches got in the whole run
	Gaps        int64              `json:"gaps"`        // times that a watch was lost
}

// Other is the component of what else ran on the machine. A prediction is given its CPUs: they are no cost of moves.
const Other = "all else"

// Used returns the CPUs of all components.
func (p *Point) Used() float64 {
	sum := 0.0
	for c, used := range p.Cores {
		if c != Other {
			sum += used
		}
	}
	return sum
}

// ReadPoints reads a file of points.
func ReadPoints(path string) ([]Point, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var points []Point
	if err := json.Unmarshal(text, &points); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return points, nil
}

// WritePoints writes a file of points.
func WritePoints(path string, points []Point) error {
	text, err := json.MarshalIndent(points, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// Halves splits points like the fields of a chessboard, with rows of one number of nodes in order of their rates: each
// half has every number of nodes, and every rate at some of them.
func Halves(points []Point) (fitted, rest []Point) {
	sorted := slices.Clone(points)
	slices.SortStableFunc(sorted, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.Nodes, b.Nodes), cmp.Compare(a.Offered, b.Offered))
	})
	row, column := 0, 0
	for i, p := range sorted {
		if i > 0 {
			column++
			if p.Nodes != sorted[i-1].Nodes {
				row, column = row+1, 0
			}
		}
		if (row+column)%2 == 0 {
			fitted = append(fitted, p)
		} else {
			rest = append(rest, p)
		}
	}
	return fitted, rest
}

// UnitCosts are the costs of a component: CPUs when idle, and CPU seconds per second for each node and instance, and
// for each move. PerBatch is multiplied by the square root of the moves per second: at a higher rate a wake-up, a
// write to the disk or an answer of a watch is for several moves at once, so that one costs less.
type UnitCosts struct{ Idle, PerNode, PerInstance, PerMove, PerBatch float64 }

// moving returns the CPUs for moves at a rate.
func (u *UnitCosts) moving(perSecond float64) float64 {
	return u.PerMove*perSecond + u.PerBatch*math.Sqrt(perSecond)
}

// Model is what is fitted.
type Model struct {
	Points   int                  // fitted to
	Costs    map[string]UnitCosts // by component
	Capacity float64              // CPUs that the components of the machine share
	Delay    float64              // seconds of a move in which nothing works: timers, polling
}

// saturated says whether moves did not end as fast as they came, because the CPUs are busy: more than a few are dropped.
func (p *Point) saturated() bool { return float64(p.Dropped) > 0.05*p.Offered*p.Seconds }

// Fit fits a model by least squares without negative costs, of errors relative to the CPUs of all components of their
// point: the error of an idle cluster counts as much as that of a busy one. Only the components of agents have costs of
// instances: an agent has a connection to its runner, and to nothing else. Fit needs points with different rates.
func Fit(points []Point, ofAgents ...string) (*Model, error) {
	if len(points) < 5 {
		return nil, fmt.Errorf("%d points: a model of five costs needs as many", len(points))
	}
	m := &Model{Points: len(points), Costs: map[string]UnitCosts{}}
	components := map[string]bool{}
	for _, p := range points {
		for c := range p.Cores {
			if c != Other {
				components[c] = true
			}
		}
		if p.saturated() {
			m.Capacity = max(m.Capacity, p.Busy)
		}
	}
	if m.Capacity == 0 {
		m.Capacity = float64(points[0].CPUs)
	}
	for c := range components {
		var rows [][]float64
		var used []float64
		for _, p := range points {
			row := []float64{1, float64(p.Nodes), float64(p.Instances), p.Achieved, math.Sqrt(p.Achieved)}
			if !slices.Contains(ofAgents, c) {
				row[2] = 0
			}
			for j := range row {
				row[j] /= p.Used()
			}
			rows, used = append(rows, row), append(used, p.Cores[c]/p.Used())
		}
		x, err := nonNegative(rows, used)
		if err != nil {
			return nil, fmt.Errorf("costs of %s: %w", c, err)
		}
		m.Costs[c] = UnitCosts{x[0], x[1], x[2], x[3], x[4]}
	}
	m.Delay = m.delay(points)
	return m, nil
}

// delay is the median of the responses of points that are not saturated, without the work.
func (m *Model) delay(points []Point) float64 {
	var all []float64
	for _, p := range points {
		if !p.saturated() && p.ResponseP50 > 0 {
			all = append(all, max(0, p.ResponseP50-m.Work(p.Achieved)))
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// Components lists the components, the most expensive moves first, at ten per second.
func (m *Model) Components() []string {
	return slices.SortedFunc(maps.Keys(m.Costs), func(a, b string) int {
		x, y := m.Costs[a], m.Costs[b]
		return cmp.Or(cmp.Compare(y.moving(10), x.moving(10)), cmp.Compare(a, b))
	})
}

// Work is the CPU time of a move, of all components, in seconds, where perSecond are moved.
func (m *Model) Work(perSecond float64) float64 {
	sum := 0.0
	for _, c := range m.Components() {
		u := m.Costs[c]
		sum += u.moving(perSecond)
	}
	return sum / perSecond
}

// Needs returns the CPUs that each component needs if nothing limits it.
func (m *Model) Needs(nodes, instances int, perSecond float64) map[string]float64 {
	needs := map[string]float64{}
	for c, u := range m.Costs {
		needs[c] = u.Idle + u.PerNode*float64(nodes) + u.PerInstance*float64(instances) + u.moving(perSecond)
	}
	return needs
}

// Shards returns how many runners, each on one CPU, share instances and moves equally. Each has the costs of an idle
// one.
func (m *Model) Shards(runner string, instances int, perSecond float64) int {
	u := m.Costs[runner]
	for n := 1; ; n++ {
		share := float64(n)
		if u.Idle+u.PerInstance*float64(instances)/share+u.moving(perSecond/share) <= 1 || n == maxShards {
			return n
		}
	}
}

// maxShards ends the search where even an idle runner has no CPU left.
const maxShards = 1000

// nonNegative solves the least squares of rows·x = y for x ≥ 0, by all choices of variables that are zero: there are
// few.
func nonNegative(rows [][]float64, y []float64) ([]float64, error) {
	n := len(rows[0])
	best, least := []float64(nil), math.Inf(1)
	for mask := range 1 << n {
		x, ok := leastSquares(rows, y, mask)
		if !ok {
			continue
		}
		if e := squares(rows, y, x); e < least*(1-1e-9) {
			best, least = x, e
		}
	}
	if best == nil {
		return nil, errors.New("no solution")
	}
	return best, nil
}

func squares(rows [][]float64, y, x []float64) float64 {
	sum := 0.0
	for i, row := range rows {
		d := -y[i]
		for j := range row {
			d += row[j] * x[j]
		}
		sum += d * d
	}
	return sum
}

// leastSquares solves the normal equations of the variables in mask; the others are zero. It reports false if there is
// no solution, or one with a negative variable.
func leastSquares(rows [][]float64, y []float64, mask int) ([]float64, bool) {
	n := len(rows[0])
	var of []int
	for j := range n {
		if mask&(1<<j) != 0 {
			of = append(of, j)
		}
	}
	a := make([][]float64, len(of)) // with the right side as its last column
	for r, j := range of {
		a[r] = make([]float64, len(of)+1)
		for i, row := range rows {
			for c, k := range of {
				a[r][c] += row[j] * row[k]
			}
			a[r][len(of)] += row[j] * y[i]
		}
	}
	x := make([]float64, n)
	if !eliminate(a) {
		return nil, false
	}
	for r, j := range of {
		if x[j] = a[r][len(of)]; x[j] < 0 {
			return nil, false
		}
	}
	return x, true
}

// eliminate brings a system of equations into diagonal form. It reports false if it is singular.
func eliminate(a [][]float64) bool {
	for c := range a {
		pivot := c
		for r := c + 1; r < len(a); r++ {
			if math.Abs(a[r][c]) > math.Abs(a[pivot][c]) {
				pivot = r
			}
		}
		a[c], a[pivot] = a[pivot], a[c]
		d := a[c][c]
		if math.Abs(d) < 1e-12 {
			return false
		}
		for k := range a[c] {
			a[c][k] /= d
		}
		for r := range a {
			if f := a[r][c]; r != c && f != 0 {
				for k := range a[r] {
					a[r][k] -= f * a[c][k]
				}
			}
		}
	}
	return true
}
