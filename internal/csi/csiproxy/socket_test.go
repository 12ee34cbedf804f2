package csiproxy_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver"
	"github.com/cnsbench/cnsbench/internal/csi/csiproxy"
)

// socketAt listens on a socket and sends name to each client.
func socketAt(t *testing.T, path, name string) net.Listener {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(c, name)
			c.Close()
		}
	}()
	return l
}

// who returns the owner of a path: the name that it sends, "dead", "file" or "".
func who(path string) string {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return ""
	case info.Mode()&os.ModeSocket == 0:
		return "file"
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		return "dead"
	}
	defer c.Close()
	name, _ := bufio.NewReader(c).ReadString('\n')
	return name
}

// TestRestore checks all possible states of the two paths.
func TestRestore(t *testing.T) {
	for _, tt := range []struct{ socket, aside, want, wantAside string }{
		{"", "", "", ""},
		{"", "dead", "", ""},
		{"", "driver", "driver", ""}, // the driver's name was removed while the proxy in front of it was dead
		{"", "file", "", "file"},
		{"dead", "", "dead", ""},
		{"dead", "dead", "dead", ""},     // the machine was restarted
		{"dead", "driver", "driver", ""}, // the proxy was killed by SIGKILL while it served
		{"dead", "file", "dead", "file"},
		{"driver", "", "driver", ""},
		{"driver", "dead", "driver", ""}, // the proxy died before the take-over, or after it returned the socket
		{"driver", "old", "driver", ""},  // the driver was restarted while the old one terminates
		{"driver", "file", "driver", "file"},
		{"file", "", "file", ""},
		{"file", "dead", "file", "dead"},
		{"file", "driver", "file", "driver"},
		{"file", "file", "file", "file"},
	} {
		t.Run(tt.socket+" "+tt.aside, func(t *testing.T) {
			socket := filepath.Join(shortDir(t), "csi.sock")
			for path, what := range map[string]string{socket: tt.socket, socket + ".cnsbench-upstream": tt.aside} {
				switch what {
				case "":
				case "dead":
					socketAt(t, path, "").Close()
				case "file":
					if err := os.WriteFile(path, nil, 0o600); err != nil {
						t.Fatal(err)
					}
				default:
					socketAt(t, path, what)
				}
			}
			err := csiproxy.Restore(t.Context(), "unix://"+socket)
			if refused := tt.wantAside == "file" || tt.socket == "file" && tt.aside != ""; (err != nil) != refused {
				t.Errorf("error %v", err)
			}
			if got := who(socket); got != tt.want {
				t.Errorf("at the driver's name is %q, want %q", got, tt.want)
			}
			if got := who(socket + ".cnsbench-upstream"); got != tt.wantAside {
				t.Errorf("aside is %q, want %q", got, tt.wantAside)
			}
		})
	}
}

// takeOver starts a proxy and waits until it has taken over the socket.
func takeOver(t *testing.T, socket string) (*csiproxy.Proxy, func()) {
	t.Helper()
	p, stop := startProxy(t, csiproxy.Options{TakeOver: socket})
	waitFor(t, "the take-over", func() bool { return exists(socket + ".cnsbench-upstream") })
	return p, stop
}

// TestTakeOver checks that clients reach the driver at any time during the start and the end of a proxy.
func TestTakeOver(t *testing.T) {
	socket := filepath.Join(shortDir(t), "csi.sock")
	startDriver(t, socket, csidriver.Options{})
	if err := os.Chmod(socket, 0o640); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	calls := make(chan int)
	go func() {
		n := 0
		for ; ctx.Err() == nil; n++ {
			if err := probe(context.Background(), socket); err != nil {
				t.Errorf("call %d: %v", n, err)
			}
		}
		calls <- n
	}()
	recorded := 0
	for range 5 {
		n := 0
		p, stop := takeOver(t, socket)
		following, end := context.WithCancel(t.Context())
		ended, seen := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			p.Follow(following, func(r csiproxy.Record, _ int64) error {
				if r.End != 0 && r.RPC == "Probe" && r.Code == "OK" {
					recorded++
					if n++; n == 5 {
						close(seen)
					}
				}
				return nil
			})
		}()
		if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("the proxy's socket: %v %v", info.Mode(), err)
		}
		select {
		case <-seen:
		case <-time.After(10 * time.Second):
			t.Error("too few calls were recorded")
		}
		stop()
		end()
		<-ended
		if files, _ := os.ReadDir(filepath.Dir(socket)); len(files) != 1 {
			t.Errorf("left behind: %v", files)
		}
	}
	cancel()
	n := <-calls
	t.Logf("%d calls, %d recorded", n, recorded)
	if recorded < 10 || n <= recorded {
		t.Errorf("%d of %d calls were recorded", recorded, n)
	}
}

// TestTakeOverRefused checks that contradictory options and a second proxy are rejected.
func TestTakeOverRefused(t *testing.T) {
	for _, o := range []csiproxy.Options{{}, {Upstream: "/a"}, {Listen: "/a"}, {TakeOver: "/a", Listen: "/b"},
		{Upstream: "/a", Listen: "unix:///a"}} {
		if _, err := csiproxy.New(o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
	socket := filepath.Join(shortDir(t), "csi.sock")
	startDriver(t, socket, csidriver.Options{})
	takeOver(t, socket)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := csiproxy.Restore(ctx, socket); err == nil || !strings.Contains(err.Error(), "another proxy") {
		t.Errorf("restoring under a proxy at work: %v", err)
	}
	if !answers(t.Context(), socket) {
		t.Error("the driver is gone")
	}
}

// driverProcess starts a driver and, like the kubelet, restarts it if it exits at once.
func driverProcess(t *testing.T, socket string) *exec.Cmd {
	t.Helper()
	var cmd *exec.Cmd
	waitFor(t, "the driver to start", func() bool {
		cmd = exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), driverEnv+"="+socket)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { cmd.Wait(); close(ended) }()
		t.Cleanup(func() { cmd.Process.Kill(); <-ended })
		for {
			select {
			case <-ended:
				return false
			case <-time.After(20 * time.Millisecond):
			}
			if answers(t.Context(), socket) {
				return true
			}
		}
	})
	return cmd
}

