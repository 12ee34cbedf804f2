package attribution

import (
	"fmt"
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// Kind is how a step comes to take longer than its ordinary time.
type Kind string

// The kinds.
const (
	Slow        Kind = "slow"        // each takes long; nothing shows that they wait for each other
	RateLimited Kind = "rateLimited" // waits end at even intervals while others wait
	OneAtATime  Kind = "oneAtATime"  // calls never overlap while others wait for one
	BusyMachine Kind = "busyMachine" // other processes compete for the machine's CPUs
)

// Busy is the component of a BusyMachine.
const Busy = "other processes on the machine"

// The rule by which a cause stands out, and the bounds of a Search.
const (
	// LeastShare is what the lower end of the 95 % interval of the share must reach; of a busy machine
	// leastBusyShare.
	LeastShare     = 0.25
	leastBusyShare = 0.5
	// LeastExcess is the least mean time per op that is looked at, in ns.
	LeastExcess = int64(50 * time.Millisecond)
	// LeastOps is the least number of ops for an interval.
	LeastOps = stats.MinSteps
	// maxCauses are listed of an action; maxOps of an action are kept.
	maxCauses = 3
	maxOps    = 20000
)

// Cause is a step of the ops of an action that takes longer than its ordinary time, or a busy machine.
type Cause struct {
	Component string `json:"component"`
	Step      string `json:"step,omitempty"` // the milestone at its end
	Kind      Kind   `json:"kind"`
	// MeanNs is the step's mean time per op, OrdinaryNs its ordinary time, ExcessNs the mean time per op beyond it.
	MeanNs     float64 `json:"meanNs"`
	OrdinaryNs int64   `json:"ordinaryNs"`
	ExcessNs   float64 `json:"excessNs"`
	// Share of the time of the ops that the excess is; of a busy machine, that was spent while others competed for
	// it. Low and High are the 95 % interval by the moving-block bootstrap over the ops in order of their start; nil
	// with fewer than LeastOps.
	Share float64  `json:"share"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
	N     int      `json:"n"` // ops
	// StandsOut: Low reaches LeastShare and the excess 50 ms; of a busy machine, Low reaches one half.
	StandsOut bool   `json:"standsOut"`
	Evidence  string `json:"evidence"`
}

// Machine is where an op takes place.
type Machine struct {
	// Busy returns the ns within an interval in which others competed for its CPUs.
	Busy func(from, to op.Time) int64
	// Who names them: "stress 1.9 of 2 CPUs"; empty: unknown.
	Who string
}

// Context is what is known of a run beside its ops. The zero value is: nothing.
type Context struct {
	OneMachine bool
	// ClosedLoop: an op starts when another has ended.
	ClosedLoop bool
	// MachineOf returns the machine of an op; nil where it is not known.
	MachineOf func(*op.Op) *Machine
	// Flags has the flags of controllers that limit rates, by program: "--kube-api-qps=5"; one text for each
	// process with other flags. A nil map: unknown.
	Flags map[string][]string
	// Seed of the intervals: the same seed gives the same.
	Seed uint64
}

// Sentence is a cause that stands out, in words.
func (c *Cause) Sentence() string {
	if c.Kind == BusyMachine {
		return fmt.Sprintf("a busy machine stands out: during %s, %s", c.Shares(), c.Evidence)
	}
	return fmt.Sprintf("%s stands out: %s, beyond an ordinary %s; %s", c.Component, c.Shares(),
		units.Duration(float64(c.OrdinaryNs)), c.Evidence)
}

// Shares is the share of a cause with its interval: "92 % of the time [90, 94] (95 % interval, n = 60)".
func (c *Cause) Shares() string {
	if c.Low == nil {
		return fmt.Sprintf("%.0f %% of the time (n = %d)", 100*c.Share, c.N)
	}
	return fmt.Sprintf("%.0f %% of the time [%.0f, %.0f] (95 %% interval, n = %d)", 100*c.Share, 100**c.Low, 100**c.High,
		c.N)
}
