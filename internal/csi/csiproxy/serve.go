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

// Serve offers the records to whoever proves knowledge of token, over TLS 1.3,
// until ctx ends. It closes the listener.
func (p *Proxy) Serve(ctx context.Context, listener net.Listener, token string) error {
	identity, err := transport.NewIdentity()
	if err = errors.Join(transport.CheckToken(token), err); err != nil {
		return errors.Join(err, listener.Close())
	}
	p.o.Say(fmt.Sprintf("records at %s, certificate %s", listener.Addr(), identity.Pin()))
	return transport.Serve(ctx, listener, identity, func(ctx context.Context, l *transport.Link) error { return p.session(ctx, l, token) },
		func(from net.Addr, err error) { p.o.Say(fmt.Sprintf("runner at %s: %v", from, err)) })
}

// session serves one runner until either side ends it.
func (p *Proxy) session(ctx context.Context, l *transport.Link, token string) error {
	mail := message.New(l, p.clock.Now, maxFrame, transport.Silence)
	if err := p.admit(mail, l, token); err != nil {
		return err
	}
	l.SetSilence(transport.Silence)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begin := make(chan from, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- p.answer(ctx, mail, begin)
		_ = l.Close() // what is being sent ends
		cancel()
	}()
	select {
	case <-ctx.Done():
	case f := <-begin:
		if err := p.pages(ctx, mail, f); err != nil && ctx.Err() == nil {
			return err // what waits for the runner ends with the connection
		}
	}
	return <-ended
}

// admit checks the runner's proof and gives ours, in that order: who does not
// know the token gets nothing that depends on it.
func (p *Proxy) admit(mail *message.Conn, l *transport.Link, token string) error {
	var first letter
	if err := mail.ReadHello(&first); err != nil {
		return err
	}
	h := first.Hello
	if h == nil || h.Magic != magic {
		return errors.New("it is no runner of ours")
	}
	no := func(r refuse) error {
		return errors.Join(errors.New("refused: "+r.Reason), mail.Write(&letter{Refuse: &r}))
	}
	if h.Proto != Proto {
		return no(refuse{Reason: fmt.Sprintf("the runner speaks version %d, this proxy %d", h.Proto, Proto)})
	}
	knows, err := l.VerifyProof(token, asRunner, h.Proof)
	if err != nil {
		return err
	}
	if !knows {
		return no(refuse{Reason: "the token is another one", Token: true})
	}
	ours, err := l.Proof(token, asProxy)
	if err != nil {
		return err
	}
	return mail.Write(&letter{Welcome: &welcome{Proto: Proto, Proof: ours, Instance: p.instance, Driver: p.learn(""), Node: p.o.Node, Lists: true}})
}

// answer reads what the runner says until it ends.
func (p *Proxy) answer(ctx context.Context, mail *message.Conn, begin chan<- from) error {
	for {
		var l letter
		if err := mail.Read(&l); err != nil {
			return err
		}
		switch {
		case l.Ping != nil:
			if err := mail.SendPong(&l.Time); err != nil {
				return err
			}
		case l.List != nil:
			if err := p.inventory(ctx, func(part listing) error { return mail.Write(&letter{Listing: &part}) }); err != nil {
				return err
			}
		case l.From != nil:
			select {
			case begin <- *l.From:
			default:
				return errors.New("it asked for records twice")
			}
		}
	}
}

// gather is how long records wait for others: each page costs the node two
// system calls and an encryption, while the driver may be at work. Their
// stamps do not suffer from it.
const gather = 10 * time.Millisecond

// pages sends records as they come.
func (p *Proxy) pages(ctx context.Context, mail *message.Conn, f from) error {
	at := f.At
	if f.Now {
		now, open := p.log.now()
		at = now
		for begin := 0; begin == 0 || begin < len(open); begin += pageLimit { // at least one: it has the position
			part := open[begin:min(begin+pageLimit, len(open))]
			if err := mail.Write(&letter{Page: &records{Records: part, Next: at, Unseen: p.log.read(at, 0).unseen}}); err != nil {
				return err
			}
		}
	}
	unseen := int64(-1)
	for {
		page := p.log.read(at, pageLimit)
		if len(page.records) > 0 || page.lost > 0 || page.unseen != unseen {
			if err := mail.Write(&letter{Page: &records{Records: page.records, Next: page.next, Lost: page.lost, Unseen: page.unseen}}); err != nil {
				return err
			}
			at, unseen = page.next, page.unseen
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-page.wake:
			time.Sleep(gather)
		}
	}
}
