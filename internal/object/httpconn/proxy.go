package httpconn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// maxProxyHead bounds a proxy's response to CONNECT.
const maxProxyHead = 16 << 10

// tunnel asks the proxy at the other end of a connection for a tunnel to an address (RFC 9110, section 9.3.6). All
// later bytes go through it.
func tunnel(ctx context.Context, proxy net.Conn, address string) *Failure {
	defer context.AfterFunc(ctx, func() { _ = proxy.SetDeadline(time.Unix(1, 0)) })()
	if _, err := fmt.Fprintf(proxy, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", address); err != nil {
		return writeFailure(err)
	}
	// One byte at a time, so that none of the server's is taken.
	head, next := []byte(nil), make([]byte, 1)
	for !bytes.HasSuffix(head, endOfHead) {
		if len(head) > maxProxyHead {
			return fail(ProxyRefused, errors.New("the proxy's response to CONNECT has no end"))
		}
		if _, err := proxy.Read(next); err != nil {
			return fail(ProxyRefused, fmt.Errorf("no response to CONNECT: %w", err))
		}
		head = append(head, next[0])
	}
	var x Exchange
	if err := x.parse(bytes.TrimSuffix(head, endOfHead)); err != nil {
		return fail(ProxyRefused, fmt.Errorf("the proxy's answer to CONNECT: %w", err))
	}
	if x.Status/100 != 2 {
		line, _, _ := bytes.Cut(head, []byte("\r\n"))
		return fail(ProxyRefused, fmt.Errorf("the proxy answers to CONNECT: %s", line))
	}
	return nil
}

// absolute appends the head of a request as a proxy wants it: with the server's name
// in its target (RFC 9112, section 3.2.2). The server itself gets it without.
func absolute(b, head []byte) []byte {
	method, rest, _ := bytes.Cut(head, []byte(" "))
	_, host, _ := bytes.Cut(head, []byte("\r\nHost: "))
	host, _, _ = bytes.Cut(host, []byte("\r\n"))
	b = append(append(b, method...), " http://"...)
	return append(append(b, host...), rest...)
}
