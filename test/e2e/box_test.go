package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/test/looptest"
)

// patience is the timeout of a command. After it the command is made to print its goroutines.
const patience = 4 * time.Minute

// marker is the environment variable that identifies the processes of a box.
const marker = "CNSBENCH_E2E"

// nobody is the user ID of the unprivileged user.
const nobody = 65534

// box is the environment of one test. Commands create all files below dir, so that leftovers can be
// identified.
type box struct {
	*testing.T
	dir  string
	path string // PATH of the commands
	tmp  string // TMPDIR of the commands
	uid  int    // user ID of the commands; 0: the user of the tests
}

func newBox(t *testing.T) *box {
	t.Helper()
	dir, err := os.MkdirTemp("", "e2e-") // a short path, because the length of a socket path is limited
	if err != nil {
		t.Fatal(err)
	}
	b := &box{T: t, dir: dir, path: os.Getenv("PATH"), tmp: filepath.Join(dir, "tmp")}
	for _, d := range []string{"", "tmp", "home", "storage"} {
		if err := errors.Join(os.MkdirAll(b.in(d), 0o755), os.Chmod(b.in(d), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(b.destroy)
	b.install()
	return b
}

// install copies the programs to the box, so that their path identifies its processes.
func (b *box) install() {
	b.Helper()
	if err := os.Mkdir(b.in("bin"), 0o755); err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"cnsbench", "cnsbench-agent"} {
		from, to := filepath.Join(programs, name), b.in("bin", name)
		if os.Link(from, to) == nil {
			continue
		}
		text, err := os.ReadFile(from) // the link failed: bin is on another file system
		if err = errors.Join(err, os.WriteFile(to, text, 0o755)); err != nil {
			b.Fatal(err)
		}
	}
}

// cnsbench returns the path of the cnsbench program in the box.
func (b *box) cnsbench() string { return b.in("bin", "cnsbench") }

// asNobody runs the commands of this box as an unprivileged user.
func (b *box) asNobody() {
	b.uid = nobody
	for _, d := range []string{"", "tmp", "home", "storage"} {
		if err := os.Chown(b.in(d), nobody, nobody); err != nil {
			b.Fatal(err)
		}
	}
}

// in returns a path inside the box.
func (b *box) in(names ...string) string { return filepath.Join(append([]string{b.dir}, names...)...) }

// write creates a file inside the box and returns its path.
func (b *box) write(name, text string) string {
	b.Helper()
	if err := os.WriteFile(b.in(name), []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
	return b.in(name)
}

// private writes a file that only the box's user can read.
func (b *box) private(name, text string) string {
	b.Helper()
	path := b.write(name, text)
	if err := os.Chmod(path, 0o600); err != nil {
		b.Fatal(err)
	}
	if err := os.Chown(path, b.uid, b.uid); err != nil {
		b.Fatal(err)
	}
	return path
}

// destroy stops the processes and removes the files that a failed test leaves.
func (b *box) destroy() {
	for _, p := range b.processes() {
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
	}
	// Loop devices are found by their files on the mounts, so they are detached before the unmount.
	for _, dev := range looptest.Now(b.dir + "/") {
		_ = exec.Command("losetup", "-d", dev).Run()
	}
	mounts := b.mounts()
	for i := len(mounts) - 1; i >= 0; i-- {
		_ = syscall.Unmount(mounts[i], syscall.MNT_DETACH)
	}
	for _, entry := range b.entries() {
		_ = os.RemoveAll(entry)
	}
	if err := os.RemoveAll(b.dir); err != nil {
		b.Errorf("the test's own directory: %v", err)
	}
}

// result is the exit code and the output of a command.
type result struct {
	args           []string
	code           int
	stdout, stderr string
}

func (r result) String() string {
	return fmt.Sprintf("cnsbench %s: exit %d\n--- stdout\n%s--- stderr\n%s", strings.Join(r.args, " "), r.code,
		r.stdout, r.stderr)
}

// said returns the whole output with its lines joined.
func (r result) said() string { return strings.Join(strings.Fields(r.stdout+" "+r.stderr), " ") }

// wants fails the test unless the command exited with the given code.
func (r result) wants(t testing.TB, code int) result {
	t.Helper()
	if r.code != code {
		t.Fatalf("want exit %d\n%v", code, r)
	}
	return r
}

func (b *box) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = b.dir
	cmd.Env = []string{"PATH=" + b.path, "HOME=" + b.in("home"), "TMPDIR=" + b.tmp, "LANG=C", marker + "=" + b.dir}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) }
	cmd.WaitDelay = 10 * time.Second
	if b.uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(b.uid), Gid: uint32(b.uid)}}
	}
	return cmd
}

