package csiproxy

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent/clocksync"
	"github.com/cnsbench/cnsbench/internal/agent/message"
	"github.com/cnsbench/cnsbench/internal/agent/transport"
	"github.com/cnsbench/cnsbench/internal/op"
)

// ErrToken says that the two sides do not have the same token.
var ErrToken = errors.New("the proxy has another token, or it is not a proxy of this run")

// ErrProto says that the two sides are of different versions.
var ErrProto = errors.New("the proxy is of another version")

// Handlers are told what the proxy saw, by one goroutine, in order. One that
// is slow delays the others, and may have records lost, which is told.
type Handlers struct {
	// Call gets each call when it began and when it ended.
	Call func(Call)
	// Gap is told that records are missing; it may be nil.
	Gap func(Gap)
}

// Gap is a stretch of time of which calls may be missing.
type Gap struct {
	From, To op.Time // To is when the proxy was heard again
	// Lost is how many records are missing; -1: nobody knows.
	Lost int64
	// Restarted says that the proxy is a new process. Calls that were in
	// flight are not heard of again; Seq begins anew.
	Restarted bool
	Reason    string
}

// Client follows one proxy. It connects again when it has lost it, and misses
// nothing by that as long as the proxy lives.
type Client struct {
	address, token string
	clock          op.Clock
	to             Handlers

	cancel context.CancelFunc
	done   chan struct{}

	mu           sync.Mutex
	driver, node string
	lost         error // why there is no connection

	// Of the one goroutine that follows.
	instance string
	clocks   *clocksync.Estimator
	next     int64
	unseen   int64
	heard    op.Time
}

// Dial connects to the proxy that serves at address (HOST:PORT), joins its
// clock to the run's, and follows the calls from now on. It tries until ctx
// ends; a proxy with another token or version is not tried again. ctx does
// not matter after that.
func Dial(ctx context.Context, address, token string, clock op.Clock, to Handlers) (*Client, error) {
	if err := transport.CheckToken(token); err != nil {
		return nil, err
	}
	if to.Gap == nil {
		to.Gap = func(Gap) {}
	}
	c := &Client{address: address, token: token, clock: clock, to: to, done: make(chan struct{}), next: -1, unseen: -1}
	s, err := c.reach(ctx)
	if err != nil {
		return nil, fmt.Errorf("CSI proxy at %s: %w", address, err)
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.cancel = cancel
	go c.follow(life, s)
	return c, nil
}

// Close ends it; no handler is called afterwards. It must not be called by a
// handler.
func (c *Client) Close() error {
	c.cancel()
	<-c.done
	return nil
}

// Driver is the name of the driver behind the proxy, Node the node; "" where
// the proxy does not know.
func (c *Client) Driver() string { c.mu.Lock(); defer c.mu.Unlock(); return c.driver }

// Node is the node whose socket the proxy sits on; empty on a controller.
func (c *Client) Node() string { c.mu.Lock(); defer c.mu.Unlock(); return c.node }

// Err says why the proxy cannot be heard at the moment; nil: it can.
func (c *Client) Err() error { c.mu.Lock(); defer c.mu.Unlock(); return c.lost }

func (c *Client) setErr(err error) { c.mu.Lock(); defer c.mu.Unlock(); c.lost = err }

// How a proxy is sought, and how long it may be silent: it is asked for its
// clock once a second.
const (
	firstPause  = 50 * time.Millisecond
	longPause   = 2 * time.Second
	setUpWithin = 20 * time.Second
	silence     = 15 * time.Second
	askEach     = time.Second
)

// reach connects, again and again until ctx ends or there is no point.
func (c *Client) reach(ctx context.Context) (*session, error) {
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		s, err := c.connect(ctx, c.begin)
		if err == nil || errors.Is(err, ErrToken) || errors.Is(err, ErrProto) {
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
	*transport.Link
	mail    *message.Conn
	welcome welcome
	clocks  *clocksync.Estimator
	first   *records // where it begins: nothing after that is missed
}

// connect makes one attempt: TLS, proofs, and then what the session is for.
func (c *Client) connect(ctx context.Context, then func(*session) error) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, setUpWithin)
	defer cancel()
	l, err := transport.DialUnverified(ctx, c.address, silence)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	s := &session{Link: l, mail: message.New(l, func() int64 { return int64(c.clock.Now()) }, maxFrame, silence)}
	if err = c.introduce(s); err == nil {
		err = then(s)
	}
	if !stop() {
		err = errors.Join(err, ctx.Err())
	}
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	return s, nil
}

