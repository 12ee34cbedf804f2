package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// bareClient is the environment variable that makes this program a client of a null server: ADDRESS METHOD DURATION.
const bareClient = "CNSBENCH_BARE_CLIENT"

// bare is the least that a client in Go can do: a goroutine for each connection writes one request again and again, and
// reads the answers. It neither signs, checks nor records anything.
var bare = tool{"a bare loop in Go", func(ctx context.Context, _ *env, address, method string, length time.Duration) (
	*exec.Cmd, func(), error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	c := interruptible(ctx, self)
	c.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s", bareClient, strings.TrimPrefix(address, "http://"), method,
		length+time.Second))
	return c, func() {}, nil
}}

// asBareClient is a bare loop if this process was started for it, and reports whether it was.
func asBareClient(ctx context.Context) bool {
	args := strings.Fields(os.Getenv(bareClient))
	if len(args) != 3 {
		return false
	}
	length, err := time.ParseDuration(args[2])
	if err == nil {
		err = bareLoops(ctx, args[0], args[1], length)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: bare client:", err)
		os.Exit(1)
	}
	return true
}

func bareLoops(ctx context.Context, address, method string, length time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	size := 0
	if method == methodPut {
		size = 4096
	}
	head := fmt.Appendf(nil, "%s /mycontainers1/myobjects1 HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n",
		method, address, size)
	request := append(head, make([]byte, size)...)
	var all errgroup.Group
	for range objectWorkers {
		all.Go(func() error {
			var dialer net.Dialer
			conn, err := dialer.DialContext(ctx, "tcp", address)
			if err != nil {
				return err
			}
			defer conn.Close()
			for buffer := make([]byte, 64<<10); ctx.Err() == nil; {
				if err := bareExchange(conn, request, buffer); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return all.Wait()
}

// bareExchange reads an answer up to the end of its body, whose length is 4 KiB or, for a PUT, 0.
func bareExchange(conn net.Conn, request, buffer []byte) error {
	if _, err := conn.Write(request); err != nil {
		return err
	}
	body := 4096
	if request[0] == 'P' {
		body = 0
	}
	for n := 0; ; {
		k, err := conn.Read(buffer[n:])
		if err != nil {
			return fmt.Errorf("%w after %q", err, buffer[:min(n, 200)])
		}
		n += k
		if head := bytes.Index(buffer[:n], []byte("\r\n\r\n")); head >= 0 && n >= head+4+body {
			return nil
		}
		if n == len(buffer) {
			return io.ErrShortBuffer
		}
	}
}
