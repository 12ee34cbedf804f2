package csiproxy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// besideSocket listens on a socket beside the driver's, to which the clients are configured.
type besideSocket struct{ driver, listen string }

func (p *besideSocket) dial(ctx context.Context) (*net.UnixConn, error) {
	return dialUnix(ctx, p.driver)
}

func dialUnix(ctx context.Context, path string) (*net.UnixConn, error) {
	c, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	return c.(*net.UnixConn), nil
}

func (p *besideSocket) serve(ctx context.Context, take func(*net.UnixConn), stands func()) error {
	switch probeSocket(p.listen) {
	case serving:
		return fmt.Errorf("another process is serving on %s: stop it or choose another socket", p.listen)
	case stale:
		if err := os.Remove(p.listen); err != nil {
			return err
		}
	}
	l, err := listenAt(p.listen)
	if err != nil {
		return err
	}
	defer func() {
		if l.owns(p.listen) {
			_ = os.Remove(p.listen)
		}
	}()
	var accepting sync.WaitGroup
	accepting.Go(func() { l.accept(take) })
	stands()
	<-ctx.Done()
	l.shutdown()
	accepting.Wait()
	return nil
}

// asideSuffix is appended to the driver's socket while the proxy has its path.
const asideSuffix = ".cnsbench-upstream"

// checkInterval is how often a taken socket is checked.
const checkInterval = time.Second

// recheckPause limits how often a driver that closes its connections is checked.
const recheckPause = 50 * time.Millisecond

// errNotReady is a temporary state: the driver is starting or stopping.
var errNotReady = errors.New("the driver's socket is not there")

// takeover serves at the driver's own path. The driver's path (socket) and the path with the suffix (aside)
// are only ever swapped by one system call, so that a process serves at the driver's path at each instant.
type takeover struct {
	socket string
	log    func(string)

	listener    *listener       // the proxy's at socket; nil: not yet
	driverEnded <-chan struct{} // closed when the driver may have ended
	accepting   sync.WaitGroup
	renameMu    sync.RWMutex // held while paths change, so that dial does not reach the proxy itself
	returned    bool         // the driver has its path back
	lastNote    string       // last log line
}

func (t *takeover) aside() string { return t.socket + asideSuffix }

func (t *takeover) dial(ctx context.Context) (*net.UnixConn, error) {
	t.renameMu.RLock()
	defer t.renameMu.RUnlock()
	if t.returned {
		return dialUnix(ctx, t.socket)
	}
	return dialUnix(ctx, t.aside())
}

// serve takes the socket over as soon as a driver serves on it, again whenever the driver creates a new one,
// and gives it back at the end.
func (t *takeover) serve(ctx context.Context, take func(*net.UnixConn), stands func()) (err error) {
	unlock, err := lock(ctx, t.socket)
	if err != nil {
		return err
	}
	defer unlock()
	if err := restore(t.socket); err != nil {
		return err
	}
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		if err := t.step(ctx, take); err != nil {
			t.logChange(fmt.Sprintf("not recording: %v", err))
		} else {
			t.logChange("recording at " + t.socket)
			stands()
		}
		select {
		case <-ctx.Done():
			err := t.giveBack()
			if t.listener != nil {
				t.listener.shutdown()
			}
			t.accepting.Wait()
			return err
		case <-t.driverEnded:
			time.Sleep(recheckPause)
		case <-tick.C:
		}
	}
}

// logChange logs a line that differs from the last.
func (t *takeover) logChange(line string) {
	if line != t.lastNote {
		t.log(line)
		t.lastNote = line
	}
}

// step reacts to the state of the two paths; an error says why nothing is recorded.
func (t *takeover) step(ctx context.Context, take func(*net.UnixConn)) error {
	if t.listener != nil && t.listener.owns(t.socket) {
		return t.checkDriver(ctx)
	}
	switch probeSocket(t.socket) {
	case serving: // the driver's, initially or again
		return t.takeOver(ctx, take)
	case absent:
		// A driver that ends removes its path, which is the proxy's now. If the
		// driver still answers, only the path was removed.
		if probeSocket(t.aside()) != serving {
			return errNotReady
		}
		l, err := listenAt(t.socket) // fails if another process was faster
		if err != nil {
			return err
		}
		t.startAccepting(ctx, l, take)
		return l.copyAttributes(t.aside())
	case stale:
		return fmt.Errorf("%w: no process serves at %s", errNotReady, t.socket)
	default:
		return fmt.Errorf("%s is not a socket", t.socket)
	}
}

