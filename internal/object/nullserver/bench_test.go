package nullserver

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/test/clienttest"
)

// BenchmarkRequests measures requests of small objects on one connection, with headers as a client sends them. Its
// client allocates nothing.
func BenchmarkRequests(b *testing.B) {
	const headers = " HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: AWS4-HMAC-SHA256 Credential=a/b\r\n" +
		"X-Amz-Date: 20261101T000000Z\r\nX-Amz-Content-Sha256: UNSIGNED-PAYLOAD\r\n"
	for name, request := range map[string]string{"get": "GET /bucket/object" + headers + "\r\n",
		"range": "GET /bucket/object" + headers + "Range: bytes=0-99\r\n\r\n",
		"put":   "PUT /bucket/object" + headers + "Content-Length: 100\r\n\r\n" + strings.Repeat("x", 100)} {
		b.Run(name, func(b *testing.B) {
			address := clienttest.Loopback(b, Options{Size: 100}.Serve)
			c, err := (&net.Dialer{}).DialContext(b.Context(), "tcp", strings.TrimPrefix(address, "http://"))
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			exchange := func(buf []byte) {
				if _, err := io.WriteString(c, request); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(c, buf); err != nil {
					b.Fatal(err)
				}
			}
			buf := make([]byte, responseSize(b, c, request))
			b.ReportAllocs()
			for b.Loop() {
				exchange(buf)
			}
		})
	}
}

// responseSize returns the number of bytes of the response to a request.
func responseSize(b *testing.B, c net.Conn, request string) int64 {
	b.Helper()
	if _, err := io.WriteString(c, request); err != nil {
		b.Fatal(err)
	}
	n := &counting{Reader: c}
	r := bufio.NewReaderSize(n, 1<<20)
	answer, err := http.ReadResponse(r, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode >= 300 {
		b.Fatal(answer.Status, err)
	}
	return n.n
}

type counting struct {
	io.Reader
	n int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}
