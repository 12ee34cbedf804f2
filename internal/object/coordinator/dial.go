package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent/message"
	"github.com/cnsbench/cnsbench/internal/agent/transport"
	"github.com/cnsbench/cnsbench/internal/op"
)

// ParseHosts reads HOST:PORT,… or NAME=HOST:PORT,…; a host without a name is
// called HOST:PORT.
func ParseHosts(text string) ([]Host, error) {
	var hosts []Host
	for part := range strings.SplitSeq(text, ",") {
		name, address, named := strings.Cut(strings.TrimSpace(part), "=")
		if !named {
			address = name
		}
		host, port, err := net.SplitHostPort(address)
		if err != nil || host == "" || port == "" || name == "" {
			return nil, fmt.Errorf("invalid host %q: want HOST:PORT or NAME=HOST:PORT", part)
		}
		if slices.ContainsFunc(hosts, func(h Host) bool { return h.Name == name || h.Address == address }) {
			return nil, fmt.Errorf("duplicate host %q", part)
		}
		hosts = append(hosts, Host{name, address})
	}
	return hosts, nil
}

// Dial connects to all hosts and synchronises their clocks with the run's. If it cannot use one, it uses none, and
// the error names each with its reason.
func Dial(ctx context.Context, c Config) (*Controller, error) {
	if err := transport.CheckToken(c.Token); err != nil {
		return nil, err
	}
	if c.Silence == 0 {
		c.Silence = Silence
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	f := &Controller{Config: c, closed: life.Done(), end: end, inbox: make(chan event, 64)}
	failures := make([]error, len(c.Hosts))
	var wait sync.WaitGroup
	for i, h := range c.Hosts {
		p := &peer{Host: h, index: i}
		f.peers = append(f.peers, p)
		wait.Go(func() {
			if err := f.reach(ctx, p); err != nil {
				failures[i] = fmt.Errorf("host %s: %w", label(h), err)
			}
		})
	}
	wait.Wait()
	if err := errors.Join(failures...); err != nil {
		f.Close()
		return nil, err
	}
	for _, p := range f.peers {
		f.reading.Go(func() { f.listen(p) })
		// A host that has nothing to do is to hear of us too.
		f.reading.Go(func() { p.conn.PingEvery(life, min(askEach, f.Silence/4)) })
	}
	return f, nil
}

// label names a host for people.
func label(h Host) string {
	if h.Name == h.Address {
		return h.Name
	}
	return h.Name + " (" + h.Address + ")"
}

// Close releases the hosts, which stop at once.
func (f *Controller) Close() {
	f.end()
	for _, p := range f.peers {
		if p.conn != nil {
			_ = p.conn.Close() // nothing to save
		}
	}
	f.reading.Wait()
}

// About describes the machine of each host, in the order of Hosts.
func (f *Controller) About() []json.RawMessage {
	var all []json.RawMessage
	for _, p := range f.peers {
		all = append(all, p.conn.About)
	}
	return all
}

// Offsets are how far each host's clock is from the run's, with ±, in ns.
func (f *Controller) Offsets() (offsets, errs []int64) {
	for _, p := range f.peers {
		now := f.Clock.Now()
		at, plusMinus := p.hostTime(now)
		offsets, errs = append(offsets, int64(at-now)), append(errs, plusMinus)
	}
	return offsets, errs
}

// askEach is how often a clock is asked for.
const askEach = time.Second

// reach makes one attempt: TLS, proofs, clocks, setup.
func (f *Controller) reach(ctx context.Context, p *peer) (err error) {
	p.conn, err = message.Dial(ctx, p.Address, f.Token, protocol(f.Clock, f.Version, f.Silence),
		func(c *message.Peer) error {
			if err := c.SyncClock(&p.clocks); err != nil {
				return err
			}
			return c.Write(&frame{Setup: &setup{Run: f.RunID, Seed: f.Seed, Grace: f.Grace,
				OwnCredentials: f.OwnCredentials}})
		})
	return err
}

// listen passes on the messages of a host until it is lost.
func (f *Controller) listen(p *peer) {
	for {
		var l frame
		err := p.conn.Read(&l)
		if err == nil && l.Pong != nil {
			p.clocks.Add(l.Exchange())
			continue
		}
		if errors.Is(err, io.EOF) {
			err = errors.New("connection closed")
		}
		select {
		case <-f.closed:
			return
		case f.inbox <- event{p, l, err}:
		}
		if err != nil {
			return
		}
	}
}

// alive are the hosts that are not lost.
func (f *Controller) alive() []*peer {
	return slices.DeleteFunc(slices.Clone(f.peers), func(p *peer) bool { return p.gone != nil })
}

// runTime is the run's time of an instant on the host's clock, with ± in ns.
func (p *peer) runTime(t op.Time) (op.Time, int64) {
	if !t.Known() {
		return op.Never, 0
	}
	return p.clocks.ToRunner(int64(t))
}

// hostTime is the host's time of an instant of the run, with ± in ns.
func (p *peer) hostTime(t op.Time) (op.Time, int64) {
	at, plusMinus, _ := p.clocks.ToAgent(t) // a session begins with exchanges
	return op.Time(at), plusMinus
}
