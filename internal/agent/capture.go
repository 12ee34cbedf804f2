package agent

import (
	"bytes"
	"fmt"
	"strings"
	"sync"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Capture is a sink that keeps the standard output of a command and the last lines of its standard error, in
// place of the run's bundle.
type Capture struct {
	engine.DiscardSink
	limit int

	mu        sync.Mutex
	printed   bytes.Buffer
	truncated bool
	errs      tail
	part      lineWriter
}

var _ engine.Sink = (*Capture)(nil)

// CaptureOutput is the Options.MaxOutput of a command whose sink is a Capture. It exceeds every limit of
// NewCapture, so that the Capture reports truncation.
const CaptureOutput = 8 * engine.MaxPrinted

// NewCapture returns a Capture that keeps at most limit bytes of standard output.
func NewCapture(limit int) *Capture {
	c := &Capture{limit: limit}
	c.part.emit = c.errs.add
	return c
}

// Printed returns the standard output so far; truncated reports whether bytes were dropped.
func (c *Capture) Printed() (text []byte, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.printed.Bytes()), c.truncated
}

// StderrTail returns the last lines of standard error.
func (c *Capture) StderrTail() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.part.flush()
	return strings.TrimSpace(c.errs.appendTo(""))
}

// Outcome returns the standard output of a parser and, if it failed, an *engine.Error with the reason.
// failure is the reason why it did not run or was stopped.
func (c *Capture) Outcome(end op.ContainerEnd, failure error) ([]byte, error) {
	printed, over := c.Printed()
	var why string
	switch {
	case failure != nil:
		why = failure.Error()
	case end.OOM:
		why = "killed by the out-of-memory killer"
	case end.Signal != "":
		why = "ended by " + end.Signal
	case end.ExitCode != 0:
		why = fmt.Sprintf("exit code %d", end.ExitCode)
	case over:
		why = fmt.Sprintf("printed more than %d MiB", c.limit>>20)
	default:
		return printed, nil
	}
	if words := c.StderrTail(); words != "" {
		why += ": " + words
	}
	return printed, &engine.Error{Code: "ParserFailed", Message: why, Err: failure}
}

// Output keeps what the parser prints, up to the limit. It implements Sink.
func (c *Capture) Output(_, _, file string, data []byte) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := len(data)
	switch file {
	case protocol.Stdout:
		kept = min(kept, c.limit-c.printed.Len())
		c.printed.Write(data[:kept])
		c.truncated = c.truncated || len(data) > kept
	case protocol.Stderr:
		c.part.write(data)
	}
	return kept
}
