package csiproxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent/clocksync"
	"github.com/cnsbench/cnsbench/internal/agent/message"
	"github.com/cnsbench/cnsbench/internal/agent/transport"
	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Handlers receive what the proxy recorded, in order, from one goroutine. A slow handler delays the others;
// records lost that way are reported as a Gap.
type Handlers struct {
	// Call receives each call when it begins and again when it ends.
	Call func(Call)
	// Gap receives each gap in the records; may be nil.
	Gap func(Gap)
}

// Gap is a period with missing calls.
type Gap struct {
	From, To op.Time // To is when the proxy was reached again
	// Lost is the number of missing records; -1: unknown.
	Lost int64
	// Restarted reports that the proxy is a new process: calls in flight have no end, and Seq restarts.
	Restarted bool
	Reason    string
}

// Client follows one proxy. It reconnects after a loss and misses no calls as long as the proxy's process
// lives.
type Client struct {
	address, token string
	clock          op.Clock
	handlers       Handlers

	cancel context.CancelFunc
	done   chan struct{}

	mu           sync.Mutex
	driver, node string
	err          error // why there is no connection

	// instance and the following fields belong to the goroutine of follow.
	instance    string
	clocks      *clocksync.Estimator
	next        int64
	unseen      int64
	lastContact op.Time
}

// Dial connects to the proxy at address (HOST:PORT), synchronises its clock with the run's, and follows the
// calls from now on. It retries until ctx ends, except after a wrong token or version. ctx has no effect
// after Dial returns.
func Dial(ctx context.Context, address, token string, clock op.Clock, to Handlers) (*Client, error) {
	if err := transport.CheckToken(token); err != nil {
		return nil, err
	}
	if to.Gap == nil {
		to.Gap = func(Gap) {}
	}
	c := &Client{address: address, token: token, clock: clock, handlers: to, done: make(chan struct{}), next: -1,
		unseen: -1}
	s, err := c.connectWithRetry(ctx)
	if err != nil {
		return nil, fmt.Errorf("CSI proxy at %s: %w", address, err)
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.cancel = cancel
	go c.follow(life, s)
	return c, nil
}

// Close stops following; no handler is called afterwards. It must not be called by a handler.
func (c *Client) Close() error {
	c.cancel()
	<-c.done
	return nil
}

// Driver returns the name of the driver behind the proxy; "" if unknown.
func (c *Client) Driver() string { c.mu.Lock(); defer c.mu.Unlock(); return c.driver }

// Node returns the node of the proxy's socket; empty on a controller.
func (c *Client) Node() string { c.mu.Lock(); defer c.mu.Unlock(); return c.node }

// Err returns why the proxy is unreachable at the moment, or nil.
func (c *Client) Err() error { c.mu.Lock(); defer c.mu.Unlock(); return c.err }

func (c *Client) setErr(err error) { c.mu.Lock(); defer c.mu.Unlock(); c.err = err }

// Pauses between attempts, and the limit on silence; the client pings once a second.
const (
	firstPause   = 50 * time.Millisecond
	longPause    = 2 * time.Second
	silence      = 15 * time.Second
	pingInterval = time.Second
)

// connectWithRetry connects and retries until ctx ends or the error is permanent.
func (c *Client) connectWithRetry(ctx context.Context) (*session, error) {
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		s, err := c.connect(ctx, c.startSession)
		if err == nil || errors.Is(err, message.ErrToken) || errors.Is(err, message.ErrVersion) {
			return s, err
		}
		c.setErr(err)
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, ctx.Err())
		case <-time.After(pause):
		}
	}
}

// session is one connection.
type session struct {
	*message.Peer
	about  about
	clocks *clocksync.Estimator
	first  *recordPage // first page of records; every later one follows
}

// connect makes one attempt: TLS, mutual authentication, and then.
func (c *Client) connect(ctx context.Context, then func(*session) error) (*session, error) {
	s := &session{}
	_, err := message.Dial(ctx, c.address, c.token,
		protocol(func() int64 { return int64(c.clock.Now()) }, silence), func(p *message.Peer) error {
			s.Peer = p
			if err := json.Unmarshal(p.About, &s.about); err != nil {
				return err
			}
			return then(s)
		})
	return s, err
}

