package csiproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent/message"
	"github.com/cnsbench/cnsbench/internal/agent/transport"
)

// Serve serves the records over TLS 1.3 to peers that prove knowledge of token, until ctx ends. It closes the
// listener.
func (p *Proxy) Serve(ctx context.Context, listener net.Listener, token string) error {
	identity, err := transport.NewIdentity()
	if err = errors.Join(transport.CheckToken(token), err); err != nil {
		return errors.Join(err, listener.Close())
	}
	p.opts.Log(fmt.Sprintf("records at %s, certificate %s", listener.Addr(), identity.Pin()))
	return transport.Serve(ctx, listener, identity,
		func(ctx context.Context, l *transport.Link) error { return p.session(ctx, l, token) },
		func(from net.Addr, err error) { p.opts.Log(fmt.Sprintf("runner at %s: %v", from, err)) })
}

// session serves one runner until either side ends it.
func (p *Proxy) session(ctx context.Context, l *transport.Link, token string) error {
	conn := message.New(l, p.clock.Now, maxFrame, transport.Silence)
	if err := p.authenticate(conn, l, token); err != nil {
		return err
	}
	l.SetSilence(transport.Silence)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begin := make(chan startAt, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- p.readRequests(ctx, conn, begin)
		_ = l.Close() // aborts a pending send
		cancel()
	}()
	select {
	case <-ctx.Done():
	case f := <-begin:
		if err := p.sendRecords(ctx, conn, f); err != nil && ctx.Err() == nil {
			return err // pending sends end with the connection
		}
	}
	return <-ended
}

// authenticate verifies the runner's proof before it sends its own: a peer without the token gets nothing
// that depends on it.
func (p *Proxy) authenticate(conn *message.Conn, l *transport.Link, token string) error {
	var first wireMessage
	if err := conn.ReadHello(&first); err != nil {
		return err
	}
	h := first.Hello
	if h == nil || h.Magic != magic {
		return errors.New("not a cnsbench runner")
	}
	no := func(r refuse) error {
		return errors.Join(errors.New("refused: "+r.Reason), conn.Write(&wireMessage{Refuse: &r}))
	}
	if h.Proto != Proto {
		return no(refuse{Reason: fmt.Sprintf("the runner has protocol version %d, this proxy %d", h.Proto, Proto)})
	}
	knows, err := l.VerifyProof(token, asRunner, h.Proof)
	if err != nil {
		return err
	}
	if !knows {
		return no(refuse{Reason: "token mismatch", Token: true})
	}
	ours, err := l.Proof(token, asProxy)
	if err != nil {
		return err
	}
	return conn.Write(&wireMessage{Welcome: &welcome{Proto: Proto, Proof: ours, Instance: p.instance,
		Driver: p.setDriver(""), Node: p.opts.Node, Lists: true}})
}

// readRequests handles the runner's messages until the connection ends.
func (p *Proxy) readRequests(ctx context.Context, conn *message.Conn, begin chan<- startAt) error {
	for {
		var l wireMessage
		if err := conn.Read(&l); err != nil {
			return err
		}
		switch {
		case l.Ping != nil:
			if err := conn.SendPong(&l.Time); err != nil {
				return err
			}
		case l.List != nil:
			if err := p.sendInventory(ctx,
				func(part listing) error { return conn.Write(&wireMessage{Listing: &part}) }); err != nil {
				return err
			}
		case l.Start != nil:
			select {
			case begin <- *l.Start:
			default:
				return errors.New("records requested twice")
			}
		}
	}
}

// batchDelay is how long records are batched: each page costs the node two system calls and an encryption
// while the driver may be working. It does not affect timestamps.
const batchDelay = 10 * time.Millisecond

// sendRecords sends records as they are added.
func (p *Proxy) sendRecords(ctx context.Context, conn *message.Conn, f startAt) error {
	at := f.At
	if f.Now {
		now, open := p.log.snapshot()
		at = now
		for begin := 0; begin == 0 || begin < len(open); begin += pageLimit { // at least one page: it has the position
			part := open[begin:min(begin+pageLimit, len(open))]
			if err := conn.Write(&wireMessage{Page: &recordPage{Records: part, Next: at,
				Unseen: p.log.read(at, 0).unseen}}); err != nil {
				return err
			}
		}
	}
	unseen := int64(-1)
	for {
		page := p.log.read(at, pageLimit)
		if len(page.records) > 0 || page.lost > 0 || page.unseen != unseen {
			if err := conn.Write(&wireMessage{Page: &recordPage{Records: page.records, Next: page.next, Lost: page.lost,
				Unseen: page.unseen}}); err != nil {
				return err
			}
			at, unseen = page.next, page.unseen
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-page.wake:
			time.Sleep(batchDelay)
		}
	}
}
