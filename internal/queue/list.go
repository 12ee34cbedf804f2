package queue

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// State of a submission.
type State string

// The states of a submission. A queued one waits; those after Running have ended.
const (
	Queued  State = "queued"
	Running State = "running"
	// Done says that the run completed, whatever its objectives.
	Done   State = "done"
	Failed State = "failed"
	// Cancelled says that someone cancelled it, Interrupted that the server ended while it ran.
	Cancelled   State = "cancelled"
	Interrupted State = "interrupted"
)

// Submission is a file to run, and what became of it.
type Submission struct {
	ID string `json:"id" doc:"number of the submission in its directory"`
	// Name is that of its results, which get the time of the start behind it.
	Name   string `json:"name"`
	Engine string `json:"engine"`
	// Namespace is that of a cluster for all objects of the run; empty: the default of the command.
	Namespace string `json:"namespace,omitempty"`
	// Study says that the file is a Study.
	Study     bool      `json:"study,omitempty"`
	Text      string    `json:"text,omitempty"`
	State     State     `json:"state" enum:"queued,running,done,failed,cancelled,interrupted"`
	Submitted time.Time `json:"submitted"`
	Started   time.Time `json:"started,omitzero"`
	Ended     time.Time `json:"ended,omitzero"`
	// Out is the directory of its results, below that of the queue; its file is Out.yaml.
	Out string `json:"out,omitempty"`
	// Stopping says that it is being cancelled: it finishes operations in flight and removes what it created.
	Stopping bool   `json:"stopping,omitempty"`
	Reason   string `json:"reason,omitempty" doc:"why it ended as it did"`
	// Log has the last lines of its standard error.
	Log []string `json:"log,omitempty"`
}

// Limits of a queue.
const (
	MaxText    = 256 << 10 // bytes of a file
	maxName    = 63
	maxWaiting = 50
	maxEnded   = 100
)

// Errors of requests. Those that they are wrapped in say which submission, and what to do.
var (
	ErrNotFound = errors.New("submission not found")
	ErrState    = errors.New("not possible in this state")
	ErrFull     = errors.New("the queue is full")
	ErrInvalid  = errors.New("invalid submission")
)

// list is the state of a queue. Its methods are pure: they take the time as an argument.
type list struct {
	// Paused says that no further submission is started.
	Paused bool `json:"paused,omitempty"`
	// Last is the number of the newest submission.
	Last int `json:"last"`
	// Submissions are those that have ended or run, in the order of their start, then those that wait, in theirs.
	Submissions []Submission `json:"submissions"`
}

// namePattern is that of a name, which becomes one element of a path and cannot begin with a dot.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$`)

// add appends a submission and returns it.
func (l *list) add(s Submission, now time.Time) (Submission, error) {
	switch {
	case len(s.Name) > maxName || !namePattern.MatchString(s.Name):
		return s, fmt.Errorf("%w: invalid name %.80q: want 1 to %d letters and digits, with - _ . between them",
			ErrInvalid, s.Name, maxName)
	case len(s.Text) > MaxText:
		return s, fmt.Errorf("%w: the file has %d bytes: want at most %d", ErrInvalid, len(s.Text), MaxText)
	case l.count(Queued) >= maxWaiting:
		return s, fmt.Errorf("%w: %d submissions wait: cancel one, or wait", ErrFull, maxWaiting)
	}
	l.Last++
	s = Submission{ID: strconv.Itoa(l.Last), Name: s.Name, Engine: s.Engine, Namespace: s.Namespace, Study: s.Study,
		Text: s.Text, State: Queued, Submitted: now}
	l.Submissions = append(l.Submissions, s)
	return s, nil
}

func (l *list) count(state State) (n int) {
	for i := range l.Submissions {
		if l.Submissions[i].State == state {
			n++
		}
	}
	return n
}

// find returns a submission, which may be changed.
func (l *list) find(id string) (*Submission, error) {
	i := slices.IndexFunc(l.Submissions, func(s Submission) bool { return s.ID == id })
	if i < 0 {
		return nil, fmt.Errorf("%w: %.80q", ErrNotFound, id)
	}
	return &l.Submissions[i], nil
}

