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
	p.opts.Log(fmt.Sprintf("records at %s", listener.Addr()))
	return message.Serve(ctx, listener, token, protocol(p.clock.Now, transport.Silence), message.Handler{
		Enter: func(net.Addr) (any, func(), error) {
			return about{Instance: p.instance, Driver: p.setDriver(""), Node: p.opts.Node, Lists: true}, nil, nil
		},
		Session: p.session,
		Failed:  func(from net.Addr, err error) { p.opts.Log(fmt.Sprintf("runner at %s: %v", from, err)) }})
}

// session serves one runner until either side ends it.
func (p *Proxy) session(ctx context.Context, conn *message.Peer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begin := make(chan startAt, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- p.readRequests(ctx, conn, begin)
		_ = conn.Close() // aborts a pending send
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

// readRequests handles the runner's messages until the connection ends.
func (p *Proxy) readRequests(ctx context.Context, conn *message.Peer, begin chan<- startAt) error {
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
func (p *Proxy) sendRecords(ctx context.Context, conn *message.Peer, f startAt) error {
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