// TestNeighbours checks that each socket of a directory has its own proxy.
func TestNeighbours(t *testing.T) {
	dir := shortDir(t)
	for _, name := range []string{"a.sock", "b.sock"} {
		startDriver(t, filepath.Join(dir, name), csidriver.Options{})
		takeOver(t, filepath.Join(dir, name))
	}
	for _, name := range []string{"a.sock", "b.sock"} {
		if err := probe(t.Context(), filepath.Join(dir, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDriverRestarts checks that a driver that exits or is killed can restart as if there were no proxy, and that the
// proxy takes over its new socket. The CNSBench driver refuses to start if a process listens on its socket.
func TestDriverRestarts(t *testing.T) {
	socket := filepath.Join(shortDir(t), "csi.sock")
	cmd := driverProcess(t, socket)
	p, stop := takeOver(t, socket)
	var w watcher
	w.follow(t, serveRecords(t, p))
	recorded := func(name string) func() bool {
		return func() bool {
			if _, err := createVolume(t.Context(), dial(t, socket), name); err != nil {
				return false
			}
			all := w.of("CreateVolume", true)
			return len(all) > 0 && all[len(all)-1].Name == name
		}
	}
	waitFor(t, "a record", recorded("pvc"))
	for i, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGKILL} {
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		cmd = driverProcess(t, socket)
		t.Logf("after %v a driver was there in %v", signal, time.Since(began))
		waitFor(t, "records of the new driver", recorded(fmt.Sprint("again-", i)))
	}
	// Only the name is removed. The driver still listens and gets its name back.
	if err := os.Remove(socket); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the name", recorded("name"))
	// A second driver creates a new socket while the old one still serves.
	if err := os.Remove(socket); err != nil {
		t.Fatal(err)
	}
	startDriver(t, socket, csidriver.Options{})
	waitFor(t, "the second driver", recorded("second"))
	stop()
	if !answers(t.Context(), socket) || exists(socket+".cnsbench-upstream") {
		t.Error("the driver has not its socket back")
	}
}

// TestKilled checks that the driver gets its socket back from proxies that are killed at random times.
func TestKilled(t *testing.T) {
	socket := filepath.Join(shortDir(t), "csi.sock")
	startDriver(t, socket, csidriver.Options{})
	r := rand.New(rand.NewPCG(1, 2))
	orphans := 0
	for i := range 30 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), proxyEnv+"="+socket)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			time.Sleep(time.Duration(r.IntN(60)) * time.Millisecond)
		} else { // kill it while it returns the socket
			waitFor(t, "the take-over", func() bool {
				return exists(socket+".cnsbench-upstream") &&
					answers(t.Context(), socket)
			})
			cmd.Process.Signal(syscall.SIGTERM)
			time.Sleep(time.Duration(r.IntN(3000)) * time.Microsecond)
		}
		cmd.Process.Kill()
		cmd.Wait()
		if exists(socket + ".cnsbench-upstream") {
			orphans++
		}
		if i%3 == 0 { // in the other rounds the next proxy repairs it
			if err := csiproxy.Restore(t.Context(), socket); err != nil {
				t.Fatal(err)
			}
			if !answers(t.Context(), socket) || exists(socket+".cnsbench-upstream") {
				t.Fatalf("round %d: the driver has not its socket back", i)
			}
		}
	}
	t.Logf("%d orphaned states", orphans)
	if orphans == 0 {
		t.Error("nothing was ever orphaned: this test has shown nothing")
	}
	_, stop := takeOver(t, socket)
	waitFor(t, "the repaired socket", func() bool { return answers(t.Context(), socket) })
	stop()
	if !answers(t.Context(), socket) || exists(socket+".cnsbench-upstream") {
		t.Error("the driver has not its socket back")
	}
}

// TestGuard checks that the driver gets its socket back if the proxy or the guard is killed by SIGKILL.
func TestGuard(t *testing.T) {
	for _, victim := range []string{"the proxy", "the guard", "nobody"} {
		t.Run(victim, func(t *testing.T) {
			socket := filepath.Join(shortDir(t), "csi.sock")
			startDriver(t, socket, csidriver.Options{})
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), proxyEnv+"="+socket, guardEnv+"=1")
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { cmd.Process.Kill() })
			line, err := bufio.NewReader(out).ReadString('\n')
			pid, err2 := strconv.Atoi(strings.TrimSpace(line))
			if err != nil || err2 != nil {
				t.Fatal(line, err, err2)
			}
			waitFor(t, "the take-over", func() bool {
				return exists(socket+".cnsbench-upstream") &&
					answers(t.Context(), socket)
			})
			switch victim {
			case "the proxy":
				err = syscall.Kill(pid, syscall.SIGKILL)
			case "the guard":
				err = cmd.Process.Kill()
			default:
				err = cmd.Process.Signal(syscall.SIGTERM)
			}
			if err != nil {
				t.Fatal(err)
			}
			waitFor(t, "the driver", func() bool {
				return !exists(socket+".cnsbench-upstream") &&
					answers(t.Context(), socket)
			})
			if err := cmd.Wait(); (err != nil) != (victim != "nobody") {
				t.Errorf("the guard ended with %v", err)
			}
			waitFor(t, "the proxy's end", func() bool { return syscall.Kill(pid, 0) != nil })
		})
	}
}
