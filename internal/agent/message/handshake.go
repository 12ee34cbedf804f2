package message

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent/transport"
)

// Protocol is what the two sides of an authenticated connection agree on.
type Protocol struct {
	Magic string // names it
	Proto int    // its version
	// Version is that of the program, if both sides need the same; else empty.
	Version string
	// Dials and Serves name the two sides, such as controller and worker.
	Dials, Serves string
	MaxSize       int // bytes of a message
	// Silence is how long the other side may send, or accept, nothing before it is lost.
	Silence time.Duration
	Now     func() int64 // the clock of this side
}

// Reasons why Dial has no session. Repeating it does not help against the first two.
var (
	ErrToken   = errors.New("authentication failed: token mismatch")
	ErrVersion = errors.New("version mismatch: install the same version on both sides")
	ErrBusy    = errors.New("in use")
)

// Peer is the other side of an authenticated connection.
type Peer struct {
	*Conn
	Link *transport.Link
	// About is what the side that serves says about itself; empty there.
	About json.RawMessage
}

// opening is a message of the handshake. The side that dials says hello, with its proof of the token; the other
// welcomes it, with a proof of its own, or refuses it. It is the same in all versions of all protocols, so that a
// mismatch can be reported.
type opening struct {
	Time
	Hello   *hello   `json:"hello,omitempty"`
	Welcome *welcome `json:"welcome,omitempty"`
	Refuse  *refuse  `json:"refuse,omitempty"`
}

type hello struct {
	Magic   string `json:"magic"`
	Proto   int    `json:"proto"`
	Version string `json:"version,omitempty"`
	Proof   []byte `json:"proof"`
}

type welcome struct {
	Proof []byte          `json:"proof"`
	About json.RawMessage `json:"about,omitempty"`
}

type refuse struct {
	Reason string `json:"reason"`
	Kind   string `json:"kind"`
}

// The kinds of refusals.
const (
	kindToken   = "token"
	kindVersion = "version"
	kindBusy    = "busy"
)

// Bounds of a handshake on either side, from the first packet on (on the side that dials, to the end of what follows it
// at once), and the size of a welcome.
const (
	setUpWithin = 20 * time.Second
	maxWelcome  = 1 << 20
)

// side is what the proof of a side is about.
func (p *Protocol) side(name string) string { return p.Magic + " " + name }

// Dial makes one attempt to reach the side that serves at address (HOST:PORT), by TLS 1.3 and proofs of the token
// from both sides; then completes the session, and may exchange clocks. All of it has 20 s, and ends with ctx.
func Dial(ctx context.Context, address, token string, p Protocol, then func(*Peer) error) (*Peer, error) {
	ctx, cancel := context.WithTimeout(ctx, setUpWithin)
	defer cancel()
	l, err := transport.DialUnverified(ctx, address, p.Silence)
	if err != nil {
		return nil, err
	}
	peer := &Peer{Conn: New(l, p.Now, p.MaxSize, p.Silence), Link: l}
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	if err = peer.introduce(token, &p); err == nil {
		err = then(peer)
	}
	if !stop() {
		err = errors.Join(err, ctx.Err())
	}
	if err != nil {
		_ = l.Close() // nothing to save
		return nil, err
	}
	return peer, nil
}

// introduce proves the token and checks that the other side has it too.
func (c *Peer) introduce(token string, p *Protocol) error {
	proof, err := c.Link.Proof(token, p.side(p.Dials))
	if err != nil {
		return err
	}
	if err := c.Write(&opening{Hello: &hello{p.Magic, p.Proto, p.Version, proof}}); err != nil {
		return err
	}
	var answer opening
	err = c.read(&answer, min(maxWelcome, p.MaxSize))
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("connection closed: the %[1]s has too many connections, or is not a cnsbench %[1]s", p.Serves)
	case err != nil:
		return err
	case answer.Refuse != nil:
		return p.refused(answer.Refuse)
	case answer.Welcome == nil:
		return fmt.Errorf("not a cnsbench %s", p.Serves)
	}
	knows, err := c.Link.VerifyProof(token, p.side(p.Serves), answer.Welcome.Proof)
	if err == nil && !knows {
		err = fmt.Errorf("%w, or not a cnsbench %s: invalid proof", ErrToken, p.Serves)
	}
	c.About = answer.Welcome.About
	return err
}

