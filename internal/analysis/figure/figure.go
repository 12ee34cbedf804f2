// Package figure computes the data of the report's figures: distribution functions, latency over time, spans of single
// ops, and timelines, reduced to a drawable number of points.
package figure

import (
	"slices"

	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// Limits of what is drawn.
const (
	steps     = 400 // of a distribution function
	buckets   = 800 // of a canary's line
	maxBars   = 300 // in one lane; a lane with more ops has none
	maxRows   = 6   // of bars beside each other in a lane
	maxPanels = 12  // instances in the timeline
	maxBands  = 3   // units of other metrics in a panel
	maxLines  = 4   // of such a unit
)

// Figures of one run.
type Figures struct {
	Actions  []Action // with ops, by name
	Timeline Timeline
	// Ops are the wanted ones, and the median and slowest op of each action, by id.
	Ops []op.Op
}

// Action has the figures of one action's ops.
type Action struct {
	Name string
	Heat Heat
	// N counts all values of the distributions. They stay below 1 where ops did not end or start, and are empty without
	// a latency.
	N                 int64
	Response, Service []stats.Step
	// Median and Slowest are the ids of the ok ops with the median and the greatest response; -1: no op was ok.
	Median, Slowest int64
}

// Timeline of a run: lanes of control operations, and a panel for each instance.
type Timeline struct {
	From, To op.Time
	Lanes    []Lane
	Panels   []Panel
	Omitted  int // instances without a panel
	// All is a panel of all instances together; nil if there are too few to need it.
	All *Panel
	// States counts the instances that are starting, running, or being replaced; nil with fewer than two.
	States *Panel
	// Joined is the longest time that a point of a line stands for, where a line had more than could be drawn: of
	// latencies it has the greatest value of that time, else the mean. 0: all points are drawn.
	Joined op.Time
}

// Lane has the ops of one action as bars; with more than maxBars ops it has none, and Heat shows them.
type Lane struct {
	Action string
	Bars   []Bar // in order of From
	Rows   int   // bars that overlap lie in different rows
	Heat   Heat
}

// Bar is an op.
type Bar struct {
	From, To op.Time
	Row      int
	ID       int64
	Name     string // "snapshots/7"
	Target   string
	Outcome  op.Outcome
}

// Panel is one instance: I/O completed, and latencies, over time.
type Panel struct {
	Instance  string
	Bandwidth []Line // bytes per second
	Values    []Band // of other metrics
	Latency   []Line // ns
	// Omitted are the metrics without a line.
	Omitted []string
}

// Band has lines of one unit.
type Band struct {
	Unit  string
	Lines []Line
}

// Lines returns all lines of a panel.
func (p *Panel) Lines() []Line {
	lines := slices.Clone(p.Bandwidth)
	for _, b := range p.Values {
		lines = append(lines, b.Lines...)
	}
	return append(lines, p.Latency...)
}

// Line is a value over time; it has gaps where there are no points.
type Line struct {
	Name   string
	Points []Point
}

// Point holds over [From, To].
type Point struct {
	From, To op.Time
	Value    float64
}
