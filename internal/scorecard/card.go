package scorecard

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Result of the trial of a capability.
type Result string

// The results. No is what the driver, its class or the cluster declares; Failed, that it was tried and did not succeed.
const (
	Yes      Result = "yes"
	No       Result = "no"
	Failed   Result = "failed"
	NotTried Result = "notTried"
)

// Format is the version of the JSON of a Card. Members may be added within one.
const Format = 1

// Card has the results of all classes.
type Card struct {
	Format  int         `json:"format"`
	Engine  string      `json:"engine"`
	Classes []ClassCard `json:"classes"`
}

// ClassCard has the results of one class.
type ClassCard struct {
	Name         string        `json:"name"`
	Driver       string        `json:"driver"`
	Capabilities []Capability  `json:"capabilities"`
	Disturbances []Disturbance `json:"disturbances"`
}

// Capability says whether volumes of a class can do something, and how fast the operations were that show it: one
// after another, in one run.
type Capability struct {
	Name   string `json:"name"`
	Result Result `json:"result"`
	Reason string `json:"reason,omitempty"` // of every result but yes
	Trial  string `json:"trial"`            // name of the trial's bundle
	N      int64  `json:"n"`                // operations that were started
	OK     int64  `json:"ok"`
	// Of the successful operations, from start to end; null without any. The interval of the median, at 95 % by order
	// statistics, needs 6.
	MedianNs *int64 `json:"medianNs"`
	MinNs    *int64 `json:"minNs"`
	MaxNs    *int64 `json:"maxNs"`
	LowNs    *int64 `json:"lowNs"`
	HighNs   *int64 `json:"highNs"`
}

// Disturbance compares the latency of small writes while operations were in progress with the rest of the time.
type Disturbance struct {
	Operation string `json:"operation"`
	Trial     string `json:"trial"`
	N         int64  `json:"n"` // operations
	// Same: the operations are on the volume that is written; else on other volumes of the class.
	Same bool `json:"same"`
	// During and Quiet are the numbers of writes.
	During int64 `json:"during"`
	Quiet  int64 `json:"quiet"`
	// Ratio of a quantile during operations to that without, with its 95 % block-bootstrap interval; null: Reason says
	// why.
	Ratio  *interference.Ratio `json:"ratio"`
	Reason string              `json:"reason,omitempty"`
}

// Run is the outcome of one trial of a class.
type Run struct {
	Dir string // of the bundle
	// Why there is no bundle; empty: there is one, or the trial was not begun.
	Refused string
	// Declared: the refusal is a declaration of the driver, its class or the cluster.
	Declared bool
}

// Add adds a trial's result to a class.
func (c *ClassCard) Add(t *Trial, name string, r Run) error {
	if c.Driver == "" {
		c.Driver = r.driver()
	}
	if t.Disturbs != "" {
		d, err := t.disturbance(r)
		d.Operation, d.Trial = t.Disturbs, name
		c.Disturbances = append(c.Disturbances, d)
		return err
	}
	for _, shown := range t.Shows {
		one, err := shown.capability(r)
		if err != nil {
			return err
		}
		one.Name, one.Trial = shown.Capability, name
		c.Capabilities = append(c.Capabilities, one)
	}
	return nil
}

// Can reports whether a trial has succeeded so far, at least in part.
func (c *ClassCard) Can(trial string) bool {
	return trial == "" || slices.ContainsFunc(c.Capabilities, func(x Capability) bool {
		return x.Name == trial && x.Result == Yes
	})
}

// capability reads the operations of one action.
func (s Shown) capability(r Run) (Capability, error) {
	sum, reason, err := r.summary()
	switch {
	case err != nil:
		return Capability{}, err
	case sum == nil && r.Declared || saysNo(reason):
		return Capability{Result: No, Reason: reason}, nil
	case sum == nil:
		return Capability{Result: NotTried, Reason: reason}, nil
	}
	i := slices.IndexFunc(sum.Actions, func(a summary.Action) bool { return a.Name == s.Action })
	if i < 0 || sum.Actions[i].N == sum.Actions[i].Outcomes[op.Dropped] {
		if reason == "" {
			reason = "no operation was started, because an earlier one did not succeed"
		}
		return Capability{Result: NotTried, Reason: reason}, nil
	}
	a := &sum.Actions[i]
	c := Capability{N: a.N - a.Outcomes[op.Dropped], OK: a.Outcomes[op.OK], Result: Yes}
	if c.OK > 0 { // one that had not ended at the end of the run was too slow for so many, and did not fail
		c.N -= a.Outcomes[op.Censored]
	}
	if c.OK < c.N {
		c.Result, c.Reason = s.refused(a, reason)
		c.Reason = fmt.Sprintf("%d of %d operations did not succeed: %s", c.N-c.OK, c.N, c.Reason)
	}
	if c.OK > 0 {
		c.times(&a.Service)
	}
	return c, nil
}

