// Package rendezvous is what a wrapped command and its agent say to each other where
// the command takes part in what the run agrees on: it stands at its barrier
// itself, prepared, in place of being started when that opens, and it meets its
// fellows, the same commands of other instances, on the way.
//
// They speak over a descriptor that the agent leaves open for the command, named
// by Env: one JSON object a line, each answer with the number of what was asked.
// Instants are those of CLOCK_MONOTONIC, which both read.
package rendezvous

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
)

// Env names the descriptor in the command's environment.
const Env = "CNSBENCH_MEET"

// MaxLine bounds what one side says at once.
const MaxLine = 256 << 10

// Ask is what the command says: exactly one of the last three is set.
type Ask struct {
	ID int64 `json:"id"`
	// Barrier: it is prepared and stands at its barrier.
	Barrier bool     `json:"barrier,omitempty"`
	Meeting *Meeting `json:"meeting,omitempty"`
	// Began is the instant at which it began its work, after the barrier; there is
	// no answer.
	Began int64 `json:"began,omitempty"`
}

// Meeting is what a command comes to.
type Meeting = protocol.Meeting

// Answer to a barrier, of which it has the instant only, or to a meeting.
type Answer = protocol.Met

// Now reads CLOCK_MONOTONIC.
func Now() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // every Linux has it
	return t.Nano()
}

// Company is the command's side. Its methods are safe for concurrent use.
type Company struct {
	conn io.ReadWriteCloser

	mu      sync.Mutex
	last    int64
	waiting map[int64]chan Answer
	lost    error
}

// Here is the company that this process is in by its environment; nil: it is in
// none.
func Here() (*Company, error) {
	text := os.Getenv(Env)
	if text == "" {
		return nil, nil
	}
	fd, err := strconv.Atoi(text)
	if err != nil || fd < 3 {
		return nil, fmt.Errorf("%s=%q names no descriptor", Env, text)
	}
	unix.CloseOnExec(fd)
	return New(os.NewFile(uintptr(fd), Env)), nil
}

// New speaks over conn.
func New(conn io.ReadWriteCloser) *Company {
	c := &Company{conn: conn, waiting: map[int64]chan Answer{}}
	go c.listen()
	return c
}

func (c *Company) listen() {
	lines := bufio.NewScanner(c.conn)
	lines.Buffer(nil, MaxLine)
	err := errors.New("the agent went away")
	for lines.Scan() {
		var a Answer
		if e := json.Unmarshal(lines.Bytes(), &a); e != nil {
			err = fmt.Errorf("the agent said what cannot be read: %w", e)
			break
		}
		c.mu.Lock()
		if w := c.waiting[a.ID]; w != nil {
			delete(c.waiting, a.ID)
			w <- a
		}
		c.mu.Unlock()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = err
	for _, w := range c.waiting {
		close(w)
	}
	clear(c.waiting)
}

// Meet comes to a meeting, and returns when it takes place: at is the instant at
// which all go on, which may still be to come.
func (c *Company) Meet(ctx context.Context, m Meeting) (a Answer, at time.Time, err error) {
	return c.ask(ctx, Ask{Meeting: &m})
}

// Barrier says that this process is prepared, and returns when it is known when
// the barrier opens.
func (c *Company) Barrier(ctx context.Context) (at time.Time, err error) {
	_, at, err = c.ask(ctx, Ask{Barrier: true})
	return at, err
}

// Began says that the work has begun, now.
func (c *Company) Began() error { return c.say(Ask{Began: Now()}) }

func (c *Company) ask(ctx context.Context, q Ask) (Answer, time.Time, error) {
	answer := make(chan Answer, 1)
	c.mu.Lock()
	if c.lost != nil {
		defer c.mu.Unlock()
		return Answer{}, time.Time{}, c.lost
	}
	c.last++
	q.ID = c.last
	c.waiting[q.ID] = answer
	c.mu.Unlock()
	if err := c.say(q); err != nil {
		return Answer{}, time.Time{}, err
	}
	select {
	case a, ok := <-answer:
		if !ok {
			c.mu.Lock()
			defer c.mu.Unlock()
			return Answer{}, time.Time{}, c.lost
		}
		return a, time.Now().Add(time.Duration(a.At - Now())), nil
	case <-ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting, q.ID)
		return Answer{}, time.Time{}, context.Cause(ctx)
	}
}

func (c *Company) say(q Ask) error {
	line, err := json.Marshal(q)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err = c.conn.Write(append(line, '\n'))
	return err
}
