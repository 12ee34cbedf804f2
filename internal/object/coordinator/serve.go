package coordinator

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent/message"
)

// Silence is how long the other side may be silent before it counts as lost; each side sends once a second.
const Silence = 10 * time.Second

// Serve runs the orders of controllers that know the token, one controller at a time, until ctx ends. It closes the
// listener, and returns when the last order has ended.
func Serve(ctx context.Context, listener net.Listener, o ServeOptions) error {
	h := &host{ServeOptions: o}
	if h.Silence == 0 {
		h.Silence = Silence
	}
	return message.Serve(ctx, listener, h.Token, protocol(h.Clock, h.Version, h.Silence), message.Handler{
		Enter: h.enter, Session: h.session,
		Failed: func(from net.Addr, err error) { h.Say(fmt.Sprintf("controller at %s: %v", from, err)) }})
}

// session serves one controller until either side ends it.
func (h *host) session(ctx context.Context, conn *message.Peer) error {
	s := &session{host: h, conn: conn, stopRound: func(bool) {}}
	h.Say(fmt.Sprintf("controller at %s: connected", conn.Link.RemoteAddr()))
	ctx, cancel := context.WithCancel(ctx)
	err := s.listen(ctx)
	cancel() // its orders end at once
	s.rounds.Wait()
	h.Say(fmt.Sprintf("controller at %s: disconnected", conn.Link.RemoteAddr()))
	return err
}

// enter assigns this host to a controller, unless another has it.
func (h *host) enter(from net.Addr) (about any, leave func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.with != "" {
		return nil, nil, fmt.Errorf("in use by the controller at %s", h.with)
	}
	h.with = from.String()
	return h.About, h.free, nil
}

func (h *host) free() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.with = ""
}
