package wrap

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
)

// Logs takes the command's output: pipes, as in a container (a command may
// reopen or truncate /dev/stdout), emptied into files, from which the
// streamer reads at the runner's pace. So only the local disk could ever hold
// up the command. Without files the pipes are emptied at the runner's pace:
// the command waits when a megabyte is on the way, as it would for a slow
// container log. What is beyond the bound of an output is in no file, and does
// not wait for the runner.
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
var logNames = [2]string{protocol.Stdout, protocol.Stderr}

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
func (l *Logs) begin(say func(string), send sendFile, out *output) error {
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
			l.wg.Go(func() { empty(r, f, logNames[i], say, out) })
		} else {
			l.wg.Go(func() { pass(r, logNames[i], send, out) })
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

// empty copies r to f, as much of it as goes to the runner, and reads the rest.
// When f takes no more it goes on reading.
func empty(r, f *os.File, name string, say func(string), out *output) {
	drain(r, name, out, func(data []byte) int {
		n, err := f.Write(data)
		if err != nil {
			say(fmt.Sprintf("the command's output is cut off: %v", err))
		}
		return n
	})
}

// pass sends what comes from r, as much of it as goes to the runner. Without a
// runner it goes on reading, so that the command can end.
func pass(r *os.File, name string, send sendFile, out *output) {
	var offset int64
	drain(r, name, out, func(data []byte) int {
		_ = send(name, offset, data) // govern acts on a lost runner
		offset += int64(len(data))
		return len(data)
	})
}

// drain reads r to its end and closes it, so that its writer never waits. keep
// returns how much it has kept of what is within the bound; once that is not all,
// the rest is counted and discarded. (To splice it to /dev/null takes no less CPU
// time than to read it: about 0.2 s a GiB.)
func drain(r *os.File, name string, out *output, keep func([]byte) int) {
	defer r.Close() // was only read
	buf, full := make([]byte, protocol.Chunk), false
	for {
		n, err := r.Read(buf)
		kept := 0
		if n > 0 && !full {
			if kept = out.take(name, n); kept > 0 {
				kept = keep(buf[:kept])
			}
			full = kept < n
		}
		out.discard(name, int64(n-kept))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
