package csiproxy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// plain listens beside the driver's socket; somebody points the clients at it.
type plain struct{ driver, listen string }

func (p *plain) dial(ctx context.Context) (*net.UnixConn, error) { return dialUnix(ctx, p.driver) }

func dialUnix(ctx context.Context, path string) (*net.UnixConn, error) {
	c, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	return c.(*net.UnixConn), nil
}

func (p *plain) serve(ctx context.Context, take func(*net.UnixConn), stands func()) error {
	switch look(p.listen) {
	case alive:
		return fmt.Errorf("another process is serving on %s; stop it or choose another socket", p.listen)
	case dead:
		if err := os.Remove(p.listen); err != nil {
			return err
		}
	}
	l, err := listenAt(p.listen)
	if err != nil {
		return err
	}
	defer func() {
		if l.mine(p.listen) {
			_ = os.Remove(p.listen)
		}
	}()
	var accepting sync.WaitGroup
	accepting.Go(func() { l.accept(take) })
	stands()
	<-ctx.Done()
	l.retire()
	accepting.Wait()
	return nil
}

// suffix is what the driver's socket is called while we have its name.
const suffix = ".cnsbench-upstream"

// period is how often a taken socket is looked at.
const period = time.Second

// calm bounds how often a driver is looked at that ends its connections.
const calm = 50 * time.Millisecond

// errLater is a state that passes: the driver is about to be there, or gone.
var errLater = errors.New("the driver's socket is not there")

// takeover stands at the driver's own path. The two names, the driver's
// (socket) and the one with the suffix (aside), only ever change places by
// one system call, so that at each instant somebody is at the driver's name.
type takeover struct {
	socket string
	say    func(string)

	at        *listener       // ours at socket; nil: not yet
	over      <-chan struct{} // closed when the driver has ended, perhaps
	accepting sync.WaitGroup
	moving    sync.RWMutex // held while names change: a dial must not find ourselves
	back      bool         // the driver has its name again
	last      string       // what was said last
}

func (t *takeover) aside() string { return t.socket + suffix }

func (t *takeover) dial(ctx context.Context) (*net.UnixConn, error) {
	t.moving.RLock()
	defer t.moving.RUnlock()
	if t.back {
		return dialUnix(ctx, t.socket)
	}
	return dialUnix(ctx, t.aside())
}

// serve takes the socket over as soon as a driver is there, again whenever
// the driver has made a new one, and gives it back at the end.
func (t *takeover) serve(ctx context.Context, take func(*net.UnixConn), stands func()) (err error) {
	unlock, err := lock(ctx, t.socket)
	if err != nil {
		return err
	}
	defer unlock()
	if err := restore(t.socket); err != nil {
		return err
	}
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		if err := t.look(ctx, take); err != nil {
			t.note(fmt.Sprintf("not recording: %v", err))
		} else {
			t.note("recording at " + t.socket)
			stands()
		}
		select {
		case <-ctx.Done():
			err := t.giveBack()
			if t.at != nil {
				t.at.retire()
			}
			t.accepting.Wait()
			return err
		case <-t.over:
			time.Sleep(calm)
		case <-tick.C:
		}
	}
}

// note says what has changed.
func (t *takeover) note(line string) {
	if line != t.last {
		t.say(line)
		t.last = line
	}
}

// look does what the state of the two names asks for; an error says why
// nothing is being recorded.
func (t *takeover) look(ctx context.Context, take func(*net.UnixConn)) error {
	if t.at != nil && t.at.mine(t.socket) {
		return t.check(ctx)
	}
	switch look(t.socket) {
	case alive: // the driver's, at first or again
		return t.take(ctx, take)
	case absent:
		// A driver that ends removes its name, which is ours now. Only the name
		// is gone if the driver still answers.
		if look(t.aside()) != alive {
			return errLater
		}
		l, err := listenAt(t.socket) // fails if somebody was faster
		if err != nil {
			return err
		}
		t.begin(ctx, l, take)
		return l.like(t.aside())
	case dead:
		return fmt.Errorf("%w: nobody answers at %s", errLater, t.socket)
	default:
		return fmt.Errorf("%s is not a socket", t.socket)
	}
}

