// Package queue runs Benchmarks and Studies one after another, each as a process of its own. Its state is a file in
// the directory of the results, so that a restart finds it.
package queue

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Options are what a queue is made of.
type Options struct {
	// Dir is the directory of the results. Nothing is written outside of it.
	Dir string
	// Command returns the command that runs a file and writes its results to the directory out. It ends cleanly upon
	// SIGINT. Its standard error is kept, its standard output is not.
	Command func(s Submission, file, out string) (*exec.Cmd, error)
	// Outcome says what an exit code of the command means: Done, Failed or Cancelled, and why.
	Outcome func(code int) (State, string)
	// Log takes lines about errors that no request returns, such as a state that cannot be saved.
	Log func(line string)
}

// Queue is a queue of submissions. Its methods are safe for concurrent use.
type Queue struct {
	Options
	store *store
	root  *os.Root
	wake  chan struct{} // has an element if something changed

	mu      sync.Mutex
	state   *list
	process *os.Process // of the running submission; nil: it has none yet, or none any more
	sent    bool        // it was interrupted
	log     *tail       // of the running submission
}

// Open opens the queue of a directory, which no other process may use before Close. It starts nothing: that is Run's.
func Open(o Options) (*Queue, error) {
	st, err := openStore(o.Dir)
	if err != nil {
		return nil, err
	}
	q := &Queue{Options: o, store: st, wake: make(chan struct{}, 1)}
	if q.root, err = os.OpenRoot(o.Dir); err != nil {
		return nil, errors.Join(err, st.close())
	}
	if q.state, err = st.load(); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	err = q.change(func(l *list) error { l.recover(time.Now()); return nil })
	if err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

// Close lets another process use the queue. Run must have returned.
func (q *Queue) Close() error { return errors.Join(q.root.Close(), q.store.close()) }

// change applies a change to the state and saves it. If one of the two fails, the state stays as it was.
func (q *Queue) change(apply func(*list) error) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	next := q.state.clone()
	if err := apply(next); err != nil {
		return err
	}
	if err := q.store.save(next); err != nil {
		return err
	}
	q.state = next
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return nil
}

// List returns all submissions without their texts: those that have ended or run, then those that wait, in their order.
// It reports whether the queue is paused.
func (q *Queue) List() (all []Submission, paused bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	all = slices.Clone(q.state.Submissions)
	for i := range all {
		all[i].Text = ""
		if all[i].State == Running && q.log != nil {
			all[i].Log = q.log.lines()
		}
	}
	return all, q.state.Paused
}

// Get returns a submission with its text.
func (q *Queue) Get(id string) (Submission, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s, err := q.state.find(id)
	if err != nil {
		return Submission{}, err
	}
	return *s, nil
}

// Submit appends a submission, of which it takes name, engine, namespace, text and whether it is a Study. It returns
// ErrInvalid or ErrFull.
func (q *Queue) Submit(s Submission) (added Submission, err error) {
	err = q.change(func(l *list) error {
		added, err = l.add(s, time.Now())
		return err
	})
	return added, err
}

// Resubmit appends a submission that is as another one was.
func (q *Queue) Resubmit(id string) (added Submission, err error) {
	err = q.change(func(l *list) error {
		s, err := l.find(id)
		if err == nil {
			added, err = l.add(*s, time.Now())
		}
		return err
	})
	return added, err
}

// Move moves a waiting submission by so many places: less than 0, towards the start. It returns ErrState for others.
func (q *Queue) Move(id string, by int) error {
	return q.change(func(l *list) error { return l.move(id, by) })
}

// Cancel ends a waiting submission, and interrupts the running one, which then removes what it created. It returns
// ErrState if it has ended or is being cancelled already.
func (q *Queue) Cancel(id string) error {
	interrupt := false
	err := q.change(func(l *list) (err error) {
		interrupt, err = l.cancel(id, time.Now())
		return err
	})
	if err == nil && interrupt {
		q.interrupt(false)
	}
	return err
}

// interrupt sends SIGINT to the running process: once, unless again is set, because a second one has another meaning.
// A process that has not started yet gets it at its start.
func (q *Queue) interrupt(again bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.process == nil || q.sent && !again {
		return
	}
	q.sent = true
	if err := q.process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		q.Log(fmt.Sprintf("interrupt process %d: %v", q.process.Pid, err))
	}
}

// Remove forgets a submission that has ended. Its results stay.
func (q *Queue) Remove(id string) error {
	return q.change(func(l *list) error { return l.remove(id) })
}

// Pause sets whether further submissions are started.
func (q *Queue) Pause(paused bool) error {
	return q.change(func(l *list) error { l.Paused = paused; return nil })
}

// write writes the file of a submission, and makes sure that it is a new one beside new results.
func (q *Queue) write(s *Submission) (file string, err error) {
	if _, err := q.root.Lstat(s.Out); !errors.Is(err, fs.ErrNotExist) {
		return "", errors.Join(fmt.Errorf("%s exists already", filepath.Join(q.Dir, s.Out)), err)
	}
	name := s.Out + ".yaml"
	f, err := q.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(s.Text)
	return filepath.Join(q.Dir, name), errors.Join(err, f.Close())
}