// introduce proves the token and checks that the proxy has it too.
func (c *Client) introduce(s *session) error {
	proof, err := s.Proof(c.token, asRunner)
	if err != nil {
		return err
	}
	if err := s.mail.Write(&letter{Hello: &hello{Magic: magic, Proto: Proto, Proof: proof}}); err != nil {
		return err
	}
	var l letter
	if err := s.mail.ReadHello(&l); err != nil {
		return err
	}
	switch {
	case l.Refuse != nil && l.Refuse.Token:
		return fmt.Errorf("%w (it says: %s)", ErrToken, l.Refuse.Reason)
	case l.Refuse != nil:
		return fmt.Errorf("%w: %s", ErrProto, l.Refuse.Reason)
	case l.Welcome == nil:
		return errors.New("something answers there that is no CSI proxy")
	}
	knows, err := s.VerifyProof(c.token, asProxy, l.Welcome.Proof)
	if err != nil {
		return err
	}
	if !knows {
		return fmt.Errorf("%w: it could not prove it", ErrToken)
	}
	s.welcome = *l.Welcome
	return nil
}

// begin joins the clocks and asks for the records where the last session with the
// same process ended, else from now on, and waits for the first page: what
// happens once it returns is told.
func (c *Client) begin(s *session) error {
	s.clocks = &clocksync.Estimator{}
	if s.welcome.Instance == c.instance {
		s.clocks = c.clocks // the same clock: what is known of it still holds
	}
	if err := s.mail.SyncClock(s.clocks); err != nil {
		return err
	}
	c.mu.Lock()
	c.driver, c.node, c.lost = s.welcome.Driver, s.welcome.Node, nil
	c.mu.Unlock()
	f := from{Now: true}
	if c.instance == s.welcome.Instance && c.next >= 0 {
		f = from{At: c.next}
	}
	if err := s.mail.Write(&letter{From: &f}); err != nil {
		return err
	}
	var l letter
	err := s.mail.Read(&l)
	if err == nil && l.Page == nil {
		err = errors.New("it did not answer the question for its records")
	}
	s.first = l.Page
	return err
}

// follow reads until the client is closed, over as many connections as it takes.
func (c *Client) follow(ctx context.Context, s *session) {
	defer close(c.done)
	for {
		why := c.listen(ctx, s)
		if ctx.Err() != nil {
			return
		}
		c.setErr(why)
		again, err := c.reach(ctx)
		if err != nil {
			if ctx.Err() == nil {
				c.setErr(err)
				c.to.Gap(Gap{From: c.heard, To: c.clock.Now(), Lost: -1, Restarted: true, Reason: err.Error()})
			}
			return
		}
		if again.welcome.Instance != c.instance {
			c.to.Gap(Gap{From: c.heard, To: c.clock.Now(), Lost: -1, Restarted: true, Reason: why.Error()})
		}
		s = again
	}
}

// listen follows one connection to its end.
func (c *Client) listen(ctx context.Context, s *session) error {
	defer func() { _ = s.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if c.instance != s.welcome.Instance {
		c.next, c.unseen = -1, -1
	}
	c.instance, c.clocks = s.welcome.Instance, s.clocks
	c.page(s.first)
	c.heard = c.clock.Now()
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	go s.mail.PingEvery(asking, askEach)
	for {
		var l letter
		if err := s.mail.Read(&l); err != nil {
			return err
		}
		switch {
		case l.Pong != nil:
			s.clocks.Add(l.Exchange())
		case l.Page != nil:
			c.page(l.Page)
		}
		c.heard = c.clock.Now()
	}
}

// page hands records on, and what is missing before them.
func (c *Client) page(p *records) {
	if p.Lost > 0 {
		c.to.Gap(Gap{From: c.heard, To: c.clock.Now(), Lost: p.Lost, Reason: "the proxy keeps records for so long only; this runner was too slow or away"})
	}
	if c.unseen >= 0 && p.Unseen > c.unseen {
		c.to.Gap(Gap{From: c.heard, To: c.clock.Now(), Lost: p.Unseen - c.unseen, Reason: "calls that the proxy could not read"})
	}
	c.unseen, c.next = p.Unseen, p.Next
	for _, r := range p.Records {
		c.to.Call(c.convert(r))
	}
}

// convert places a record on the run's clock: both ends by one exchange, so
// that their difference stays what the proxy measured.
func (c *Client) convert(r Record) Call {
	call := Call{Seq: r.Seq, RPC: r.RPC, Subject: r.Subject, End: op.Never, Code: r.Code, Message: r.Message}
	at := max(r.Start, r.End)
	offset, plusMinus, _ := c.clocks.Offset(at) // there are exchanges: a session begins with them
	call.Start, call.Err = op.Time(r.Start-offset), plusMinus
	if r.End != 0 {
		call.End = op.Time(r.End - offset)
		call.Err += int64(clocksync.Drift * float64(r.End-r.Start))
	}
	return call
}