// check sees to a driver that has ended. Its socket goes back to its name,
// dead as it is: a driver that starts may well refuse to if somebody answers
// there, and no client is better off with us.
func (t *takeover) check(ctx context.Context) error {
	select {
	case <-t.over:
	default:
		return nil
	}
	switch look(t.aside()) {
	case alive:
		t.over = vigil(ctx, t.dial)
		return nil
	case absent:
		return fmt.Errorf("%s was removed: the driver cannot be reached until it is started anew", t.aside())
	}
	if err := t.giveBack(); err != nil {
		return err
	}
	t.at.retire()
	t.at = nil
	return errLater
}

// take puts a new socket of ours in the place of the driver's.
func (t *takeover) take(ctx context.Context, take func(*net.UnixConn)) error {
	t.moving.Lock()
	defer t.moving.Unlock()
	// What is aside belongs to a driver that has been succeeded.
	if err := remove(t.aside()); err != nil {
		return err
	}
	l, err := listenAt(t.aside())
	if err != nil {
		return err
	}
	err = l.like(t.socket)
	if err == nil {
		err = exchange(t.aside(), t.socket)
	}
	if err != nil || !l.mine(t.socket) {
		l.drop(t.aside())
		return errors.Join(errLater, err)
	}
	t.back = false
	t.begin(ctx, l, take)
	return nil
}

// begin accepts at a new listener, and has done with the one before.
func (t *takeover) begin(ctx context.Context, l *listener, take func(*net.UnixConn)) {
	if t.at != nil {
		t.at.retire()
	}
	t.at = l
	t.accepting.Go(func() { l.accept(take) })
	t.over = vigil(ctx, t.dial)
}

// giveBack gives the name back to the driver.
func (t *takeover) giveBack() (err error) {
	t.moving.Lock()
	defer t.moving.Unlock()
	defer func() { t.back = err == nil }()
	if t.at == nil || !t.at.mine(t.socket) {
		return restore(t.socket) // as if after a crash: the driver's new socket stays
	}
	if look(t.aside()) == absent {
		return remove(t.socket)
	}
	if err := exchange(t.aside(), t.socket); err != nil {
		return fmt.Errorf("give %s back to the driver: %w", t.socket, err)
	}
	if !t.at.mine(t.aside()) {
		// The driver had made a new one a moment before.
		if err := exchange(t.aside(), t.socket); err != nil {
			return fmt.Errorf("give %s back to the driver: %w", t.socket, err)
		}
	}
	return remove(t.aside())
}

// Restore gives a socket that was taken over back to its driver, after a
// proxy that could not do so itself. Nothing is done where nothing is amiss.
// It fails while a proxy is at work.
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

// restore decides by who answers at the two names; the lock is held, so none
// of them is a proxy's that is alive.
//
//	socket   aside    it is                                      done
//	any      absent   as it should be                            nothing
//	absent   alive    a name was removed under a dead proxy      aside → socket
//	dead     alive    a proxy died here                          aside → socket
//	alive    any      a proxy died before or after its exchange, aside removed
//	                  or the driver has made a new socket
//	any      dead     driver and proxy are both gone             aside removed
func restore(socket string) error {
	aside := socket + suffix
	for range 10 { // again when the driver has just moved
		there, back := look(socket), look(aside)
		switch {
		case back == absent:
			return nil
		case there == other || back == other:
			return fmt.Errorf("%s or %s is not a socket: nothing was changed", socket, aside)
		case back == alive && there == absent:
			// Should the driver be faster, the next look finds its new socket.
			_ = unix.Renameat2(unix.AT_FDCWD, aside, unix.AT_FDCWD, socket, unix.RENAME_NOREPLACE)
		case back == alive && there == dead:
			if err := swapBack(aside, socket); err != nil {
				return err
			}
		default:
			return remove(aside)
		}
	}
	return fmt.Errorf("%s does not come to rest: the driver is being started again and again", socket)
}

