package csiproxy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver"
	"github.com/cnsbench/cnsbench/internal/csi/csiproxy"
	"github.com/cnsbench/cnsbench/internal/op"
)

// These variables make the test binary run as a proxy that tests can kill, or as its guard.
const (
	proxyEnv = "CSIPROXY_TEST_TAKE_OVER"
	guardEnv = "CSIPROXY_TEST_GUARD"
	// driverEnv makes the test binary run as a driver that tests can kill.
	driverEnv = "CSIPROXY_TEST_DRIVER"
)

func TestMain(m *testing.M) {
	var err error
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	switch socket := os.Getenv(proxyEnv); {
	case os.Getenv(driverEnv) != "":
		var server *csidriver.Server
		if server, err = csidriver.New(csidriver.Options{Backend: "null"}); err == nil {
			err = server.Serve(ctx, os.Getenv(driverEnv))
		}
	case socket == "":
		stop()
		os.Exit(m.Run())
	case os.Getenv(guardEnv) != "":
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), guardEnv+"=")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		err = csiproxy.Guard(ctx, socket, cmd)
	default:
		var p *csiproxy.Proxy
		if p, err = csiproxy.New(csiproxy.Options{TakeOver: socket, Driver: "x", Grace: time.Second}); err == nil {
			fmt.Println(os.Getpid())
			err = p.Run(ctx)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "proxy:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// driver serves the null backend on a socket until stop or the end of the test.
type driver struct {
	socket, truth string
	stop          func()
}

func startDriver(t testing.TB, socket string, o csidriver.Options) *driver {
	t.Helper()
	o.Backend = "null"
	d := &driver{socket: socket, truth: filepath.Join(t.TempDir(), "truth.jsonl")}
	o.TruthLog = d.truth
	server, err := csidriver.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- errors.Join(server.Serve(ctx, socket), server.Close()) }()
	d.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("driver: %v", err)
		}
	})
	t.Cleanup(d.stop)
	waitFor(t, "the driver", func() bool { return answers(t.Context(), socket) })
	return d
}

// records returns the records of the driver's own log.
func (d *driver) records(t testing.TB) []csidriver.Record {
	t.Helper()
	f, err := os.Open(d.truth)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []csidriver.Record
	for dec := json.NewDecoder(f); dec.More(); {
		var r csidriver.Record
		if err := dec.Decode(&r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// startProxy runs a proxy until stop or the end of the test.
func startProxy(t testing.TB, o csiproxy.Options) (*csiproxy.Proxy, func()) {
	t.Helper()
	if o.Driver == "" {
		o.Driver = "null.csi.cnsbench.dev"
	}
	if o.Grace == 0 {
		o.Grace = 5 * time.Second
	}
	o.Log = func(line string) { t.Log("proxy: " + line) }
	p, err := csiproxy.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("proxy: %v", err)
		}
	})
	t.Cleanup(stop)
	return p, stop
}

// beside starts a driver and a proxy on a second socket. Clients use the socket of the proxy, which is returned.
func beside(t testing.TB, o csidriver.Options, po csiproxy.Options) (*driver, *csiproxy.Proxy, string) {
	t.Helper()
	dir := shortDir(t)
	d := startDriver(t, filepath.Join(dir, "csi.sock"), o)
	po.Upstream, po.Listen = d.socket, filepath.Join(dir, "proxied.sock")
	p, _ := startProxy(t, po)
	waitFor(t, "the proxy", func() bool { return answers(t.Context(), po.Listen) })
	return d, p, po.Listen
}

// shortDir returns a temporary directory whose path is short enough for a socket path of at most 107 characters.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "csip")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func dial(t testing.TB, socket string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// answers reports whether a driver responds on the socket.
func answers(ctx context.Context, socket string) bool { return probe(ctx, socket) == nil }

func probe(ctx context.Context, socket string) error {
	// Dial the socket directly first, because gRPC waits a second after a failed connection.
	c, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	c.Close()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err = csi.NewIdentityClient(conn).Probe(ctx, &csi.ProbeRequest{})
	return err
}

func waitFor(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timeout waiting for %s", what)
		}
	}
}

const token = "a token of the tests' own"

// serveRecords serves the records of a proxy on the loopback interface and returns the address.
func serveRecords(t testing.TB, p *csiproxy.Proxy) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Serve(ctx, listener, token) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serving records: %v", err)
		}
	})
	return listener.Addr().String()
}

// watcher stores what the handlers of a client receive.
type watcher struct {
	mu    sync.Mutex
	calls []csiproxy.Call
	gaps  []csiproxy.Gap
}

func (w *watcher) handlers() csiproxy.Handlers {
	return csiproxy.Handlers{
		Call: func(c csiproxy.Call) { w.mu.Lock(); defer w.mu.Unlock(); w.calls = append(w.calls, c) },
		Gap:  func(g csiproxy.Gap) { w.mu.Lock(); defer w.mu.Unlock(); w.gaps = append(w.gaps, g) },
	}
}

func (w *watcher) follow(t testing.TB, address string) (*csiproxy.Client, op.Clock) {
	t.Helper()
	clock := op.NewClock()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c, err := csiproxy.Dial(ctx, address, token, clock, w.handlers())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, clock
}

// of returns the calls of an RPC that have ended, or those in flight. An empty name selects all RPCs.
func (w *watcher) of(rpc string, ended bool) []csiproxy.Call {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.calls), func(c csiproxy.Call) bool {
		return rpc != "" && c.RPC != rpc || c.End.Known() != ended
	})
}

func (w *watcher) lacks() []csiproxy.Gap {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.gaps)
}

var mount = &csi.VolumeCapability{
	AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
	AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
}

func createVolume(ctx context.Context, conn *grpc.ClientConn, name string) (string, error) {
	resp, err := csi.NewControllerClient(conn).CreateVolume(ctx, &csi.CreateVolumeRequest{
		Name: name, VolumeCapabilities: []*csi.VolumeCapability{mount}, Secrets: map[string]string{"password": "hunter2-name"}})
	return resp.GetVolume().GetVolumeId(), err
}
