package csidriver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver/inject"
)

// stopTimeout is how long a stopping server answers calls in progress; their work is finished in any case.
const stopTimeout = 2 * time.Second

// Server is one driver. New prepares it, Serve answers calls, Close releases the process's resources; volumes
// stay.
type Server struct {
	driver *driver
	inject *inject.Injector
	lock   *os.File
	start  time.Time

	stopping  chan struct{}
	stopOnce  sync.Once
	closeOnce sync.Once
	closeErr  error
}

// New prepares the pool, reads the state of an earlier process and repairs what that left half done. It fails
// when another driver uses the same base directory.
func New(o Options) (_ *Server, err error) {
	if err := Requirements(o.Backend).check(o.Backend); err != nil {
		return nil, err
	}
	if o.BaseDir != "" {
		if err := os.MkdirAll(o.BaseDir, 0o755); err != nil {
			return nil, err
		}
	}
	o, err = o.complete()
	if err != nil {
		return nil, err
	}
	injector, err := o.injector()
	if err != nil {
		return nil, err
	}
	lock, err := lockBase(o.BaseDir)
	if err != nil {
		return nil, err
	}
	log, err := openTruthLog(o.TruthLog)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("truth log: %w", err), closeFile(lock))
	}
	if err := inherit(lock); err != nil {
		return nil, errors.Join(err, log.close(), closeFile(lock))
	}
	s := &Server{inject: injector, lock: lock, start: time.Now(), stopping: make(chan struct{})}
	s.driver, err = newDriver(o, log)
	if err != nil {
		return nil, errors.Join(err, log.close(), closeFile(lock))
	}
	log.write(Record{Event: eventStart, StartUnixNs: s.start.UnixNano(), Driver: DriverName(o.Backend),
		Version: o.Version, PID: os.Getpid(), Seed: o.Seed, Inject: o.Inject})
	return s, nil
}

// Serve listens on the unix socket, and on those of the further nodes, until ctx ends, then lets calls in
// progress finish for a few seconds. It replaces a stale socket. Injected windows count from here.
func (s *Server) Serve(ctx context.Context, socket string) error {
	sockets := map[string]string{s.driver.opts.NodeID: socket}
	maps.Copy(sockets, s.driver.opts.Nodes)
	listeners := map[string]net.Listener{}
	for node, path := range sockets {
		listener, err := listen(ctx, path)
		if err != nil {
			for _, l := range listeners {
				_ = l.Close()
			}
			return err
		}
		listeners[node] = listener
	}
	s.start = time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // a failure ends the other listeners
	ended := make(chan error)
	for node, listener := range listeners {
		go func() { ended <- s.serveNode(ctx, node, listener) }()
	}
	var problems []error
	for range listeners {
		problems = append(problems, <-ended)
		cancel()
	}
	return errors.Join(problems...)
}

// serveNode answers calls as one node.
func (s *Server) serveNode(ctx context.Context, node string, listener net.Listener) error {
	as := func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		return s.intercept(context.WithValue(ctx, nodeKey{}, node), req, info, handler)
	}
	// Always wait for work in progress, which could leave a file system frozen.
	server := grpc.NewServer(grpc.UnaryInterceptor(as), grpc.WaitForHandlers(true))
	csi.RegisterIdentityServer(server, s.driver)
	csi.RegisterControllerServer(server, s.driver)
	csi.RegisterNodeServer(server, s.driver)
	if _, ok := s.driver.backend.(grouper); ok {
		csi.RegisterGroupControllerServer(server, s.driver)
	}

	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		s.stopOnce.Do(func() { close(s.stopping) })
		hard := time.AfterFunc(stopTimeout, server.Stop)
		defer hard.Stop()
		server.GracefulStop()
	})
	err := server.Serve(listener)
	if !stop() {
		<-done
		return nil
	}
	return err
}

// Close releases the state's lock and the truth log. Volumes, mounts and devices stay for the next driver;
// Destroy removes them. It is idempotent.
func (s *Server) Close() error {
	s.closeOnce.Do(func() {
		s.closeErr = errors.Join(s.driver.close(), closeFile(s.lock))
	})
	return s.closeErr
}

// listen listens on a unix socket and fails if a process serves on it.
func listen(ctx context.Context, socket string) (net.Listener, error) {
	dialer := net.Dialer{Timeout: time.Second}
	if conn, err := dialer.DialContext(ctx, "unix", socket); err == nil {
		_ = conn.Close()
		return nil, fmt.Errorf("another process is serving on %s: stop it or choose another socket", socket)
	}
	if info, err := os.Lstat(socket); err == nil && info.Mode()&fs.ModeSocket != 0 {
		if err := os.Remove(socket); err != nil {
			return nil, err
		}
	}
	var config net.ListenConfig
	return config.Listen(ctx, "unix", socket)
}

// ErrInUse is returned when a driver process, or a program that it has started, uses the base directory.
var ErrInUse = errors.New("is in use by another driver process: stop it first")

// inherit makes the programs that the driver starts hold its lock. One that is killed with the driver may take a moment
// to end in the kernel, and the next driver must not format, or make a snapshot, beside it.
func inherit(lock *os.File) error {
	if lock == nil {
		return nil
	}
	_, err := unix.FcntlInt(lock.Fd(), unix.F_SETFD, 0)
	return os.NewSyscallError("F_SETFD", err)
}

// lockBase excludes other drivers from the base directory. The lock ends with the process and the programs that it has
// started (inherit).
func lockBase(dir string) (*os.File, error) {
	if dir == "" {
		return nil, nil
	}
	for deadline := time.Now().Add(busyTimeout); ; time.Sleep(10 * time.Millisecond) {
		f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil && isAt(f) {
			return f, nil
		}
		if err == nil {
			err = errRemoved
		}
		if closeErr := f.Close(); closeErr != nil {
			return nil, closeErr
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%s %w (%w)", dir, ErrInUse, err)
		}
	}
}

var errRemoved = errors.New("its lock was removed meanwhile")

// isAt reports whether the file still has its name: a Destroy that held the lock before may have removed it, and then
// a lock of it means nothing.
func isAt(f *os.File) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(f.Name())
	return err == nil && os.SameFile(opened, named)
}
