package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent/message"
	"github.com/cnsbench/cnsbench/internal/agent/transport"
	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Silence is how long the other side may be silent before it counts as lost; each side sends once a second.
const Silence = 10 * time.Second

// ServeOptions are what a host needs.
type ServeOptions struct {
	Token   string
	Version string        // of the program: that of the controller must be the same
	Silence time.Duration // 0: Silence
	Clock   op.Clock
	// Open makes what opens stores. Without own they have the credentials that
	// the controller sent, and no others.
	Open func(own bool) func(*model.Store) (client.Store, error)
	// Instead starts a null server on this machine, with objects of that many bytes, and redirects the works to it;
	// stop ends it.
	Instead func(ctx context.Context, works []model.Work, size int64) (stop func() error, err error)
	// Sleep waits for an instant; false if ctx ended first.
	Sleep func(ctx context.Context, until time.Time) bool
	// About describes this machine to controllers.
	About json.RawMessage
	Say   func(line string)
}

// host serves one controller at a time.
type host struct {
	ServeOptions

	mu   sync.Mutex
	with string // whom it serves; "": nobody
}

// Serve runs the orders of controllers that know the token, one controller at a time, until ctx ends. It closes the
// listener, and returns when the last order has ended.
func Serve(ctx context.Context, listener net.Listener, o ServeOptions) error {
	h := &host{ServeOptions: o}
	if h.Silence == 0 {
		h.Silence = Silence
	}
	identity, err := transport.NewIdentity()
	if err = errors.Join(transport.CheckToken(o.Token), err); err != nil {
		return errors.Join(err, listener.Close())
	}
	return transport.Serve(ctx, listener, identity, h.session,
		func(from net.Addr, err error) { h.Say(fmt.Sprintf("controller at %s: %v", from, err)) })
}

// session serves one controller until either side ends it.
func (h *host) session(ctx context.Context, l *transport.Link) error {
	s := &session{host: h, conn: newConn(l, h.Clock, h.Silence), stopRound: func(bool) {}}
	if err := h.admit(s.conn, l); err != nil {
		return err
	}
	defer h.free()
	l.SetSilence(h.Silence)
	h.Say(fmt.Sprintf("controller at %s: connected", l.RemoteAddr()))
	ctx, cancel := context.WithCancel(ctx)
	err := s.listen(ctx)
	cancel() // its orders end at once
	s.rounds.Wait()
	h.Say(fmt.Sprintf("controller at %s: disconnected", l.RemoteAddr()))
	return err
}

// admit checks the controller's proof and gives ours, in that order: who does
// not know the token gets nothing that depends on it, and learns nothing.
func (h *host) admit(conn *message.Conn, l *transport.Link) error {
	var first frame
	if err := conn.ReadHello(&first); err != nil {
		return err
	}
	c := first.Hello
	if c == nil || c.Magic != magic {
		return errors.New("not a cnsbench controller")
	}
	no := func(kind, format string, args ...any) error {
		r := refuse{Kind: kind, Reason: fmt.Sprintf(format, args...)}
		return errors.Join(errors.New("refused: "+r.Reason), conn.Write(&frame{Refuse: &r}))
	}
	knows, err := l.VerifyProof(h.Token, asController, c.Proof)
	if err != nil {
		return err
	}
	if !knows {
		return no(kindToken, "token mismatch")
	}
	if c.Proto != Proto || c.Version != h.Version {
		return no(kindVersion, "the controller is version %s (protocol %d), this host is %s (%d)", c.Version, c.Proto,
			h.Version, Proto)
	}
	ours, err := l.Proof(h.Token, asHost)
	if err != nil {
		return err
	}
	if other := h.take(l.RemoteAddr().String()); other != "" {
		return no(kindBusy, "in use by the controller at %s", other)
	}
	if err := conn.Write(&frame{Welcome: &welcome{Proof: ours, About: h.About}}); err != nil {
		h.free()
		return err
	}
	return nil
}

// take assigns this host to a controller; it returns the other controller that has it already.
func (h *host) take(who string) (other string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.with != "" {
		return h.with
	}
	h.with = who
	return ""
}

func (h *host) free() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.with = ""
}