// checkDriver handles a driver that has ended. Its stale socket goes back to its path: a starting driver may
// refuse a path on which a process serves, and the proxy is of no use to clients meanwhile.
func (t *takeover) checkDriver(ctx context.Context) error {
	select {
	case <-t.driverEnded:
	default:
		return nil
	}
	switch probeSocket(t.aside()) {
	case serving:
		t.driverEnded = watchDriver(ctx, t.dial)
		return nil
	case absent:
		return fmt.Errorf("%s was removed: the driver is unreachable until it is restarted", t.aside())
	}
	if err := t.giveBack(); err != nil {
		return err
	}
	t.listener.shutdown()
	t.listener = nil
	return errNotReady
}

// takeOver puts a new socket of the proxy in place of the driver's.
func (t *takeover) takeOver(ctx context.Context, take func(*net.UnixConn)) error {
	t.renameMu.Lock()
	defer t.renameMu.Unlock()
	// The socket aside belongs to a previous driver.
	if err := remove(t.aside()); err != nil {
		return err
	}
	l, err := listenAt(t.aside())
	if err != nil {
		return err
	}
	err = l.copyAttributes(t.socket)
	if err == nil {
		err = swapNames(t.aside(), t.socket)
	}
	if err != nil || !l.owns(t.socket) {
		l.discard(t.aside())
		return errors.Join(errNotReady, err)
	}
	t.returned = false
	t.startAccepting(ctx, l, take)
	return nil
}

// startAccepting accepts at a new listener and shuts down the previous one.
func (t *takeover) startAccepting(ctx context.Context, l *listener, take func(*net.UnixConn)) {
	if t.listener != nil {
		t.listener.shutdown()
	}
	t.listener = l
	t.accepting.Go(func() { l.accept(take) })
	t.driverEnded = watchDriver(ctx, t.dial)
}

// giveBack returns the path to the driver.
func (t *takeover) giveBack() (err error) {
	t.renameMu.Lock()
	defer t.renameMu.Unlock()
	defer func() { t.returned = err == nil }()
	if t.listener == nil || !t.listener.owns(t.socket) {
		return restore(t.socket) // as after a crash: the driver's new socket stays
	}
	if probeSocket(t.aside()) == absent {
		return remove(t.socket)
	}
	if err := swapNames(t.aside(), t.socket); err != nil {
		return fmt.Errorf("give %s back to the driver: %w", t.socket, err)
	}
	if !t.listener.owns(t.aside()) {
		// The driver has just created a new socket.
		if err := swapNames(t.aside(), t.socket); err != nil {
			return fmt.Errorf("give %s back to the driver: %w", t.socket, err)
		}
	}
	return remove(t.aside())
}

// Restore returns a socket that was taken over to its driver after a proxy died. It does nothing if nothing
// is wrong, and fails while a proxy is running.
func Restore(ctx context.Context, socket string) error {
	path, err := socketPath(socket)
	if err != nil {
		return err
	}
	unlock, err := lock(ctx, path)
	if err != nil {
		return err
	}
	defer unlock()
	return restore(path)
}

// restore decides by the state of the two paths; the lock is held, so no live proxy serves on either.
//
//	socket   aside    meaning                                   action
//	any      absent   normal                                    none
//	absent   serving  a path was removed under a dead proxy     aside → socket
//	stale    serving  a proxy died here                         aside → socket
//	serving  any      a proxy died before or after its swap,    aside removed
//	                  or the driver has created a new socket
//	any      stale    driver and proxy have both ended          aside removed
func restore(socket string) error {
	aside := socket + asideSuffix
	for range 10 { // retry when the driver has just changed a path
		there, back := probeSocket(socket), probeSocket(aside)
		switch {
		case back == absent:
			return nil
		case there == notSocket || back == notSocket:
			return fmt.Errorf("%s or %s is not a socket: nothing was changed", socket, aside)
		case back == serving && there == absent:
			// If the driver is faster, the next iteration finds its new socket.
			_ = unix.Renameat2(unix.AT_FDCWD, aside, unix.AT_FDCWD, socket, unix.RENAME_NOREPLACE)
		case back == serving && there == stale:
			if err := swapBack(aside, socket); err != nil {
				return err
			}
		default:
			return remove(aside)
		}
	}
	return fmt.Errorf("%s keeps changing: the driver restarts continuously", socket)
}

// swapBack puts the driver's socket in place of a stale one. It swaps them, so that a socket that the driver
// creates at that moment is detected and put back.
func swapBack(aside, socket string) error {
	err := swapNames(aside, socket)
	if err == nil && probeSocket(aside) == serving {
		err = swapNames(aside, socket)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("give %s back to the driver: %w", socket, err)
	}
	return nil
}

