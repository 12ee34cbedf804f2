package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent/transport"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/machine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// maxSocket is what sun_path holds, less its final zero (unix(7)).
const maxSocket = 107

// Listen serves on a unix socket that it creates; one that a dead run has
// left there is replaced. The server lives until Close, or until ctx ends.
func Listen(ctx context.Context, socket string, clock op.Clock, sink engine.Sink) (*Server, error) {
	if len(socket) > maxSocket {
		return nil, fmt.Errorf("the agents' socket %s is longer than the %d bytes a unix socket may have: use a shorter output or scratch directory", socket, maxSocket)
	}
	if fi, err := os.Lstat(socket); err == nil && fi.Mode()&os.ModeSocket != 0 {
		if err := os.Remove(socket); err != nil {
			return nil, fmt.Errorf("remove a stale socket: %w", err)
		}
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listen for agents: %w", err)
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	return newServer(ctx, ln, transport.Unix+":"+socket, nil, clock, sink, transport.Silence), nil
}

// ListenTLS serves on TCP with TLS 1.3 and a certificate made for this run,
// which agents know by its Pin. addr is what to listen at (":0": any port of
// all addresses); advertise is the host that agents dial, without a port;
// empty: the one of addr. The server lives until Close, or until ctx ends.
func ListenTLS(ctx context.Context, addr, advertise string, clock op.Clock, sink engine.Sink) (*Server, error) {
	return listenTLS(ctx, addr, advertise, clock, sink, transport.Silence)
}

func listenTLS(ctx context.Context, addr, advertise string, clock op.Clock, sink engine.Sink, silence time.Duration) (*Server, error) {
	identity, err := transport.NewIdentity()
	if err != nil {
		return nil, err
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for agents: %w", err)
	}
	host, port, err := net.SplitHostPort(ln.Addr().String())
	if ip := net.ParseIP(host); err == nil && advertise == "" && ip.IsUnspecified() {
		err = fmt.Errorf("listening at %s says nothing about the address that pods reach this runner at: name it", addr)
	}
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	if advertise == "" {
		advertise = host
	}
	return newServer(ctx, ln, transport.TLS+":"+net.JoinHostPort(advertise, port), identity, clock, sink, silence), nil
}

// newServer takes the connections that come in at ln. silence is how long an agent
// may say nothing until it is lost.
func newServer(ctx context.Context, ln net.Listener, address string, identity *transport.Identity, clock op.Clock, sink engine.Sink, silence time.Duration) *Server {
	s := &Server{
		ctx: ctx, address: address, identity: identity, silence: silence, clock: clock, sink: sink, ln: ln,
		helloWithin: helloWithin,
		sessions:    map[string]*Session{}, spent: map[string]ID{}, live: map[*Session]bool{},
		instances: map[string]*instance{}, groups: map[string]*group{}, machines: map[string]*Session{},
	}
	if identity != nil {
		s.machine = machine.ID()
		s.strangers.most = maxStrangers
	}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	s.wg.Go(s.accept)
	return s
}
