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

// maxSocket is the longest path of a unix socket: sun_path without its final zero (unix(7)).
const maxSocket = 107

// Listen serves on a new unix socket and replaces a stale one. The server runs until Close or the end of ctx.
func Listen(ctx context.Context, socket string, clock op.Clock, sink engine.Sink) (*Server, error) {
	if len(socket) > maxSocket {
		return nil, fmt.Errorf("path of the agent socket %s exceeds %d bytes: use a shorter output or scratch directory", socket, maxSocket)
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

// ListenTLS serves on TCP with TLS 1.3 and a certificate made for this run, which agents verify by its Pin.
// addr is the listen address (":0": any port on all addresses); advertise is the host that agents dial,
// without a port (empty: the host of addr). The server runs until Close or the end of ctx.
func ListenTLS(ctx context.Context, addr, advertise string, clock op.Clock, sink engine.Sink) (*Server, error) {
	return listenTLS(ctx, addr, advertise, clock, sink, transport.Silence)
}

func listenTLS(ctx context.Context, addr, advertise string, clock op.Clock, sink engine.Sink,
	silence time.Duration) (*Server, error) {
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
		err = fmt.Errorf("listen address %s does not tell pods how to reach this runner: set the advertised address",
			addr)
	}
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	if advertise == "" {
		advertise = host
	}
	return newServer(ctx, ln, transport.TLS+":"+net.JoinHostPort(advertise, port), identity, clock, sink, silence), nil
}

// newServer accepts connections from ln. An agent that sends nothing for the duration silence is lost.
func newServer(ctx context.Context, ln net.Listener, address string, identity *transport.Identity, clock op.Clock,
	sink engine.Sink, silence time.Duration) *Server {
	s := &Server{
		ctx: ctx, address: address, identity: identity, silence: silence, clock: clock, sink: sink, ln: ln,
		helloWithin: helloWithin,
		sessions:    map[string]*Session{}, spent: map[string]ID{}, live: map[*Session]bool{},
		instances: map[string]*instance{}, groups: map[string]*group{}, machines: map[string]*Session{},
	}
	if identity != nil {
		s.machine = machine.ID()
		s.unauthenticated.limit = maxUnauthenticated
	}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	s.wg.Go(s.accept)
	return s
}
