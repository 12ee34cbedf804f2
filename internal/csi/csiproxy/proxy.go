package csiproxy

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/cnsbench/cnsbench/internal/agent/clock"
)

// Options configure a Proxy. Either TakeOver or both Upstream and Listen are set; all three are paths of unix
// sockets.
type Options struct {
	// Upstream is the driver's socket, Listen the proxy's.
	Upstream, Listen string
	// TakeOver is the driver's socket, whose path the proxy takes while it runs.
	TakeOver string
	// Driver is the driver's name; empty: ask the driver once (GetPluginInfo).
	Driver string
	// Node is the node of the socket, recorded for requests without a node; empty on a controller.
	Node string
	// Grace is how long calls in flight may continue when Run ends; 0: 20 s.
	Grace time.Duration
	// Log receives log lines; may be nil.
	Log func(line string)
	// Offset is added to the proxy's clock, for tests.
	Offset time.Duration
	// MaxCalls is the maximum number of recorded calls; 0: 100,000.
	MaxCalls int
}

const defaultGrace = 20 * time.Second

// Proxy forwards the calls on a CSI driver's socket and records them.
type Proxy struct {
	opts     Options
	clock    clock.Clock
	log      *Log
	endpoint endpoint
	relays   relays
	driver   atomic.Pointer[string]
	instance string
	ready    chan struct{}
}

// endpoint is where clients connect.
type endpoint interface {
	// dial connects to the driver.
	dial(ctx context.Context) (*net.UnixConn, error)
	// serve passes connections to take until ctx ends; when it returns, the driver has its socket back. It
	// calls ready when it starts serving, at least once.
	serve(ctx context.Context, take func(*net.UnixConn), stands func()) error
}

// New returns a proxy; it changes nothing before Run.
func New(o Options) (*Proxy, error) {
	if o.Log == nil {
		o.Log = func(string) {}
	}
	if o.Grace == 0 {
		o.Grace = defaultGrace
	}
	capacity := maxEvents
	if o.MaxCalls > 0 {
		capacity = 2 * o.MaxCalls
	}
	p := &Proxy{opts: o, clock: clock.New(o.Offset), log: newLog(capacity), relays: relays{all: map[*relay]struct{}{}},
		instance: rand.Text(), ready: make(chan struct{})}
	switch {
	case o.TakeOver != "" && o.Upstream == "" && o.Listen == "":
		path, err := socketPath(o.TakeOver)
		if err != nil {
			return nil, err
		}
		p.endpoint = &takeover{socket: path, log: o.Log}
	case o.TakeOver == "" && o.Upstream != "" && o.Listen != "":
		up, err1 := socketPath(o.Upstream)
		down, err2 := socketPath(o.Listen)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		if up == down {
			return nil, fmt.Errorf("the driver's socket and the proxy's are both %s: take the socket over instead", up)
		}
		p.endpoint = &besideSocket{driver: up, listen: down}
	default:
		return nil, errors.New("want either the socket to take over, or the driver's socket and the socket to listen on")
	}
	if o.Driver != "" {
		p.setDriver(o.Driver)
	}
	return p, nil
}

// setDriver stores the driver's name unless it is empty, and returns the known name.
func (p *Proxy) setDriver(name string) string {
	if name != "" {
		p.driver.Store(&name)
		return name
	}
	if known := p.driver.Load(); known != nil {
		return *known
	}
	return ""
}

// Run proxies until ctx ends. Then the driver has its socket back, no connection is accepted, and calls in
// flight may continue for the grace period. A missing driver is waited for.
func (p *Proxy) Run(ctx context.Context) error {
	asking, stop := context.WithCancel(ctx)
	defer stop()
	if p.opts.Driver == "" {
		go p.queryDriver(asking)
	}
	lasting := context.WithoutCancel(ctx)
	err := p.endpoint.serve(ctx, func(c *net.UnixConn) { p.relayClient(lasting, c) },
		sync.OnceFunc(func() { close(p.ready) }))
	grace, cancel := context.WithTimeout(lasting, p.opts.Grace)
	defer cancel()
	p.relays.drain(grace, p.clock.Now)
	return err
}

// Ready returns a channel that is closed when the proxy first serves in the driver's place.
func (p *Proxy) Ready() <-chan struct{} { return p.ready }

// relayClient connects a client to the driver. If the driver does not answer, it closes the client's
// connection, as a dead driver's socket would.
func (p *Proxy) relayClient(ctx context.Context, down *net.UnixConn) {
	up, err := p.endpoint.dial(ctx)
	if err != nil {
		p.opts.Log(fmt.Sprintf("client connection closed: the driver is unreachable: %v", err))
		_ = down.Close()
		return
	}
	r := &relay{down: down, up: up, tap: newTap(p.log, p.opts.Node, p.setDriver)}
	r.tap.lastActive = p.clock.Now()
	p.relays.add(r)
	p.relays.wg.Go(func() {
		defer p.relays.remove(r)
		r.run(p.clock.Now)
		if err := r.tap.close(p.clock.Now()); err != nil {
			p.opts.Log(fmt.Sprintf("calls of one connection were forwarded but not recorded: %v", err))
		}
	})
}

// queryDriver asks the driver for its name; the call is not recorded.
func (p *Proxy) queryDriver(ctx context.Context) {
	for p.setDriver("") == "" && ctx.Err() == nil {
		if name, err := driverName(ctx, p.endpoint.dial); err == nil && name != "" {
			p.setDriver(name)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// grpcClient returns a client of the driver.
func grpcClient(dial func(context.Context) (*net.UnixConn, error)) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///localhost", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithIdleTimeout(0),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx) }))
}

// watchDriver holds an idle connection to the driver. The channel is closed when the driver ends it or is
// unreachable, and when ctx ends.
func watchDriver(ctx context.Context, dial func(context.Context) (*net.UnixConn, error)) (over <-chan struct{}) {
	ended := make(chan struct{})
	conn, err := grpcClient(dial)
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
	conn, err := grpcClient(dial)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	info, err := csi.NewIdentityClient(conn).GetPluginInfo(ctx, &csi.GetPluginInfoRequest{})
	return info.GetName(), err
}

// Follow calls handle with each record from now on, in order, until ctx ends: at the begin and at the end of
// each call. Calls in flight come first. lost is the number of missed records before it.
func (p *Proxy) Follow(ctx context.Context, handle func(r Record, lost int64) error) error {
	at, open := p.log.snapshot()
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

// pageLimit is the maximum number of records per page.
const pageLimit = 128