// run executes `cnsbench args` and returns the result.
func (b *box) run(args ...string) result {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	return b.finish(ctx, b.command(ctx, b.cnsbench(), args...))
}

func (b *box) finish(ctx context.Context, cmd *exec.Cmd) result {
	b.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	r := result{args: cmd.Args[1:], code: cmd.ProcessState.ExitCode(), stdout: out.String(), stderr: errs.String()}
	if ctx.Err() != nil || (err != nil && r.code < 0) {
		b.Fatalf("%v (%v)\n%v", err, ctx.Err(), r)
	}
	return r
}

// bundle returns the path of the bundle of runs in this box.
func (b *box) bundle() string { return b.in("bundle") }

// runArgs returns the arguments of a run in this box.
func (b *box) runArgs(file string, more ...string) []string {
	return append([]string{"run", file, "--out", b.bundle(), "--storage-dir", b.in("storage")}, more...)
}

// bench runs a Benchmark given as text.
func (b *box) bench(text string, more ...string) result {
	b.Helper()
	return b.run(b.runArgs(b.write("bench.yaml", text), more...)...)
}

// live is a running command.
type live struct {
	b      *box
	cmd    *exec.Cmd
	out    screen
	errs   screen
	exited chan struct{}
}

func (b *box) start(program string, args ...string) *live {
	b.Helper()
	return b.launch(b.command(context.Background(), program, args...))
}

func (b *box) launch(cmd *exec.Cmd) *live {
	b.Helper()
	l := &live{b: b, cmd: cmd, exited: make(chan struct{})}
	l.cmd.Stdout, l.cmd.Stderr = &l.out, &l.errs
	if err := l.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	go func() {
		_ = l.cmd.Wait()
		close(l.exited)
	}()
	b.Cleanup(func() {
		_ = l.cmd.Process.Kill()
		<-l.exited
	})
	return l
}

func (l *live) signal(s os.Signal) {
	l.b.Helper()
	if err := l.cmd.Process.Signal(s); err != nil {
		l.b.Fatalf("%v\n%v", err, l.result())
	}
}

// reaches waits until the command has printed text.
func (l *live) reaches(text string) {
	l.b.Helper()
	l.until(fmt.Sprintf("it printed %q", text), func() bool {
		return strings.Contains(l.out.String(), text) || strings.Contains(l.errs.String(), text)
	})
}

// until waits until ok holds. It fails the test if the command ends first.
func (l *live) until(what string, ok func() bool) {
	l.b.Helper()
	held, exited := false, false
	over := poll(patience, func() bool {
		select {
		case <-l.exited:
			exited = true
		default:
		}
		held = ok()
		return held || exited
	})
	switch {
	case held:
	case exited:
		l.b.Fatalf("ended before %s\n%v", what, l.result())
	case !over:
		_ = l.cmd.Process.Signal(syscall.SIGQUIT)
		<-l.exited
		l.b.Fatalf("never: %s\n%v", what, l.result())
	}
}

// poll calls ok every few milliseconds until it returns true or the time is over. It reports
// whether ok returned true.
func poll(within time.Duration, ok func() bool) bool {
	for end := time.Now().Add(within); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

func (l *live) result() result {
	code := -1
	if l.cmd.ProcessState != nil {
		code = l.cmd.ProcessState.ExitCode()
	}
	return result{args: l.cmd.Args[1:], code: code, stdout: l.out.String(), stderr: l.errs.String()}
}

// wait waits for the command to end and returns its result.
func (l *live) wait() result {
	l.b.Helper()
	select {
	case <-l.exited:
	case <-time.After(patience):
		_ = l.cmd.Process.Signal(syscall.SIGQUIT)
		<-l.exited
		l.b.Fatalf("did not end\n%v", l.result())
	}
	return l.result()
}

// kill sends SIGKILL to the command.
func (l *live) kill() {
	_ = l.cmd.Process.Kill()
	<-l.exited
}

// screen is a buffer that is safe for concurrent reads and writes.
type screen struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: mounts and loop devices")
	}
}

func needProgram(t testing.TB, names ...string) {
	t.Helper()
	for _, n := range names {
		if _, err := exec.LookPath(n); err != nil {
			t.Skipf("needs %s, which is not installed", n)
		}
	}
}
