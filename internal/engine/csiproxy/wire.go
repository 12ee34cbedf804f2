package csiproxy

import (
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/cnsbench/cnsbench/internal/engine/agent/link"
)

// Proto is the version of what a proxy and a runner say to each other. Two
// sides that differ part with an error that names both.
const Proto = 1

const magic = "cnsbench-csi-proxy"

// Bounds of a frame: its length in four bytes (big endian), then one message
// in JSON.
const (
	maxFrame = 4 << 20
	maxHello = 4 << 10 // from a peer that has shown no token yet
)

// letter is a frame: exactly one pointer is set. Times are of the side that
// took them.
//
//	runner  hello                                   proof of the token
//	proxy   welcome or refuse                       proof of the token
//	runner  ping … proxy pong, from now on          the clocks are joined
//	runner  from                                    where to begin
//	proxy   page, page, …
//
// or, after the clocks:
//
//	runner  list                                    what the driver has
//	proxy   listing, listing, …
type letter struct {
	Hello   *hello   `json:"hello,omitempty"`
	Welcome *welcome `json:"welcome,omitempty"`
	Refuse  *refuse  `json:"refuse,omitempty"`
	Ping    *ping    `json:"ping,omitempty"`
	Pong    *pong    `json:"pong,omitempty"`
	From    *from    `json:"from,omitempty"`
	Page    *records `json:"page,omitempty"`
	List    *list    `json:"list,omitempty"`
	Listing *listing `json:"listing,omitempty"`

	received int64 // when it was there, on the reader's clock
}

// hello opens a session. The first two fields are the same in all versions.
type hello struct {
	Magic string `json:"magic"`
	Proto int    `json:"proto"`
	Proof []byte `json:"proof"`
}

type welcome struct {
	Proto    int    `json:"proto"`
	Proof    []byte `json:"proof"`
	Instance string `json:"instance"` // positions and the clock are this process's
	Driver   string `json:"driver,omitempty"`
	Node     string `json:"node,omitempty"`
	Lists    bool   `json:"lists,omitempty"` // it knows the letter list
}

// list asks what the driver has.
type list struct{}

type refuse struct {
	Reason string `json:"reason"`
	Token  bool   `json:"token,omitempty"` // the reason is the token
}

type ping struct {
	Sent int64 `json:"sent"`
}

type pong struct {
	Ping     int64 `json:"ping"`
	Received int64 `json:"received"`
	Sent     int64 `json:"sent"`
}

// from asks for records: of an earlier position, or from now on.
type from struct {
	Now bool  `json:"now,omitempty"`
	At  int64 `json:"at"`
}

type records struct {
	Records []Record `json:"records"`
	Next    int64    `json:"next"`   // the position behind them
	Lost    int64    `json:"lost"`   // records before them that are kept no longer
	Unseen  int64    `json:"unseen"` // calls that could not be read, in all
}

var errFrameSize = errors.New("a frame is longer than the protocol allows")

// post sends and receives letters. read is for one goroutine, write for any.
type post struct {
	io.ReadWriteCloser
	now func() int64
	buf []byte

	mu sync.Mutex
}

// write sends one letter; the Sent of a ping or pong is stamped when it is
// its turn.
func (p *post) write(l letter) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case l.Ping != nil:
		l.Ping.Sent = p.now()
	case l.Pong != nil:
		l.Pong.Sent = p.now()
	}
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if len(text) > maxFrame {
		return errFrameSize
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
	if cap(p.buf) < int(n) {
		p.buf = make([]byte, n)
	}
	if _, err := io.ReadFull(p, p.buf[:n]); err != nil {
		return l, err
	}
	l.received = p.now()
	if err := json.Unmarshal(p.buf[:n], &l); err != nil {
		return l, fmt.Errorf("a frame that is no message: %w", err)
	}
	return l, nil
}

// Who proves that it knows the token.
const (
	asRunner = "runner"
	asProxy  = "proxy"
)

// prove shows knowledge of the token for this one connection, and who shows it.
func prove(token, side string, state tls.ConnectionState) ([]byte, error) {
	return link.Prove(token, fmt.Sprintf("%s %d %s", magic, Proto, side), state)
}
