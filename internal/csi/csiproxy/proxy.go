package csiproxy

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/cnsbench/cnsbench/internal/agent/clock"
)

// Options configure a Proxy. Either TakeOver or both Upstream and Listen are
// set; all three are paths of unix sockets.
type Options struct {
	// Upstream is the driver's socket, Listen where clients find the proxy.
	Upstream, Listen string
	// TakeOver is the driver's socket, whose name the proxy takes for as long
	// as it runs.
	TakeOver string
	// Driver is the driver's name; empty: it is asked once, by GetPluginInfo.
	Driver string
	// Node is the node that the socket belongs to; it stands in records whose
	// requests name none. Empty on a controller.
	Node string
	// Grace is how long calls in flight may go on when Run ends; 0: 20 s.
	Grace time.Duration
	// Say takes lines for people; it may be nil.
	Say func(line string)
	// Offset is added to the proxy's clock, for tests.
	Offset time.Duration
	// Keep is how many calls are kept at most; 0: 100,000.
	Keep int
}

const defaultGrace = 20 * time.Second

// Proxy stands between a CSI driver's socket and its clients and records
// their calls.
type Proxy struct {
	o        Options
	clock    clock.Clock
	log      *Log
	front    front
	relays   relays
	driver   atomic.Pointer[string]
	instance string
	stands   chan struct{}
}

// front is where clients connect.
type front interface {
	// dial connects to the driver.
	dial(ctx context.Context) (*net.UnixConn, error)
	// serve hands connections to take until ctx ends; by then the socket is
	// the driver's again, or gone. It calls stands when it begins to, at least once.
	serve(ctx context.Context, take func(*net.UnixConn), stands func()) error
}

// New prepares a proxy; nothing is touched before Run.
func New(o Options) (*Proxy, error) {
	if o.Say == nil {
		o.Say = func(string) {}
	}
	if o.Grace == 0 {
		o.Grace = defaultGrace
	}
	capacity := maxEvents
	if o.Keep > 0 {
		capacity = 2 * o.Keep
	}
	p := &Proxy{o: o, clock: clock.New(o.Offset), log: newLog(capacity), relays: relays{all: map[*relay]struct{}{}}, instance: rand.Text(), stands: make(chan struct{})}
	switch {
	case o.TakeOver != "" && o.Upstream == "" && o.Listen == "":
		path, err := socketPath(o.TakeOver)
		if err != nil {
			return nil, err
		}
		p.front = &takeover{socket: path, say: o.Say}
	case o.TakeOver == "" && o.Upstream != "" && o.Listen != "":
		up, err1 := socketPath(o.Upstream)
		down, err2 := socketPath(o.Listen)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		if up == down {
			return nil, fmt.Errorf("the driver's socket and the proxy's are both %s; to stand in its place, take it over", up)
		}
		p.front = &plain{driver: up, listen: down}
	default:
		return nil, errors.New("give either the socket to take over, or the driver's socket and the one to listen on")
	}
	if o.Driver != "" {
		p.learn(o.Driver)
	}
	return p, nil
}

// socketPath is an absolute path; kubelet's form "unix://…" is understood.
func socketPath(s string) (string, error) {
	return filepath.Abs(strings.TrimPrefix(strings.TrimPrefix(s, "unix://"), "unix:"))
}

// learn returns the driver's name; one that is not empty is remembered.
func (p *Proxy) learn(name string) string {
	if name != "" {
		p.driver.Store(&name)
		return name
	}
	if known := p.driver.Load(); known != nil {
		return *known
	}
	return ""
}

// Run proxies until ctx ends. Then the driver has its socket back, no new
// connection is taken, and calls in flight may go on for the grace period.
// Waiting for a driver that is not there yet is no error.
func (p *Proxy) Run(ctx context.Context) error {
	asking, stop := context.WithCancel(ctx)
	defer stop()
	if p.o.Driver == "" {
		go p.ask(asking)
	}
	lasting := context.WithoutCancel(ctx)
	err := p.front.serve(ctx, func(c *net.UnixConn) { p.take(lasting, c) }, sync.OnceFunc(func() { close(p.stands) }))
	grace, cancel := context.WithTimeout(lasting, p.o.Grace)
	defer cancel()
	p.relays.drain(grace, p.clock.Now)
	return err
}

// Stands is closed when clients of the driver first meet the proxy in its place.
func (p *Proxy) Stands() <-chan struct{} { return p.stands }

// take joins a client to the driver. Where the driver does not answer the
// client's connection is closed, which is what it would have met without us.
func (p *Proxy) take(ctx context.Context, down *net.UnixConn) {
	up, err := p.front.dial(ctx)
	if err != nil {
		p.o.Say(fmt.Sprintf("a client was turned away, as without the proxy: %v", err))
		_ = down.Close()
		return
	}
	r := &relay{down: down, up: up, tap: newTap(p.log, p.o.Node, p.learn)}
	r.tap.active = p.clock.Now()
	p.relays.add(r)
	p.relays.wg.Go(func() {
		defer p.relays.remove(r)
		r.run(p.clock.Now)
		if err := r.tap.closed(p.clock.Now()); err != nil {
			p.o.Say(fmt.Sprintf("calls of one connection were not recorded, only handed on: %v", err))
		}
	})
}

// ask finds the driver's name by one call of ours, which is not recorded.
func (p *Proxy) ask(ctx context.Context) {
	for p.learn("") == "" && ctx.Err() == nil {
		if name, err := driverName(ctx, p.front.dial); err == nil && name != "" {
			p.learn(name)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// clientOf is a client of ours to the driver.
func clientOf(dial func(context.Context) (*net.UnixConn, error)) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///localhost", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithIdleTimeout(0),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx) }))
}

// vigil waits beside the driver with an idle connection. over is closed when
// the driver ends it or cannot be reached, and when ctx ends.
func vigil(ctx context.Context, dial func(context.Context) (*net.UnixConn, error)) (over <-chan struct{}) {
	ended := make(chan struct{})
	conn, err := clientOf(dial)
	if err != nil {
		close(ended)
		return ended
	}
	go func() {
		defer close(ended)
		defer func() { _ = conn.Close() }()
		conn.Connect()
		for was := connectivity.Idle; conn.WaitForStateChange(ctx, was); {
			if was = conn.GetState(); was != connectivity.Connecting && was != connectivity.Ready {
				return
			}
		}
	}()
	return ended
}

func driverName(ctx context.Context, dial func(context.Context) (*net.UnixConn, error)) (string, error) {
	conn, err := clientOf(dial)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	info, err := csi.NewIdentityClient(conn).GetPluginInfo(ctx, &csi.GetPluginInfoRequest{})
	return info.GetName(), err
}

// Follow calls handle with each record from now on, in order, until ctx ends:
// when a call begins, and when it has ended. Calls in flight come first. lost
// counts the records before it that were missed because handle was too slow.
func (p *Proxy) Follow(ctx context.Context, handle func(r Record, lost int64) error) error {
	at, open := p.log.now()
	for _, r := range open {
		if err := handle(r, 0); err != nil {
			return err
		}
	}
	for {
		page := p.log.read(at, pageLimit)
		lost := page.lost
		for _, r := range page.records {
			if err := handle(r, lost); err != nil {
				return err
			}
			lost = 0
		}
		if at = page.next; len(page.records) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-page.wake:
		}
	}
}

// pageLimit is how many records are handed on at once.
const pageLimit = 128
