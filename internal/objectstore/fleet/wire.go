// Package fleet carries one object workload out on several hosts: a controller
// (Dial, Fleet.Run) and the hosts (Serve), who know each other by a token.
package fleet

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/objectstore/load"
	"github.com/cnsbench/cnsbench/internal/objectstore/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Proto is the version of what a controller and a host say to each other.
const Proto = 1

const magic = "cnsbench-object-worker"

// Bounds of a frame: its length in four bytes (big endian), then one message
// in JSON.
const (
	maxFrame = 32 << 20
	maxHello = 4 << 10 // from a peer that has shown no token yet
)

// letter is a frame: exactly one pointer is set. Times are of the side that
// took them, unless it says otherwise.
//
//	controller  hello                         proof of the token
//	host        welcome or refuse             proof of the token
//	controller  ping … host pong              from now on; the clocks are joined
//	controller  setup                         of the run
//
// then, for each stage:
//
//	controller  order                         the host's share
//	host        ready
//	controller  start                         when, on the host's clock
//	host        began, second, second, …
//	controller  stop                          at any time
//	host        ended                         also in place of ready
type letter struct {
	Hello   *hello   `json:"hello,omitempty"`
	Welcome *welcome `json:"welcome,omitempty"`
	Refuse  *refuse  `json:"refuse,omitempty"`
	Ping    *ping    `json:"ping,omitempty"`
	Pong    *pong    `json:"pong,omitempty"`
	Setup   *setup   `json:"setup,omitempty"`
	Order   *order   `json:"order,omitempty"`
	Ready   *ready   `json:"ready,omitempty"`
	Start   *start   `json:"start,omitempty"`
	Began   *began   `json:"began,omitempty"`
	Second  *second  `json:"second,omitempty"`
	Stop    *stop    `json:"stop,omitempty"`
	Ended   *ended   `json:"ended,omitempty"`

	received int64 // when it was there, on the reader's clock
}

// hello opens a session. Its fields but the proof are the same in all versions.
type hello struct {
	Magic   string `json:"magic"`
	Proto   int    `json:"proto"`
	Version string `json:"version"` // of the program
	Proof   []byte `json:"proof"`
}

type welcome struct {
	Proof []byte `json:"proof"`
	// About says what kind of machine it is.
	About json.RawMessage `json:"about,omitempty"`
}

// refuse says why there is no session. It is the same in all versions.
type refuse struct {
	Reason string `json:"reason"`
	Kind   string `json:"kind"` // token, version, busy
}

// The kinds of refusals.
const (
	kindToken   = "token"
	kindVersion = "version"
	kindBusy    = "busy"
)

type ping struct {
	Sent int64 `json:"sent"`
}

type pong struct {
	Ping     int64 `json:"ping"`
	Received int64 `json:"received"`
	Sent     int64 `json:"sent"`
}

// setup is what holds for a whole run.
type setup struct {
	Run   string        `json:"run"`
	Seed  uint64        `json:"seed"`
	Grace time.Duration `json:"graceNs"`
	// OwnCredentials has the host look for them itself.
	OwnCredentials bool `json:"ownCredentials"`
}

// order is a host's share of a stage. What a model.Stage does not show to
// anybody stands beside it, by work.
type order struct {
	Stage   model.Stage     `json:"stage"`
	Secrets []model.Secrets `json:"secrets"`
}

type ready struct{}

// start says when, on the host's clock, the works begin on all hosts.
type start struct {
	At op.Time `json:"at"`
}

type began struct {
	At op.Time `json:"at"`
}

// second is what a work did in about a second.
type second struct {
	Work  int        `json:"work"` // in the order's stage
	From  op.Time    `json:"from"`
	To    op.Time    `json:"to"`
	Cells load.Cells `json:"cells"`
	Usage load.Usage `json:"usage"` // since the process began
}

// stop ends the works of the stage: Grace later what is in flight too, or at
// once.
type stop struct {
	AtOnce bool `json:"atOnce"`
}

type ended struct {
	Err   string     `json:"err,omitempty"`
	Works []span     `json:"works"`
	Usage load.Usage `json:"usage"` // during the stage
	At    op.Time    `json:"at"`
}

// span is when a work was carried out and measured.
type span struct {
	Began op.Time `json:"began"`
	From  op.Time `json:"from"`
	To    op.Time `json:"to"`
	Ended op.Time `json:"ended"`
	Err   string  `json:"err,omitempty"`
}

var errFrameSize = errors.New("a frame is longer than the protocol allows")

// conn is what a post goes over.
type conn interface {
	io.ReadWriteCloser
	SetWriteDeadline(t time.Time) error
}

// post sends and receives letters. read is for one goroutine, write for any.
type post struct {
	conn
	now     func() op.Time
	silence time.Duration // after which a peer that takes nothing is lost
	buf     []byte

	mu sync.Mutex
}

// write sends one letter; the Sent of a ping or pong is stamped when it is its
// turn.
func (p *post) write(l letter) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case l.Ping != nil:
		l.Ping.Sent = int64(p.now())
	case l.Pong != nil:
		l.Pong.Sent = int64(p.now())
	}
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if len(text) > maxFrame {
		return errFrameSize
	}
	if err := p.SetWriteDeadline(time.Now().Add(p.silence)); err != nil {
		return err
	}
	_, err = p.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...))
	return err
}

// read receives one letter of at most limit bytes.
func (p *post) read(limit int) (letter, error) {
	var l letter
	var head [4]byte
	if _, err := io.ReadFull(p, head[:]); err != nil {
		return l, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > uint32(limit) {
		return l, errFrameSize
	}
	// A length alone gets nobody memory: it grows with what has come.
	p.buf = p.buf[:0]
	for part := 64 << 10; len(p.buf) < int(n); {
		at := len(p.buf)
		p.buf = append(p.buf, make([]byte, min(part, int(n)-at))...)
		if _, err := io.ReadFull(p, p.buf[at:]); err != nil {
			return l, unexpected(err)
		}
	}
	l.received = int64(p.now())
	if err := json.Unmarshal(p.buf, &l); err != nil {
		return l, fmt.Errorf("a frame that is no message: %w", err)
	}
	return l, nil
}

// unexpected is what the end of a connection within a frame is.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// side is who proves that it knows the token. It holds for all versions: a
// difference between them is to be named, not taken for a wrong token.
func side(controller bool) string {
	if controller {
		return magic + " controller"
	}
	return magic + " host"
}
