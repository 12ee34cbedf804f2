package httpconn

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Endpoint is where to connect.
type Endpoint struct {
	Address string        // host:port
	Host    string        // as the Host header has it
	TLS     *tls.Config   // nil: none
	Proxy   string        // host:port of an HTTP proxy that requests go through; empty: none
	Family  string        // of addresses: "4", "6" or "", any
	Sources []netip.Addr  // local addresses, by turns of the connections' clients; empty: the system chooses
	HTTP2   bool          // speak HTTP/2, by net/http
	Routes  *Routes       // counts the connections; may be nil
	Timeout time.Duration // without progress; also for connecting
	Clock   op.Clock
}

// Routes counts connections by their addresses. It is safe for concurrent use.
type Routes struct {
	mu     sync.Mutex
	counts map[string]int
}

// bufferSize of either direction. Contents larger than that go in pieces.
const bufferSize = 64 << 10

// Conn is a client's connection, made when first used and again after it was closed. It is not safe for concurrent
// use, except for Abort.
type Conn struct {
	ep     Endpoint
	buf    []byte // response: buf[r:w] is read, but not consumed
	r, w   int
	failed error  // of the read that wrote the request's end; the next read returns it
	out    []byte // request
	head   []byte // of the last answer
	moved  op.Time
	used   bool    // an exchange succeeded on this connection
	done   op.Time // the end of the last one
	// lastChunk is whether a chunk of size 0 may precede the next response.
	lastChunk bool
	aborted   atomic.Bool
	source    netip.Addr // local address; invalid: any
	h2        *http.ClientConn

	mu sync.Mutex // guards c against Abort
	c  net.Conn
}