// refused is the error for a refusal; only other versions have other kinds.
func (p *Protocol) refused(r *refuse) error {
	switch r.Kind {
	case kindToken:
		return fmt.Errorf("%w, or not a cnsbench %s (it says: %s)", ErrToken, p.Serves, r.Reason)
	case kindBusy:
		return fmt.Errorf("%w by another %s (it says: %s)", ErrBusy, p.Dials, r.Reason)
	}
	return fmt.Errorf("%w (it says: %s)", ErrVersion, r.Reason)
}

// Handler is what Serve does with its peers.
type Handler struct {
	// Enter is called for each peer that has proved the token. It returns what this side says about itself, or why it
	// is in use. leave, if not nil, is called when the session is over.
	Enter func(from net.Addr) (about any, leave func(), err error)
	// Session serves a peer until either side ends it.
	Session func(context.Context, *Peer) error
	// Failed receives the errors of sessions that neither ctx nor the peer ended.
	Failed func(from net.Addr, err error)
}

// Serve serves peers that know the token until ctx ends, over TLS 1.3 with a certificate of its own. It closes the
// listener, and returns when all sessions are over.
func Serve(ctx context.Context, listener net.Listener, token string, p Protocol, h Handler) error {
	identity, err := transport.NewIdentity()
	if err = errors.Join(transport.CheckToken(token), err); err != nil {
		return errors.Join(err, listener.Close())
	}
	return transport.Serve(ctx, listener, identity, func(ctx context.Context, l *transport.Link) error {
		peer := &Peer{Conn: New(l, p.Now, p.MaxSize, p.Silence), Link: l}
		late := time.AfterFunc(setUpWithin, func() { _ = l.Close() }) // also of a peer that is never silent for long
		leave, err := peer.admit(token, &p, h.Enter)
		if leave != nil {
			defer leave()
		}
		if !late.Stop() { // it has closed the link, even if the handshake ended at that moment
			err = errors.Join(fmt.Errorf("no handshake within %v", setUpWithin), err)
		}
		if err != nil {
			return err
		}
		l.SetSilence(p.Silence)
		return h.Session(ctx, peer)
	}, h.Failed)
}

// admit checks the proof of the side that dialed and gives ours, in that order: a peer that does not know the token
// gets nothing that depends on it, and learns only the version of the protocol.
func (c *Peer) admit(token string, p *Protocol, enter func(net.Addr) (any, func(), error)) (leave func(), err error) {
	var first opening
	if err := c.ReadHello(&first); err != nil {
		return nil, err
	}
	h := first.Hello
	if h == nil || h.Magic != p.Magic {
		return nil, fmt.Errorf("not a cnsbench %s", p.Dials)
	}
	if h.Proto != p.Proto {
		return nil, c.refuse(kindVersion, "the %s has protocol version %d, this %s %d", p.Dials, h.Proto, p.Serves,
			p.Proto)
	}
	knows, err := c.Link.VerifyProof(token, p.side(p.Dials), h.Proof)
	switch {
	case err != nil:
		return nil, err
	case !knows:
		return nil, c.refuse(kindToken, "token mismatch")
	case h.Version != p.Version:
		return nil, c.refuse(kindVersion, "the %s is version %s, this %s is %s", p.Dials, h.Version, p.Serves,
			p.Version)
	}
	about, leave, busy := enter(c.Link.RemoteAddr())
	if busy != nil {
		return leave, c.refuse(kindBusy, "%v", busy)
	}
	text, err := json.Marshal(about)
	if err != nil {
		return leave, err
	}
	proof, err := c.Link.Proof(token, p.side(p.Serves))
	if err != nil {
		return leave, err
	}
	return leave, c.Write(&opening{Welcome: &welcome{proof, text}})
}

// refuse tells the other side why there is no session.
func (c *Peer) refuse(kind, format string, args ...any) error {
	r := refuse{fmt.Sprintf(format, args...), kind}
	return errors.Join(errors.New("refused: "+r.Reason), c.Write(&opening{Refuse: &r}))
}
