package local_test

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/local"
)

// TestEndpointForms checks that an endpoint is accepted as a path and in the form of CSI_ENDPOINT.
func TestEndpointForms(t *testing.T) {
	here, err := filepath.Abs("s")
	if err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{
		"":            "",
		"/a/s":        "/a/s",
		"unix:///a/s": "/a/s",
		"unix:/a/s":   "/a/s",
		"unix:s":      here,
		"s":           here,
	} {
		if got := local.New(local.Options{Endpoints: map[string]string{"": given}}).Endpoints[""]; got != want {
			t.Errorf("%q is taken for %q, want %q", given, got, want)
		}
	}
}

// TestNoDriver checks that the error about an unreachable driver names the socket, and the driver if its name is known.
func TestNoDriver(t *testing.T) {
	for _, tt := range []struct{ endpoint, provisioner, want string }{
		{"unix:///nowhere/s", "", "driver at /nowhere/s: no driver listens on /nowhere/s"},
		{"unix:///nowhere/s", "a.example", "driver a.example: no driver listens on /nowhere/s"},
		{"tcp://host:1", "", "want a unix socket"},
	} {
		e := local.New(local.Options{Endpoints: map[string]string{tt.provisioner: tt.endpoint}})
		err := e.Open(t.Context(), engine.Session{
			Dir: t.TempDir(), StorageClasses: map[string]storagev1.StorageClass{"sc": {Provisioner: tt.provisioner}}})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v; want %q", tt.endpoint, err, tt.want)
		}
	}
}

// TestCheckEndpoint checks that only a socket passes, with or without a scheme.
func TestCheckEndpoint(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", "s")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for endpoint, want := range map[string]string{"s": "", "unix:s": "", "file": "file: not a socket: start it, or correct",
		"none": "none: stat ", "tcp://host:1": "want a unix socket"} {
		if err := local.CheckEndpoint(endpoint); (err == nil) != (want == "") ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", endpoint, err, want)
		}
	}
}

// TestSlowConnection checks that a driver on a busy machine has more time to answer a connection than the delay between
// two attempts to connect.
func TestSlowConnection(t *testing.T) {
	t.Parallel()
	d := serveAwkward(t, "")
	slow := filepath.Join(shortDir(t), "s")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", slow)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				time.Sleep(500 * time.Millisecond)
				driver, err := net.Dial("unix", d.socket)
				if err != nil {
					return
				}
				go func() { _, _ = io.Copy(driver, client); _ = driver.Close() }()
				_, _ = io.Copy(client, driver)
				_ = client.Close()
			}()
		}
	}()
	openForeign(t, slow)
}
