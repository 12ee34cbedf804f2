package api

import (
	"context"
	"io"
	"net"
	"net/http/httptrace"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Arrivals says when what was read of a connection had come to this machine, by
// the kernel's own stamps: a process that has to wait for a CPU reads late, and
// would take its own delay for the server's.
type Arrivals struct{ conn atomic.Pointer[arrivalConn] }

// Trace has ctx's request say on which connection it is.
func (a *Arrivals) Trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		c := info.Conn
		if secure, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS
			c = secure.NetConn()
		}
		if known, ok := c.(*arrivalConn); ok {
			a.conn.Store(known)
		}
	}})
}

// Last is how long ago the last byte that was read so far had come, at most; 0
// where the kernel does not tell.
func (a *Arrivals) Last() (ago time.Duration) {
	c := a.conn.Load()
	if c == nil {
		return 0
	}
	at := c.at.Load()
	if at == 0 {
		return 0
	}
	ago = time.Duration(time.Now().UnixNano() - at)
	if ago < 0 || ago > longestAgo {
		return 0
	}
	return ago
}

// longestAgo is what is believed: the kernel stamps by the wall clock, and more
// than this is one that was set meanwhile.
const longestAgo = 5 * time.Second

// arrivalConn reads a TCP connection with the kernel's stamps.
type arrivalConn struct {
	net.Conn
	raw syscall.RawConn
	at  atomic.Int64 // ns since 1970: when the last segment that was read had come
}

// stamped asks the kernel for stamps of what a connection receives; where that
// cannot be had the connection is returned as it is.
func stamped(c net.Conn) net.Conn {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return c
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return c
	}
	failed := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1) })
	if err != nil || failed != nil {
		return c
	}
	return &arrivalConn{Conn: c, raw: raw}
}

// Read is as a connection's, with one system call like it. Deadlines are the
// connection's own.
func (c *arrivalConn) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	var control [64]byte
	var controlled int
	waited := c.raw.Read(func(fd uintptr) bool {
		for {
			n, controlled, _, _, err = unix.Recvmsg(int(fd), p, control[:], 0)
			if err != unix.EINTR {
				break
			}
		}
		return err != unix.EAGAIN
	})
	switch {
	case waited != nil:
		return 0, waited
	case err != nil:
		return 0, &net.OpError{Op: "read", Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
	case n == 0:
		return 0, io.EOF
	}
	c.at.Store(stampIn(control[:controlled]))
	return n, nil
}

// stampIn finds the stamp among control messages, in ns since 1970; 0 where there
// is none: the kernel does not stamp every segment, and that of one before is not
// this one's.
func stampIn(control []byte) int64 {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return 0
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) >= int(unsafe.Sizeof(unix.Timespec{})) {
			return (*unix.Timespec)(unsafe.Pointer(&m.Data[0])).Nano()
		}
	}
	return 0
}
