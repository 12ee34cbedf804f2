package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cnsbench/cnsbench/internal/agent"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/run"
)

// agentsWithin bounds the time in which all agents connect.
const agentsWithin = 2 * time.Minute

// crowd is a server with the sessions of its agents, which another process simulates.
type crowd struct {
	engine.DiscardSink
	clock    op.Clock
	zero     int64 // of clock, on the machine's clock
	server   *agent.Server
	sessions []*agent.Session
	cmd      *exec.Cmd
	truth    *json.Decoder

	mu     sync.Mutex
	starts map[string]op.InstanceStart
	lost   []error
}

// Started implements engine.Sink.
func (c *crowd) Started(s op.InstanceStart) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.starts[s.Instance] = s
}

// Failed implements engine.Sink.
func (c *crowd) Failed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = append(c.lost, err)
}

// manyAgents has simulated agents of another process dial one server at the same time, over TLS, and starts them at one
// instant. Each of their clocks has a zero of its own; the clock of the machine tells when they started.
func manyAgents(ctx context.Context, e *env) (t table, err error) {
	n := pick(e, 1000, 100)
	c, err := newCrowd(ctx, n)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, c.server.Close()) }()
	first, before := c.clock.Now(), ownUsage()
	if err := c.simulate(ctx); err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, c.cmd.Wait()) }()
	dials, err := c.awaitReady(ctx)
	if err != nil {
		return t, errors.Join(err, c.cmd.Process.Kill())
	}
	connected, after := c.clock.Now()-first, ownUsage()
	intended, acked, err := c.release(ctx)
	if err != nil {
		return t, errors.Join(err, c.cmd.Process.Kill())
	}
	t.info(n, "from the first dial until all agents wait at the barrier", "%s", ms(connected))
	t.info(n, "dials of one agent, at most", "%d", dials)
	t.info(n, "CPU time of the runner until then, for each agent", "%s", ms((after.cpu-before.cpu)/time.Duration(n)))
	t.info(n, "resident memory of the runner, for each agent", "%.0f KiB", float64(after.rss-before.rss)/1024/float64(n))
	lead := op.Time(run.BarrierLead(n))
	t.add("from the announcement of the start until all agents have acknowledged it", ms(acked),
		"before the start: ≤ "+ms(lead), metIf(acked <= lead), n)
	span := pick(e, 20*time.Second, 3*time.Second)
	began := ownUsage()
	select {
	case <-time.After(span):
	case <-ctx.Done():
	}
	cpu := (ownUsage().cpu - began.cpu).Seconds() / span.Seconds()
	t.info(n, "CPU of the runner with a sample and a clock exchange each second, for each agent", "%.4f %%",
		100*cpu/float64(n))
	return t, c.stop(ctx, &t, intended)
}

// ownUsage returns the usage of this process.
func ownUsage() usage {
	u, _ := usageOf(os.Getpid()) // it exists
	return u
}

// newCrowd starts the server and announces the agents.
func newCrowd(ctx context.Context, n int) (*crowd, error) {
	c := &crowd{clock: op.NewClock(), starts: map[string]op.InstanceStart{}}
	c.zero = machineNow() - int64(c.clock.Now())
	var err error
	if c.server, err = agent.ListenTLS(ctx, "127.0.0.1:0", "", c.clock, c); err != nil {
		return nil, err
	}
	for i := range n {
		s, err := c.server.Expect(agent.ID{Instance: fmt.Sprintf("agent-%d", i), Container: "main"},
			agent.Options{Barrier: "all"})
		if err != nil {
			return nil, errors.Join(err, c.server.Close())
		}
		c.sessions = append(c.sessions, s)
	}
	return c, nil
}

// simulate starts the process of the agents.
func (c *crowd) simulate(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c.cmd = exec.CommandContext(ctx, self)
	c.cmd.Env = append(os.Environ(), simulatedAgents+"=1")
	c.cmd.Stderr = os.Stderr
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.cmd.Start(); err != nil {
		return err
	}
	c.truth = json.NewDecoder(stdout)
	all := json.NewEncoder(stdin)
	for _, s := range c.sessions {
		if err := all.Encode(simulated{Instance: s.ID().Instance, Env: s.Env()}); err != nil {
			return errors.Join(err, c.cmd.Process.Kill(), c.cmd.Wait())
		}
	}
	return stdin.Close()
}

// awaitReady returns when all agents wait at the barrier, and the most dials that one of them needed.
func (c *crowd) awaitReady(ctx context.Context) (dials int, err error) {
	ctx, cancel := context.WithTimeout(ctx, agentsWithin)
	defer cancel()
	for _, s := range c.sessions {
		if _, _, err := s.Ready(ctx); err != nil {
			return 0, fmt.Errorf("not all of %d agents are ready in %v: %w", len(c.sessions), agentsWithin, err)
		}
		a, _ := s.Arrival()
		dials = max(dials, a.Attempts)
	}
	return dials, nil
}

// release starts the agents as a run does. acked is the time until the last has acknowledged it.
func (c *crowd) release(ctx context.Context) (at, acked op.Time, err error) {
	announced := c.clock.Now()
	at = announced + op.Time(run.BarrierLead(len(c.sessions)))
	var all errgroup.Group
	for _, s := range c.sessions {
		all.Go(func() error { return s.Release(ctx, at) })
	}
	err = all.Wait()
	return at, c.clock.Now() - announced, err
}

// stop ends the agents and adds the figures of their starts.
func (c *crowd) stop(ctx context.Context, t *table, intended op.Time) error {
	var bare, late, errs []int64
	within := 0
	for _, s := range c.sessions {
		if err := s.Signal(syscall.SIGTERM, 0); err != nil {
			return err
		}
	}
	for _, s := range c.sessions {
		select {
		case <-s.Done():
		case <-ctx.Done():
			return ctx.Err()
		}
		if end := s.End(); !end.Started {
			return fmt.Errorf("%s did not start: %s", s.ID(), end.Message)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for range c.sessions {
		var of truth
		if err := c.truth.Decode(&of); err != nil {
			return fmt.Errorf("what the agents print: %w", err)
		}
		start, true := c.starts[of.Instance], op.Time(of.Started-c.zero)
		late = append(late, int64(true-intended))
		bare = append(bare, of.Bare)
		errs = append(errs, start.Err)
		if off := int64(start.At - true); off <= start.Err && -off <= start.Err {
			within++
		}
	}
	n := len(late)
	for _, q := range []float64{0.5, 0.99, 1} {
		t.info(n, fmt.Sprintf("p%g of the starts after the barrier", 100*q), "%s; timers alone %s", ms(quantile(late, q)),
			ms(quantile(bare, q)))
	}
	t.add("starts within their stated errors", fmt.Sprintf("%d of %d; p99 of the error ±%s", within, n,
		ms(quantile(errs, 0.99))), "all", metIf(within == n && len(c.lost) == 0), n)
	return errors.Join(c.lost...)
}