func (c *Capability) times(l *summary.Latency) {
	c.MinNs, c.MaxNs = l.MinNs, l.MaxNs
	if c.MedianNs = l.P50.Ns; c.MedianNs == nil {
		return
	}
	if l.MedianInterval != nil {
		c.LowNs, c.HighNs = l.MedianInterval.LowNs, l.MedianInterval.HighNs
	}
}

// refused says why operations did not succeed: the driver does not offer them, or they failed. By CSI a driver answers
// InvalidArgument to a volume capability that it does not support.
func (s Shown) refused(a *summary.Action, otherwise string) (Result, string) {
	for _, f := range a.Failures {
		if f.Outcome == op.Dropped || f.Outcome == op.Censored {
			continue
		}
		reason := strings.TrimPrefix(f.Code+": "+f.Message, ": ")
		isMode := s.Capability == "block" || s.Capability == "rwx"
		if a.Outcomes[op.OK] == 0 && (f.Code == "Unimplemented" || isMode && f.Code == "InvalidArgument") {
			return No, reason
		}
		return Failed, reason
	}
	return Failed, otherwise
}

// saysNo reports whether the reason of a failed run is that the driver does not offer what it needs.
func saysNo(reason string) bool { return strings.Contains(reason, ": not supported by ") }

// driver is the name of the only driver of a run, as the driver gives it; empty: unknown.
func (r Run) driver() string {
	if r.Refused != "" {
		return ""
	}
	env, err := (&bundle.Bundle{Dir: r.Dir}).Environment()
	if err != nil { // the run ended before it had one
		return ""
	}
	drivers, _ := env.Engine["drivers"].([]any)
	if len(drivers) != 1 {
		return ""
	}
	one, _ := drivers[0].(map[string]any)
	name, _ := one["name"].(string)
	return name
}

// summary reads the bundle; nil without one, with the reason.
func (r Run) summary() (*summary.Summary, string, error) {
	if r.Refused != "" {
		return nil, r.Refused, nil
	}
	if _, err := bundle.ReadRun(r.Dir); errors.Is(err, fs.ErrNotExist) {
		return nil, "the trial was not run", nil
	}
	b, err := bundle.Open(r.Dir)
	if err != nil {
		return nil, "", err
	}
	d, err := dataset.Read(b)
	if err != nil {
		return nil, "", err
	}
	s, err := summary.Of(d)
	return s, b.Run.Reason, err
}

// disturbance reads the effect of the operations on the canary's writes.
func (t *Trial) disturbance(r Run) (Disturbance, error) {
	d := Disturbance{Same: t.Disturbs != "create"}
	sum, reason, err := r.summary()
	if sum == nil || err != nil {
		d.Reason = reason
		return d, err
	}
	for _, a := range sum.Actions {
		if a.Name == t.Disturbs {
			d.N = a.Outcomes[op.OK]
		}
	}
	i := slices.IndexFunc(sum.Interference, func(e interference.Effect) bool {
		return e.Control == t.Disturbs && e.Action == "fio" && e.Metric == metric.CanaryWrite
	})
	if i < 0 {
		if d.Reason = reason; reason == "" {
			d.Reason = "no write was measured during operations and without"
		}
		return d, nil
	}
	e := &sum.Interference[i]
	side := e.Bystander
	if d.Ratio = e.BystanderRatio; d.Same {
		side, d.Ratio = e.Own, e.OwnRatio
	}
	if d.During, d.Quiet = side.N, e.Outside.N; d.Ratio == nil {
		d.Reason = "too few writes for a ratio with an interval"
	}
	return d, nil
}
