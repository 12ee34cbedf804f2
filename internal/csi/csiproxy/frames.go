package csiproxy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/net/http2/hpack"
)

// preface is the connection preface of an HTTP/2 client (RFC 9113 §3.4).
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// HTTP/2 frame types (RFC 9113 §6) and flags that the parser uses.
const (
	frameData         = 0x0
	frameHeaders      = 0x1
	frameReset        = 0x3
	framePush         = 0x5
	frameContinuation = 0x9

	flagEndStream  = 0x1
	flagEndHeaders = 0x4
	flagPadded     = 0x8
	flagPriority   = 0x20
)

// Limits of a header block and of its dynamic table.
const (
	maxBlock = 1 << 20
	maxTable = 1 << 20
)

var (
	errNotHTTP2 = errors.New("not HTTP/2")
	errFrame    = errors.New("unexpected HTTP/2 frame")
)

// headers are the header fields that the parser uses.
type headers struct {
	path, status, message, http string
	timeout                     time.Duration
}

// frames parses one direction of a connection incrementally.
type frames struct {
	onHeaders func(id uint32, h headers, last bool, at int64)
	onData    func(id uint32, b []byte)
	onEnd     func(id uint32, at int64) // behind data
	onReset   func(id uint32, code uint32, at int64)

	preface int // bytes of the preface still to come
	head    [9]byte
	got     int // bytes of head received
	typ     byte
	flags   byte
	id      uint32
	left    int // bytes of the payload still to come
	data    int // same, without padding
	padded  bool

	control  []byte // payload of a frame that is parsed whole
	block    []byte // header block, possibly of several frames
	blockEnd bool   // the stream ends with it
	decoder  *hpack.Decoder
	h        headers
}

func newFrames(preface int) *frames {
	f := &frames{preface: preface}
	f.decoder = hpack.NewDecoder(4096, f.header)
	// The table size follows the sender's announcements, which its peer has accepted.
	f.decoder.SetAllowedMaxDynamicTableSize(maxTable)
	return f
}

func (f *frames) header(h hpack.HeaderField) {
	switch h.Name {
	case ":path":
		f.h.path = h.Value
	case ":status":
		f.h.http = h.Value
	case "grpc-status":
		f.h.status = h.Value
	case "grpc-message":
		f.h.message = h.Value
	case "grpc-timeout":
		f.h.timeout = timeout(h.Value)
	}
}

// feed parses the next bytes; it must not be called after an error.
func (f *frames) feed(b []byte, at int64) error {
	for len(b) > 0 {
		switch {
		case f.preface > 0:
			n := min(f.preface, len(b))
			if from := len(preface) - f.preface; string(b[:n]) != preface[from:from+n] {
				return errNotHTTP2
			}
			f.preface -= n
			b = b[n:]
			continue
		case f.got < len(f.head):
			n := copy(f.head[f.got:], b)
			f.got += n
			b = b[n:]
			if f.got < len(f.head) {
				return nil
			}
			f.start()
		default:
			n := min(f.left, len(b))
			f.left -= n
			if err := f.payload(b[:n]); err != nil {
				return err
			}
			b = b[n:]
		}
		if f.left > 0 {
			continue
		}
		f.got = 0
		if err := f.finish(at); err != nil {
			return err
		}
	}
	return nil
}

// start parses a frame header.
func (f *frames) start() {
	f.left = int(f.head[0])<<16 | int(f.head[1])<<8 | int(f.head[2])
	f.typ, f.flags = f.head[3], f.head[4]
	f.id = binary.BigEndian.Uint32(f.head[5:]) & (1<<31 - 1)
	f.data, f.padded = f.left, f.flags&flagPadded != 0
	f.control = f.control[:0]
}

// payload handles the next bytes of a payload.
func (f *frames) payload(b []byte) error {
	switch f.typ {
	case frameData:
		if f.padded {
			f.data -= 1 + int(b[0])
			f.padded = false
			b = b[1:]
			if f.data < 0 {
				return fmt.Errorf("%w: padding longer than the frame", errFrame)
			}
		}
		n := min(f.data, len(b))
		f.data -= n
		f.onData(f.id, b[:n])
		return nil
	case frameHeaders, frameContinuation, frameReset:
		if len(f.control)+len(b) > maxBlock {
			return fmt.Errorf("%w: headers longer than %d bytes", errFrame, maxBlock)
		}
		f.control = append(f.control, b...)
	case framePush:
		return fmt.Errorf("%w: server push", errFrame) // its headers would be missing from the dynamic table
	}
	return nil
}

// finish handles a complete frame.
func (f *frames) finish(at int64) error {
	switch f.typ {
	case frameData:
		if f.flags&flagEndStream == 0 {
			return nil
		}
		f.onEnd(f.id, at)
	case frameHeaders:
		b, err := fragment(f.control, f.flags)
		if err != nil {
			return err
		}
		f.block = append(f.block[:0], b...)
		f.blockEnd = f.flags&flagEndStream != 0
		return f.decode(at)
	case frameContinuation:
		if len(f.block)+len(f.control) > maxBlock {
			return fmt.Errorf("%w: headers longer than %d bytes", errFrame, maxBlock)
		}
		f.block = append(f.block, f.control...)
		return f.decode(at)
	case frameReset:
		if len(f.control) != 4 {
			return fmt.Errorf("%w: RST_STREAM of %d bytes", errFrame, len(f.control))
		}
		f.onReset(f.id, binary.BigEndian.Uint32(f.control), at)
	}
	return nil
}

// decode decodes a header block once it is complete.
func (f *frames) decode(at int64) error {
	if f.flags&flagEndHeaders == 0 {
		return nil
	}
	f.h = headers{}
	if _, err := f.decoder.Write(f.block); err != nil {
		return fmt.Errorf("headers: %w", err)
	}
	if err := f.decoder.Close(); err != nil {
		return fmt.Errorf("headers: %w", err)
	}
	f.onHeaders(f.id, f.h, f.blockEnd, at)
	return nil
}

// fragment returns a HEADERS frame's payload without padding and priority.
func fragment(b []byte, flags byte) ([]byte, error) {
	pad := 0
	if flags&flagPadded != 0 && len(b) > 0 {
		pad, b = int(b[0]), b[1:]
	}
	if flags&flagPriority != 0 {
		b = b[min(5, len(b)):]
	}
	if pad > len(b) {
		return nil, fmt.Errorf("%w: padding longer than the frame", errFrame)
	}
	return b[:len(b)-pad], nil
}
