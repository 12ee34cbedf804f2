package httpconn

import (
	"bytes"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Content is the body of a request. Read fills dst from an offset; an error ends the exchange.
type Content interface {
	Read(dst []byte, offset int64) error
}

// Exchange is one request and its response. It is reused; Do sets all fields of the response.
type Exchange struct {
	// Head is the request as far as its headers go, without those of the body
	// and without the empty line.
	Head    []byte
	Content Content // nil: none
	Size    int64   // of the content
	Chunked bool    // send it in chunks, without a Content-Length
	NoBody  bool    // the response has none, whatever its headers: HEAD
	// Sink receives the body of the response in pieces, valid during the call; nil: it is dropped.
	Sink func(status int, p []byte)

	Status   int
	Length   int64 // of the answer's body, as received
	Declared int64 // Content-Length of the answer; -1 without one
	// Began is the start of the exchange, Connected when there was a connection (equal to Began if there was one
	// before), First the arrival of the first byte of the response, Done that of the last. Never: it did not arrive.
	Began, Connected, First, Done op.Time
	Reused                        bool // it took place on a connection used before

	head    []byte // of the answer; valid until the next exchange
	chunked bool
	keep    bool
}

// Header of the answer, which is valid until the next exchange.
func (x *Exchange) Header(name string) string {
	for line := range bytes.SplitSeq(x.head, []byte("\r\n")) {
		if k, v, ok := bytes.Cut(line, []byte(":")); ok && equalFold(k, name) {
			return string(bytes.TrimSpace(v))
		}
	}
	return ""
}

// equalFold compares with a lower-case ASCII text.
func equalFold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

var endOfHead = []byte("\r\n\r\n")
