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
// up the command.
type Logs struct {
	// Echo repeats the output on the agent's own, for whoever follows that
	// (kubectl logs).
	Echo bool

	files [2]*os.File // stdout, stderr
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

// begin makes the pipes and starts emptying them.
func (l *Logs) begin(say func(string)) error {
	for i := range l.ends {
		r, w, err := os.Pipe()
		if err != nil {
			return fmt.Errorf("pipe for the output of the command: %w", err)
		}
		// Room for what comes while the agent is not scheduled; the default
		// of 64 KiB is kept where more is refused.
		_, _ = unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, 1<<20)
		l.ends[i] = w
		l.wg.Go(func() { empty(r, l.files[i], say) })
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

// empty copies r to f to its end. When f takes no more it goes on reading.
func empty(r, f *os.File, say func(string)) {
	defer r.Close() // was only read
	buf := make([]byte, 64<<10)
	failed := false
	for {
		n, err := r.Read(buf)
		if n > 0 && !failed {
			if _, werr := f.Write(buf[:n]); werr != nil {
				failed = true
				say(fmt.Sprintf("the command's output is cut off: %v", werr))
			}
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