// move moves a waiting submission by so many places: less than 0, towards the start. It stops at the ends.
func (l *list) move(id string, by int) error {
	s, err := l.find(id)
	if err != nil {
		return err
	}
	if s.State != Queued {
		return fmt.Errorf("%w: submission %s is %s: only those that wait can be moved", ErrState, id, s.State)
	}
	first := len(l.Submissions) - l.count(Queued)
	at := slices.IndexFunc(l.Submissions, func(s Submission) bool { return s.ID == id })
	to := min(max(first, at+min(max(by, -maxWaiting), maxWaiting)), len(l.Submissions)-1)
	moved := *s
	l.Submissions = slices.Insert(slices.Delete(l.Submissions, at, at+1), to, moved)
	return nil
}

// start makes the first waiting submission the running one and returns it; nil: none waits, one runs, or the queue is
// paused.
func (l *list) start(now time.Time) *Submission {
	if l.Paused || l.count(Running) > 0 {
		return nil
	}
	i := slices.IndexFunc(l.Submissions, func(s Submission) bool { return s.State == Queued })
	if i < 0 {
		return nil
	}
	s := &l.Submissions[i]
	s.State, s.Started = Running, now
	out := s.Name + "-" + now.Format("20060102-150405")
	if slices.ContainsFunc(l.Submissions, func(other Submission) bool { return other.Out == out }) {
		out += "-" + s.ID
	}
	s.Out = out
	return s
}

// cancel ends a waiting submission, or marks the running one, which then has to be interrupted.
func (l *list) cancel(id string, now time.Time) (interrupt bool, err error) {
	s, err := l.find(id)
	switch {
	case err != nil:
		return false, err
	case s.State == Queued:
		l.end(id, Cancelled, "cancelled before its start", nil, now)
		return false, nil
	case s.State != Running:
		return false, fmt.Errorf("%w: submission %s has ended: it is %s", ErrState, id, s.State)
	case s.Stopping:
		return false, fmt.Errorf("%w: submission %s is already being cancelled: it finishes operations in flight and "+
			"removes what it created", ErrState, id)
	}
	s.Stopping = true
	return true, nil
}

// end records the end of a submission. Of those that have ended, the oldest are forgotten.
func (l *list) end(id string, state State, reason string, log []string, now time.Time) {
	at := slices.IndexFunc(l.Submissions, func(s Submission) bool { return s.ID == id })
	s := l.Submissions[at]
	waited := s.State == Queued
	s.State, s.Reason, s.Log, s.Ended, s.Stopping = state, reason, log, now, false
	l.Submissions[at] = s
	if waited { // it goes before those that still wait
		l.Submissions = slices.Delete(l.Submissions, at, at+1)
		l.Submissions = slices.Insert(l.Submissions, len(l.Submissions)-l.count(Queued), s)
	}
	for ended := len(l.Submissions) - l.count(Queued) - l.count(Running); ended > maxEnded; ended-- {
		oldest := slices.IndexFunc(l.Submissions, func(s Submission) bool { return s.State != Running })
		l.Submissions = slices.Delete(l.Submissions, oldest, oldest+1)
	}
}

// remove forgets a submission that has ended. Its results stay.
func (l *list) remove(id string) error {
	s, err := l.find(id)
	if err != nil {
		return err
	}
	if s.State == Queued || s.State == Running {
		return fmt.Errorf("%w: submission %s is %s: cancel it first", ErrState, id, s.State)
	}
	l.Submissions = slices.DeleteFunc(l.Submissions, func(s Submission) bool { return s.ID == id })
	return nil
}

// recover marks what ran when the process of the queue was killed, and pauses the queue then: that run may still be
// removing what it created.
func (l *list) recover(now time.Time) {
	for _, s := range slices.Clone(l.Submissions) {
		if s.State == Running {
			l.end(s.ID, Interrupted, "the server was killed while it ran: see whether cnsbench cleanup finds anything left",
				s.Log, now)
			l.Paused = true
		}
	}
}

// clone returns an independent copy.
func (l *list) clone() *list {
	c := *l
	c.Submissions = slices.Clone(l.Submissions)
	return &c
}
