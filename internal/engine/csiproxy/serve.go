package csiproxy

import (
	"context"
	"crypto/hmac"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/engine/agent/link"
)

// maxSessions bounds how many runners follow one proxy at once.
const maxSessions = 16

// Serve offers the records to whoever proves knowledge of token, over TLS 1.3,
// until ctx ends. It closes the listener.
func (p *Proxy) Serve(ctx context.Context, listener net.Listener, token string) error {
	if err := link.CheckToken(token); err != nil {
		return errors.Join(err, listener.Close())
	}
	identity, err := link.NewIdentity()
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	p.o.Say(fmt.Sprintf("records at %s, certificate %s", listener.Addr(), identity.Pin()))
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	var sessions sync.WaitGroup
	defer sessions.Wait()
	room := make(chan struct{}, maxSessions)
	for {
		c, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return err
			}
			time.Sleep(10 * time.Millisecond) // out of descriptors
			continue
		}
		select {
		case room <- struct{}{}:
		default:
			_ = c.Close()
			continue
		}
		sessions.Go(func() {
			defer func() { <-room }()
			if err := p.session(ctx, c, identity, token); err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil {
				p.o.Say(fmt.Sprintf("runner at %s: %v", c.RemoteAddr(), err))
			}
		})
	}
}

// session serves one runner until either side ends it.
func (p *Proxy) session(ctx context.Context, c net.Conn, identity *link.Identity, token string) error {
	l, err := link.Accept(ctx, c, identity, helloWithin)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	defer func() { _ = l.Close() }()
	mail := &post{ReadWriteCloser: l, now: p.clock.Now}
	if err := p.admit(mail, l, token); err != nil {
		return err
	}
	l.SetSilence(link.Silence)
	begin := make(chan from, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- p.answer(ctx, mail, begin)
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

// helloWithin is how long a stranger may take to introduce itself.
const helloWithin = 10 * time.Second

// admit checks the runner's proof and gives ours, in that order: who does not
// know the token gets nothing that depends on it.
func (p *Proxy) admit(mail *post, l *link.Link, token string) error {
	first, err := mail.read(maxHello)
	if err != nil {
		return err
	}
	h := first.Hello
	if h == nil || h.Magic != magic {
		return errors.New("it is no runner of ours")
	}
	no := func(r refuse) error {
		return errors.Join(errors.New("refused: "+r.Reason), mail.write(letter{Refuse: &r}))
	}
	if h.Proto != Proto {
		return no(refuse{Reason: fmt.Sprintf("the runner speaks version %d, this proxy %d", h.Proto, Proto)})
	}
	secure, ok := l.Conn.(*tls.Conn)
	if !ok {
		return errors.New("the connection has no TLS")
	}
	theirs, err := prove(token, asRunner, secure.ConnectionState())
	if err != nil {
		return err
	}
	if !hmac.Equal(theirs, h.Proof) {
		return no(refuse{Reason: "the token is another one", Token: true})
	}
	ours, err := prove(token, asProxy, secure.ConnectionState())
	if err != nil {
		return err
	}
	return mail.write(letter{Welcome: &welcome{Proto: Proto, Proof: ours, Instance: p.instance, Driver: p.learn(""), Node: p.o.Node, Lists: true}})
}

// answer reads what the runner says until it ends.
func (p *Proxy) answer(ctx context.Context, mail *post, begin chan<- from) error {
	for {
		l, err := mail.read(maxHello)
		switch {
		case err != nil:
			return err
		case l.Ping != nil:
			if err := mail.write(letter{Pong: &pong{Ping: l.Ping.Sent, Received: l.received}}); err != nil {
				return err
			}
		case l.List != nil:
			if err := p.inventory(ctx, func(part listing) error { return mail.write(letter{Listing: &part}) }); err != nil {
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
func (p *Proxy) pages(ctx context.Context, mail *post, f from) error {
	at := f.At
	if f.Now {
		now, open := p.log.now()
		at = now
		for begin := 0; begin == 0 || begin < len(open); begin += pageLimit { // at least one: it has the position
			part := open[begin:min(begin+pageLimit, len(open))]
			if err := mail.write(letter{Page: &records{Records: part, Next: at, Unseen: p.log.read(at, 0).unseen}}); err != nil {
				return err
			}
		}
	}
	unseen := int64(-1)
	for {
		page := p.log.read(at, pageLimit)
		if len(page.records) > 0 || page.lost > 0 || page.unseen != unseen {
			if err := mail.write(letter{Page: &records{Records: page.records, Next: page.next, Lost: page.lost, Unseen: page.unseen}}); err != nil {
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
