package wrap

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/engine/agent/wire"
)

// Logs takes the command's output: pipes, as in a container (a command may
// reopen or truncate /dev/stdout), emptied into files, from which the
// streamer reads at the runner's pace. So only the local disk could ever hold
// up the command. Without files the pipes are emptied at the runner's pace:
// the command waits when a megabyte is on the way, as it would for a slow
// container log.
type Logs struct {
	// Echo repeats the output on the agent's own, for whoever follows that
	// (kubectl logs).
	Echo bool

	note  string      // on how it is done, for the runner
	files [2]*os.File // stdout, stderr; nil: without files
	ends  [2]*os.File // of the pipes, for the command
	wg    sync.WaitGroup
}

// logNames in the order of Logs.files.
var logNames = [2]string{wire.Stdout, wire.Stderr}

// OpenLogs creates <dir>/<name>.stdout and .stderr, before the command's
// surroundings are entered.
func OpenLogs(dir, name string) (*Logs, error) {
	l := &Logs{}
	for i, suffix := range logNames {
		f, err := os.OpenFile(filepath.Join(dir, name+"."+suffix), os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o644)
		if err != nil {
			return nil, fmt.Errorf("log file of the command: %w", err)
		}
		l.files[i] = f
	}
	return l, nil
}

// DirectLogs needs no file; note, if any, is said to the runner.
func DirectLogs(note string) *Logs { return &Logs{note: note} }

// follow has the files streamed, if there are any.
func (l *Logs) follow(s *streamer, say func(string)) {
	if l.note != "" {
		say(l.note)
	}
	for i, f := range l.files {
		if f != nil {
			s.Follow(f, logNames[i])
		}
	}
}

// begin makes the pipes and starts emptying them, into the files or by send.
func (l *Logs) begin(say func(string), send sendFile) error {
	for i := range l.ends {
		r, w, err := os.Pipe()
		if err != nil {
			return fmt.Errorf("pipe for the output of the command: %w", err)
		}
		// Room for what comes while the agent is not scheduled; the default
		// of 64 KiB is kept where more is refused.
		_, _ = unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, 1<<20)
		l.ends[i] = w
		if f := l.files[i]; f != nil {
			l.wg.Go(func() { empty(r, f, say) })
		} else {
			l.wg.Go(func() { pass(r, logNames[i], send) })
		}
	}
	return nil
}

// started closes our copy of the command's ends.
func (l *Logs) started() {
	for _, w := range l.ends {
		w.Close() // never written by us
	}
}

// wait returns when everybody who could write has ended.
func (l *Logs) wait() { l.wg.Wait() }

// sendFile delivers bytes of a file; an error is the runner's loss.
type sendFile func(name string, offset int64, data []byte) error

// empty copies r to f to its end. When f takes no more it goes on reading.
func empty(r, f *os.File, say func(string)) {
	failed := false
	drain(r, func(data []byte) {
		if failed {
			return
		}
		if _, err := f.Write(data); err != nil {
			failed = true
			say(fmt.Sprintf("the command's output is cut off: %v", err))
		}
	})
}

// pass sends all that comes from r. Without a runner it goes on reading, so
// that the command can end.
func pass(r *os.File, name string, send sendFile) {
	var offset int64
	drain(r, func(data []byte) {
		_ = send(name, offset, data) // govern acts on a lost runner
		offset += int64(len(data))
	})
}

// drain reads r to its end and closes it.
func drain(r *os.File, take func([]byte)) {
	defer r.Close() // was only read
	buf := make([]byte, wire.Chunk)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			take(buf[:n])
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
