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

// Arrivals has the kernel's receive timestamps of a connection. A process that waits for a CPU reads late; without
// them its delay would count as the server's.
type Arrivals struct{ conn atomic.Pointer[arrivalConn] }

// Trace records the connection of ctx's request.
func (a *Arrivals) Trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: a.gotConn})
}

func (a *Arrivals) gotConn(info httptrace.GotConnInfo) {
	c := info.Conn
	if secure, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS
		c = secure.NetConn()
	}
	if known, ok := c.(*arrivalConn); ok {
		a.conn.Store(known)
	}
}

// Last returns the maximum time since the last read byte was received; 0 if the kernel does not report it.
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

// longestAgo is the largest plausible age: the kernel's timestamps use the wall clock, which may be set.
const longestAgo = 5 * time.Second

// arrivalConn reads a TCP connection with receive timestamps.
type arrivalConn struct {
	net.Conn
	raw syscall.RawConn
	at  atomic.Int64 // Unix time in ns of the last segment that was read
}

// stamped enables receive timestamps for a connection. It returns the connection itself if the kernel does not
// support them.
func stamped(c net.Conn) net.Conn {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return c
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return c
	}
	failed := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS,
			1)
	})
	if err != nil || failed != nil {
		return c
	}
	return &arrivalConn{Conn: c, raw: raw}
}

// Read reads with one system call. The connection's deadlines apply.
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

// stampIn finds the timestamp in control messages, as Unix time in ns; 0 if there is none: the kernel does not
// stamp every segment.
func stampIn(control []byte) int64 {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return 0
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS &&
			len(m.Data) >= int(unsafe.Sizeof(unix.Timespec{})) {
			return (*unix.Timespec)(unsafe.Pointer(&m.Data[0])).Nano()
		}
	}
	return 0
}
