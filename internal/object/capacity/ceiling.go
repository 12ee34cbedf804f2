package capacity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/backend"
	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

// NullServer starts a null server of objects of so many bytes, in a process of
// its own, so that what it uses is not counted as the client's.
type NullServer func(ctx context.Context, size int64) (address string, stop func() error, err error)

// Instead starts one and has the works go there, instead of to their stores.
func (n NullServer) Instead(ctx context.Context, works []model.Work, size int64) (stop func() error, err error) {
	address, stop, err := n(ctx, size)
	if err != nil {
		return nil, err
	}
	for i := range works {
		works[i].Store = backend.OnNullServer(&works[i].Store, address, size)
	}
	return stop, nil
}

// Ceilings measures, before a stage with works of type normal, how many of its operations this client, or each of
// several hosts, reaches against a null server, and adds that to the stage's result.
type Ceilings struct {
	Server NullServer
	// OnHosts runs a stage on several hosts at the same time, each against its own null server with objects of that
	// many bytes; nil: this process runs it, by Server.
	OnHosts func(size int64) Carry
	Size    int64 // of the objects that are read
	// Window is how long is measured, after WarmUp.
	Window, WarmUp time.Duration
	Tell           func(line string)
	Ended          func(*loadgen.StageResult) // is called for each measurement

	measured map[string]ceiling // by what is done
}

// ceiling is what was done in a second, by all hosts and by each.
type ceiling struct {
	all    float64
	byHost map[string]float64
}

// Around runs stages by inner, and before those with normal works measures their ceiling, once for equal stages. A
// host that is lost meanwhile fails the stage.
func (c *Ceilings) Around(inner Carry) Carry {
	return func(ctx, hard context.Context, s *model.Stage) *loadgen.StageResult {
		ceiling, lost, err := c.of(ctx, hard, s, inner)
		if lost != nil {
			return lost
		}
		if err != nil {
			c.tell("cannot measure the ceiling of stage %s: %v", s.Name, err)
		}
		r := inner(ctx, hard, s)
		r.Ceiling = ceiling.all
		for i := range r.Hosts {
			r.Hosts[i].Ceiling = ceiling.byHost[r.Hosts[i].Host]
		}
		return r
	}
}

func (c *Ceilings) tell(format string, args ...any) {
	if c.Tell != nil {
		c.Tell(fmt.Sprintf(format, args...))
	}
}

func (c *Ceilings) of(ctx, hard context.Context, s *model.Stage, inner Carry) (known ceiling,
	lost *loadgen.StageResult, err error) {
	stage, ok := c.stage(s)
	if !ok {
		return known, nil, nil
	}
	what, err := json.Marshal(stage)
	if err != nil {
		return known, nil, err
	}
	if known, ok := c.measured[string(what)]; ok {
		return known, nil, nil
	}
	for i := range stage.Works {
		if w := &stage.Works[i]; w.Name == "" {
			w.Name = fmt.Sprintf("work%d", i+1)
		}
	}
	stage.Name = s.Name + ".ceiling"
	r, err := c.measure(ctx, hard, stage, inner)
	if err != nil {
		return known, nil, err
	}
	if lost = withoutHosts(s, r); lost != nil {
		return known, lost, nil
	}
	if known, err = c.judge(r); err != nil {
		return ceiling{}, nil, err
	}
	if c.measured == nil {
		c.measured = map[string]ceiling{}
	}
	c.measured[string(what)] = known
	return known, nil, nil
}

// measure runs a stage against null servers.
func (c *Ceilings) measure(ctx, hard context.Context, stage *model.Stage, inner Carry) (*loadgen.StageResult, error) {
	if c.OnHosts != nil {
		r := c.OnHosts(c.Size)(ctx, hard, stage)
		c.Ended(r)
		return r, nil
	}
	stop, err := c.Server.Instead(ctx, stage.Works, c.Size)
	if err != nil {
		return nil, err
	}
	r := inner(ctx, hard, stage)
	c.Ended(r)
	if err := stop(); err != nil {
		return nil, fmt.Errorf("the null server: %w", err)
	}
	return r, nil
}

// judge evaluates and reports a measurement. If it failed on one host it is invalid on all, since all began together.
func (c *Ceilings) judge(r *loadgen.StageResult) (known ceiling, err error) {
	if r.Err != nil {
		return known, r.Err
	}
	if len(r.Hosts) == 0 {
		if known.all = r.PerSecond(); known.all == 0 {
			return known, errors.New("no operation succeeded against a null server")
		}
		c.tell("%s: this client reaches at most %s operations a second", r.Name, figure(known.all))
		return known, nil
	}
	known.byHost = map[string]float64{}
	for i := range r.Hosts {
		h := &r.Hosts[i]
		v := h.PerSecond()
		if v == 0 {
			return known, fmt.Errorf("host %s: no operation succeeded against a null server", h.Host)
		}
		known.byHost[h.Host], known.all = v, known.all+v
		c.tell("%s: host %s reaches at most %s operations a second", r.Name, h.Host, figure(v))
	}
	return known, nil
}

// withoutHosts is the result of a stage whose hosts were lost while its ceiling was measured; nil: none was.
func withoutHosts(s *model.Stage, r *loadgen.StageResult) *loadgen.StageResult {
	lost := &loadgen.StageResult{Name: s.Name, Began: r.Began, Ended: r.Ended,
		Err: fmt.Errorf("while its ceiling was measured: %w", r.Err)}
	for i := range r.Hosts {
		if h := &r.Hosts[i]; h.Lost != nil {
			lost.Hosts = append(lost.Hosts, loadgen.HostResult{Host: h.Host, Lost: h.Lost,
				Missing: []string{"nothing of the stage was begun"}, Intended: op.Never, Start: op.Never,
				StageResult: loadgen.StageResult{Name: s.Name, Began: op.Never, Ended: h.Ended, Err: h.Err}})
		}
	}
	if len(lost.Hosts) == 0 {
		return nil
	}
	return lost
}

// stage is s as closed loops that check nothing of the store, without names and
// what differs between steps; false if there is nothing to measure.
func (c *Ceilings) stage(s *model.Stage) (*model.Stage, bool) {
	stage := &model.Stage{}
	for _, w := range s.Works {
		if w.Kind != model.Normal {
			continue
		}
		w.Name, w.Line, w.Rate, w.RateText = "", 0, nil, ""
		w.TotalOps, w.TotalBytes, w.RampDown, w.MaxFailures = 0, 0, 0, 1_000_000
		w.RampUp, w.Runtime = c.WarmUp, c.Window
		w.Ops = append([]model.Op(nil), w.Ops...)
		for i := range w.Ops {
			o := &w.Ops[i]
			if o.Checks, o.Line = nil, 0; o.Type == model.Read {
				o.Zero = false // a null server's are not
			}
		}
		stage.Works = append(stage.Works, w)
	}
	return stage, len(stage.Works) > 0
}