// startSession synchronises the clocks, requests the records from the end of the last session with the same
// process, or else from now on, and waits for the first page.
func (c *Client) startSession(s *session) error {
	s.clocks = &clocksync.Estimator{}
	if s.about.Instance == c.instance {
		s.clocks = c.clocks // the same clock: earlier exchanges stay valid
	}
	if err := s.SyncClock(s.clocks); err != nil {
		return err
	}
	c.mu.Lock()
	c.driver, c.node, c.err = s.about.Driver, s.about.Node, nil
	c.mu.Unlock()
	f := startAt{Now: true}
	if c.instance == s.about.Instance && c.next >= 0 {
		f = startAt{At: c.next}
	}
	if err := s.Write(&wireMessage{Start: &f}); err != nil {
		return err
	}
	var l wireMessage
	err := s.Read(&l)
	if err == nil && l.Page == nil {
		err = errors.New("the proxy did not send its records")
	}
	s.first = l.Page
	return err
}

// follow reads until the client is closed, reconnecting as needed.
func (c *Client) follow(ctx context.Context, s *session) {
	defer close(c.done)
	for {
		why := c.readSession(ctx, s)
		if ctx.Err() != nil {
			return
		}
		c.setErr(why)
		again, err := c.connectWithRetry(ctx)
		if err != nil {
			if ctx.Err() == nil {
				c.setErr(err)
				c.handlers.Gap(Gap{From: c.lastContact, To: c.clock.Now(), Lost: -1, Restarted: true,
					Reason: err.Error()})
			}
			return
		}
		if again.about.Instance != c.instance {
			c.handlers.Gap(Gap{From: c.lastContact, To: c.clock.Now(), Lost: -1, Restarted: true, Reason: why.Error()})
		}
		s = again
	}
}

// readSession follows one connection to its end.
func (c *Client) readSession(ctx context.Context, s *session) error {
	defer func() { _ = s.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if c.instance != s.about.Instance {
		c.next, c.unseen = -1, -1
	}
	c.instance, c.clocks = s.about.Instance, s.clocks
	c.deliver(s.first)
	c.lastContact = c.clock.Now()
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	go s.PingEvery(asking, pingInterval)
	for {
		var l wireMessage
		if err := s.Read(&l); err != nil {
			return err
		}
		switch {
		case l.Pong != nil:
			s.clocks.Add(l.Exchange())
		case l.Page != nil:
			c.deliver(l.Page)
		}
		c.lastContact = c.clock.Now()
	}
}

// deliver passes records, and gaps before them, to the handlers.
func (c *Client) deliver(p *recordPage) {
	if p.Lost > 0 {
		c.handlers.Gap(Gap{From: c.lastContact, To: c.clock.Now(), Lost: p.Lost,
			Reason: "the proxy discarded records before this runner read them"})
	}
	if c.unseen >= 0 && p.Unseen > c.unseen {
		c.handlers.Gap(Gap{From: c.lastContact, To: c.clock.Now(), Lost: p.Unseen - c.unseen,
			Reason: "calls that the proxy could not parse"})
	}
	c.unseen, c.next = p.Unseen, p.Next
	for _, r := range p.Records {
		c.handlers.Call(c.convert(r))
	}
}

// convert converts a record to the run's clock: both ends with one exchange, so that the duration stays
// exact.
func (c *Client) convert(r Record) Call {
	call := Call{Seq: r.Seq, RPC: r.RPC, Subject: r.Subject, End: op.Never, Code: r.Code,
		Message: bounded.Message(r.Message)}
	at := max(r.Start, r.End)
	offset, plusMinus, _ := c.clocks.Offset(at) // a session starts with clock exchanges
	call.Start, call.Err = op.Time(r.Start-offset), plusMinus
	if r.End != 0 {
		call.End = op.Time(r.End - offset)
		call.Err += int64(clocksync.Drift * float64(r.End-r.Start))
	}
	return call
}
