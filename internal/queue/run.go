package queue

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// pipeDelay is how long the standard error of a process that has ended is read, if processes of its own hold it open.
const pipeDelay = 5 * time.Second

// errNothing says that no submission can be started.
var errNothing = errors.New("nothing to start")

// Run starts submissions, one at a time, until soft ends. It interrupts the running one then, waits until that has
// removed what it created, and returns. The end of hard interrupts it again, which skips its wait for operations.
func (q *Queue) Run(soft, hard context.Context) {
	for soft.Err() == nil {
		var s Submission
		err := q.change(func(l *list) error {
			first := l.start(time.Now())
			if first == nil {
				return errNothing
			}
			s = *first
			return nil
		})
		if err == nil {
			q.execute(soft, hard, &s)
			continue
		}
		if !errors.Is(err, errNothing) {
			q.Log(err.Error())
		}
		select {
		case <-q.wake:
		case <-soft.Done():
		}
	}
}

// execute runs a submission to its end.
func (q *Queue) execute(soft, hard context.Context, s *Submission) {
	log := &tail{}
	var ours atomic.Bool // the end of soft interrupted it
	stopSoft := context.AfterFunc(soft, func() { ours.Store(q.Cancel(s.ID) == nil) })
	stopHard := context.AfterFunc(hard, func() { q.interrupt(true) })
	code, err := q.runProcess(s, log)
	stopSoft()
	stopHard()
	state, reason := Failed, ""
	if err != nil {
		reason = err.Error()
	} else {
		state, reason = q.Outcome(code)
	}
	if state == Cancelled && ours.Load() {
		state, reason = Interrupted, "the server ended"
	}
	end := func(l *list) error {
		l.end(s.ID, state, reason, log.lines(), time.Now())
		return nil
	}
	if err := q.change(end); err != nil {
		q.Log(err.Error())
		q.mu.Lock()
		defer q.mu.Unlock()
		_ = end(q.state) // never fails; without it, the queue would wait for what has ended
	}
}

// runProcess runs the process of a submission and returns its exit code.
func (q *Queue) runProcess(s *Submission, log *tail) (code int, err error) {
	file, err := q.write(s)
	if err != nil {
		return 0, err
	}
	cmd, err := q.Command(*s, file, filepath.Join(q.Dir, s.Out))
	if err != nil {
		return 0, err
	}
	cmd.Stderr, cmd.WaitDelay = log, pipeDelay
	// In a group of its own, it does not get the Ctrl-C for this process, too. If this process is killed, it is
	// interrupted and cleans up; that signal is sent when the thread ends which started it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGINT}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	q.began(s.ID, cmd.Process, log)
	err = cmd.Wait()
	q.ended()
	var exit *exec.ExitError
	switch {
	case cmd.ProcessState != nil && cmd.ProcessState.Exited():
		return cmd.ProcessState.ExitCode(), nil
	case errors.As(err, &exit):
		return 0, fmt.Errorf("the process ended by itself: %w", exit)
	}
	return 0, err
}

// began notes the running process. One that was cancelled before its start is interrupted.
func (q *Queue) began(id string, p *os.Process, log *tail) {
	q.mu.Lock()
	q.process, q.sent, q.log = p, false, log
	s, err := q.state.find(id)
	stopping := err == nil && s.Stopping
	q.mu.Unlock()
	if stopping {
		q.interrupt(false)
	}
}

// ended notes that no process runs.
func (q *Queue) ended() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.process, q.log = nil, nil
}
