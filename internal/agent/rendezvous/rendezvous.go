// Package rendezvous lets a wrapped command wait at its barrier itself, after its own preparation, and wait
// for the same commands of other instances at later steps.
//
// The command talks to its agent over an inherited file descriptor named by Env: one JSON object per line,
// each reply with the ID of its request. Instants are of CLOCK_MONOTONIC, which both sides read.
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

// Env is the environment variable with the number of the descriptor.
const Env = "CNSBENCH_MEET"

// MaxLine bounds the bytes of one message.
const MaxLine = 256 << 10

// Request is a message of the command: exactly one of the last three fields is set.
type Request struct {
	ID int64 `json:"id"`
	// Barrier: the command is prepared and waits at its barrier.
	Barrier    bool        `json:"barrier,omitempty"`
	Rendezvous *Rendezvous `json:"meeting,omitempty"`
	// Began is when the command started its work after the barrier; it has no reply.
	Began int64 `json:"began,omitempty"`
}

// Rendezvous is a step that a command waits at.
type Rendezvous = protocol.Rendezvous

// Reply to a barrier, with the instant only, or to a rendezvous.
type Reply = protocol.RendezvousReply

// Now reads CLOCK_MONOTONIC in nanoseconds.
func Now() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // cannot fail on Linux
	return t.Nano()
}

// Client is the command's side. Its methods are safe for concurrent use.
type Client struct {
	conn io.ReadWriteCloser

	mu      sync.Mutex
	last    int64
	waiting map[int64]chan Reply
	err     error
}

// FromEnv returns the client that the environment describes, or nil if Env is not set.
func FromEnv() (*Client, error) {
	text := os.Getenv(Env)
	if text == "" {
		return nil, nil
	}
	fd, err := strconv.Atoi(text)
	if err != nil || fd < 3 {
		return nil, fmt.Errorf("invalid %s=%q: want a file descriptor", Env, text)
	}
	unix.CloseOnExec(fd)
	return New(os.NewFile(uintptr(fd), Env)), nil
}

// New returns a client that communicates over conn.
func New(conn io.ReadWriteCloser) *Client {
	c := &Client{conn: conn, waiting: map[int64]chan Reply{}}
	go c.readReplies()
	return c
}

func (c *Client) readReplies() {
	lines := bufio.NewScanner(c.conn)
	lines.Buffer(nil, MaxLine)
	err := errors.New("the agent closed the connection")
	for lines.Scan() {
		var a Reply
		if e := json.Unmarshal(lines.Bytes(), &a); e != nil {
			err = fmt.Errorf("decode a reply of the agent: %w", e)
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
	c.err = err
	for _, w := range c.waiting {
		close(w)
	}
	clear(c.waiting)
}

// Wait waits at a rendezvous until it takes place; at is when all members continue, which may lie in the
// future.
func (c *Client) Wait(ctx context.Context, m Rendezvous) (a Reply, at time.Time, err error) {
	return c.call(ctx, Request{Rendezvous: &m})
}

// Barrier reports that the command is prepared and returns when the opening time of the barrier is known.
func (c *Client) Barrier(ctx context.Context) (at time.Time, err error) {
	_, at, err = c.call(ctx, Request{Barrier: true})
	return at, err
}

// ReportStart reports that the work starts now.
func (c *Client) ReportStart() error { return c.send(Request{Began: Now()}) }

func (c *Client) call(ctx context.Context, q Request) (Reply, time.Time, error) {
	answer := make(chan Reply, 1)
	c.mu.Lock()
	if c.err != nil {
		defer c.mu.Unlock()
		return Reply{}, time.Time{}, c.err
	}
	c.last++
	q.ID = c.last
	c.waiting[q.ID] = answer
	c.mu.Unlock()
	if err := c.send(q); err != nil {
		return Reply{}, time.Time{}, err
	}
	select {
	case a, ok := <-answer:
		if !ok {
			c.mu.Lock()
			defer c.mu.Unlock()
			return Reply{}, time.Time{}, c.err
		}
		return a, time.Now().Add(time.Duration(a.At - Now())), nil
	case <-ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting, q.ID)
		return Reply{}, time.Time{}, context.Cause(ctx)
	}
}

func (c *Client) send(q Request) error {
	line, err := json.Marshal(q)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err = c.conn.Write(append(line, '\n'))
	return err
}
