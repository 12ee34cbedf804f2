package cli

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/csi/csiproxy"
)

// TestProxyServesOnceItStands checks that the port opens only when the proxy has taken over the socket; without a
// driver it stays closed.
func TestProxyServesOnceItStands(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "csi.sock")
	proxy, err := csiproxy.New(csiproxy.Options{TakeOver: socket})
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- runProxy(ctx, io.Discard, proxy, proxyFlags{serve: address}, strings.Repeat("t", 32))
	}()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	open := func() bool {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return false
		}
		return c.Close() == nil
	}
	time.Sleep(1500 * time.Millisecond) // the proxy checks the socket once per second
	if open() {
		t.Fatal("the port is open, and there is no driver")
	}
	driver, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer driver.Close()
	go func() {
		for {
			if _, err := driver.Accept(); err != nil {
				return
			}
		}
	}()
	for deadline := time.Now().Add(20 * time.Second); !open(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the port stays closed")
		}
	}
}

// TestProxyFlags checks that invalid flags are reported before any socket is changed.
func TestProxyFlags(t *testing.T) {
	t.Setenv(envProxyToken, "")
	t.Setenv(envProxyGuarded, "")
	dir := t.TempDir()
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"nothing", nil, exitUsage, "socket to take over"},
		{"both", []string{"--take-over", "/a", "--listen", "/b"}, exitUsage, "socket to take over"},
		{"itself", []string{"--upstream", "/a", "--listen", "unix:///a"}, exitUsage, "take the socket over"},
		{"no token", []string{"--take-over", filepath.Join(dir, "a"), "--serve", "127.0.0.1:0"}, exitUsage,
			envProxyToken},
		{"no token file", []string{"--take-over", filepath.Join(dir, "a"), "--token-file", filepath.Join(dir, "none")},
			exitUsage, "none"},
		{"nothing to restore", []string{"--restore", filepath.Join(dir, "a")}, exitOK, ""},
		{"no directory", []string{"--restore", filepath.Join(dir, "no", "a")}, exitFailed,
			"beside the driver's socket"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out, errs strings.Builder
			code := Main(append([]string{"csi", "proxy"}, tt.args...), strings.NewReader(""), &out, &errs)
			if code != tt.code || !strings.Contains(errs.String(), tt.want) {
				t.Errorf("exit %d, %s", code, errs.String())
			}
		})
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}