// swapBack puts the driver's socket in the place of a dead one. They are
// exchanged, so that a socket which the driver has made at that very moment is
// found, and is put back.
func swapBack(aside, socket string) error {
	err := exchange(aside, socket)
	if err == nil && look(aside) == alive {
		err = exchange(aside, socket)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("give %s back to the driver: %w", socket, err)
	}
	return nil
}

// What is at a name.
type presence int

const (
	absent presence = iota
	alive           // a process accepts there
	dead            // a socket that nobody listens on any more
	other           // not a socket
)

// look connects, which a listener that is full answers too, by EAGAIN.
func look(path string) presence {
	info, err := os.Lstat(path)
	if err != nil {
		return absent
	}
	if info.Mode()&fs.ModeSocket == 0 {
		return other
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return alive // out of descriptors: nothing is moved on a guess
	}
	defer func() { _ = unix.Close(fd) }()
	switch err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); {
	case errors.Is(err, unix.ENOENT):
		return absent
	case errors.Is(err, unix.ECONNREFUSED):
		return dead
	}
	return alive
}

// listener is a socket of ours. It is known by its inode, which nobody else
// can have while we hold it; its name may change.
type listener struct {
	*net.UnixListener
	dev, ino uint64
}

func listenAt(path string) (*listener, error) {
	if len(path) > 107 {
		return nil, fmt.Errorf("%s has more than 107 characters, which a socket's path may not: mount its directory at a shorter one", path)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // its name may be the driver's by then
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
		return nil, fmt.Errorf("%s: this system does not tell files apart", path)
	}
	return st, nil
}

// mine says whether it is this listener that has the name.
func (l *listener) mine(path string) bool {
	st, err := inode(path)
	return err == nil && st.Dev == l.dev && st.Ino == l.ino
}

// like gives it the owner and mode of another; it still has its first name.
func (l *listener) like(path string) error {
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

// accept hands connections on until the listener is retired.
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

// retire has it serve whoever had connected already, and end. Its name is
// somebody else's by now, or none.
func (l *listener) retire() { _ = l.SetDeadline(time.Now().Add(50 * time.Millisecond)) }

// drop ends one that was never used.
func (l *listener) drop(path string) {
	if l.mine(path) {
		_ = os.Remove(path)
	}
	_ = l.Close()
}

// exchange swaps two names in one step.
func exchange(a, b string) error {
	err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("the file system of %s cannot exchange two names at once, without which the socket is not taken over: listen beside it instead: %w", b, err)
	}
	return &os.LinkError{Op: "exchange", Old: a, New: b, Err: err}
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// lockPatience is how long a proxy waits for one that is just ending.
const lockPatience = 30 * time.Second

// lock keeps other proxies away from a socket, by a file beside it that is
// gone when it is unlocked; the lock itself goes with the process.
func lock(ctx context.Context, socket string) (unlock func(), err error) {
	name := socket + ".cnsbench-lock"
	for deadline := time.Now().Add(lockPatience); ; time.Sleep(20 * time.Millisecond) {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("beside the driver's socket: %w", err)
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil && same(f, name) {
			return func() {
				_ = os.Remove(name)
				_ = f.Close()
			}, nil
		}
		_ = f.Close()
		if ctx.Err() != nil || time.Now().After(deadline) {
			return nil, fmt.Errorf("another proxy is at work at %s; stop that first: %w", socket, errors.Join(err, ctx.Err()))
		}
	}
}

// same says whether a file still has its name: whoever had it locked before
// has removed it.
func same(f *os.File, name string) bool {
	mine, err1 := f.Stat()
	there, err2 := os.Stat(name)
	return err1 == nil && err2 == nil && os.SameFile(mine, there)
}