// socketState is what a path refers to.
type socketState int

const (
	absent  socketState = iota
	serving             // a process accepts there
	stale               // a socket without a listener
	notSocket
)

// probeSocket connects; a full listener answers too (EAGAIN).
func probeSocket(path string) socketState {
	info, err := os.Lstat(path)
	if err != nil {
		return absent
	}
	if info.Mode()&fs.ModeSocket == 0 {
		return notSocket
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return serving // out of file descriptors: assume the safe state
	}
	defer func() { _ = unix.Close(fd) }()
	switch err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); {
	case errors.Is(err, unix.ENOENT):
		return absent
	case errors.Is(err, unix.ECONNREFUSED):
		return stale
	}
	return serving
}

// listener is a socket of the proxy, identified by its inode, since its path may change.
type listener struct {
	*net.UnixListener
	dev, ino uint64
}

func listenAt(path string) (*listener, error) {
	if len(path) > 107 {
		return nil, fmt.Errorf("socket path %s exceeds 107 characters: mount its directory at a shorter path", path)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // the path may be the driver's by then
	st, err := inode(path)
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	return &listener{UnixListener: l, dev: st.Dev, ino: st.Ino}, nil
}

func inode(path string) (*syscall.Stat_t, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil, fmt.Errorf("%s: no inode number", path)
	}
	return st, nil
}

// owns reports whether the path refers to this listener.
func (l *listener) owns(path string) bool {
	st, err := inode(path)
	return err == nil && st.Dev == l.dev && st.Ino == l.ino
}

// copyAttributes gives the listener, at its first path, the owner and mode of another socket.
func (l *listener) copyAttributes(path string) error {
	st, err := inode(path)
	if err != nil {
		return err
	}
	name := l.Addr().String()
	if err := os.Chmod(name, fs.FileMode(st.Mode&0o777)); err != nil {
		return err
	}
	if err := os.Chown(name, int(st.Uid), int(st.Gid)); err != nil && os.Geteuid() == 0 {
		return err
	}
	return nil
}

// accept passes connections to take until the listener is shut down.
func (l *listener) accept(take func(*net.UnixConn)) {
	for {
		c, err := l.AcceptUnix()
		if err == nil {
			take(c)
			continue
		}
		if errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
			_ = l.Close()
			return
		}
		time.Sleep(10 * time.Millisecond) // out of descriptors
	}
}

// shutdown accepts the pending connections and closes the listener. It does not remove its path.
func (l *listener) shutdown() { _ = l.SetDeadline(time.Now().Add(50 * time.Millisecond)) }

// discard closes an unused listener and removes its path.
func (l *listener) discard(path string) {
	if l.owns(path) {
		_ = os.Remove(path)
	}
	_ = l.Close()
}

// swapNames swaps two paths atomically.
func swapNames(a, b string) error {
	err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("the file system of %s cannot swap two names atomically, which taking over a socket needs: listen beside it instead: %w", b, err)
	}
	return &os.LinkError{Op: "exchange", Old: a, New: b, Err: err}
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// lockTimeout is how long a proxy waits for another one to end.
const lockTimeout = 30 * time.Second

// lock excludes other proxies from a socket with a file beside it, which unlock removes. The lock ends with
// the process.
func lock(ctx context.Context, socket string) (unlock func(), err error) {
	name := socket + ".cnsbench-lock"
	for deadline := time.Now().Add(lockTimeout); ; time.Sleep(20 * time.Millisecond) {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("create a lock file beside the driver's socket: %w", err)
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil && stillNamed(f, name) {
			return func() {
				_ = os.Remove(name)
				_ = f.Close()
			}, nil
		}
		_ = f.Close()
		if ctx.Err() != nil || time.Now().After(deadline) {
			return nil, fmt.Errorf("another proxy is running at %s: stop it first: %w", socket,
				errors.Join(err, ctx.Err()))
		}
	}
}

// stillNamed reports whether a file still has its name: the previous holder of the lock removes it.
func stillNamed(f *os.File, name string) bool {
	mine, err1 := f.Stat()
	there, err2 := os.Stat(name)
	return err1 == nil && err2 == nil && os.SameFile(mine, there)
}

// socketPath returns an absolute path and accepts kubelet's form "unix://…".
func socketPath(s string) (string, error) {
	return filepath.Abs(strings.TrimPrefix(strings.TrimPrefix(s, "unix://"), "unix:"))
}
