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

// Logs receives the command's output: pipes, as in a container (a command may reopen or truncate
// /dev/stdout), copied to files that the streamer reads at the runner's pace, so that only the local disk can
// block the command. Without files the pipes are read at the runner's pace: the command blocks when a
// megabyte is pending, as with a slow container log. Output beyond the limit is discarded without waiting for
// the runner.
type Logs struct {
	// Echo repeats the output on the agent's own stdout and stderr, for kubectl logs.
	Echo bool

	note      string      // log line for the runner about how the output is copied
	files     [2]*os.File // stdout, stderr; nil: without files
	writeEnds [2]*os.File // the command's ends of the pipes
	wg        sync.WaitGroup
}

// logNames in the order of Logs.files.
var logNames = [2]string{protocol.Stdout, protocol.Stderr}

// OpenLogs creates <dir>/<name>.stdout and .stderr, before the sandbox is entered.
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

// DirectLogs returns Logs without files; note, if any, is logged.
func DirectLogs(note string) *Logs { return &Logs{note: note} }

// attach adds the files, if any, to the streamer.
func (l *Logs) attach(s *streamer, say func(string)) {
	if l.note != "" {
		say(l.note)
	}
	for i, f := range l.files {
		if f != nil {
			s.Follow(f, logNames[i])
		}
	}
}

// start creates the pipes and copies them, into the files or with send.
func (l *Logs) start(say func(string), send sendFile, out *output) error {
	for i := range l.writeEnds {
		r, w, err := os.Pipe()
		if err != nil {
			return fmt.Errorf("pipe for the output of the command: %w", err)
		}
		// Buffers output while the agent is not scheduled; the default of 64 KiB
		// stays where a larger pipe is refused.
		_, _ = unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, 1<<20)
		l.writeEnds[i] = w
		if f := l.files[i]; f != nil {
			l.wg.Go(func() { copyToFile(r, f, logNames[i], say, out) })
		} else {
			l.wg.Go(func() { copyToRunner(r, logNames[i], send, out) })
		}
	}
	return nil
}

// closeWriteEnds closes the agent's copies of the command's ends.
func (l *Logs) closeWriteEnds() {
	for _, w := range l.writeEnds {
		w.Close()
	}
}

// wait waits until all writers of the pipes have ended.
func (l *Logs) wait() { l.wg.Wait() }

// copyToFile copies r to f within the limit and discards the rest, also after f fails.
func copyToFile(r, f *os.File, name string, say func(string), out *output) {
	readAll(r, name, out, func(data []byte) int {
		n, err := f.Write(data)
		if err != nil {
			say(fmt.Sprintf("the command's output is truncated: %v", err))
		}
		return n
	})
}

// copyToRunner sends the bytes of r within the limit. After the loss of the runner it continues to read, so
// that the command can end.
func copyToRunner(r *os.File, name string, send sendFile, out *output) {
	var offset int64
	readAll(r, name, out, func(data []byte) int {
		_ = send(name, offset, data) // control handles a lost runner
		offset += int64(len(data))
		return len(data)
	})
}

// readAll reads r to its end and closes it, so that its writer never blocks. keep returns how many of the
// bytes within the limit it kept; after a short count the rest is discarded. (splice to /dev/null takes as
// much CPU time as reading: about 0.2 s per GiB.)
func readAll(r *os.File, name string, out *output, keep func([]byte) int) {
	defer r.Close()
	buf, full := make([]byte, protocol.Chunk), false
	for {
		n, err := r.Read(buf)
		kept := 0
		if n > 0 && !full {
			if kept = out.allow(name, n); kept > 0 {
				kept = keep(buf[:kept])
			}
			full = kept < n
		}
		out.addDiscarded(name, int64(n-kept))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
