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

// Capture is a sink for a command whose output is wanted here and not in the
// run's record: it keeps what the command printed and the last lines of its
// standard error.
type Capture struct {
	limit int

	mu      sync.Mutex
	printed bytes.Buffer
	over    bool
	errs    tail
	part    lines
}

var _ engine.Sink = (*Capture)(nil)

// CaptureOutput is the Options.MaxOutput of a command whose sink is a Capture: more
// than any keeps, so that it is the Capture that says what is too much.
const CaptureOutput = 8 * engine.MaxPrinted

// NewCapture keeps at most limit bytes.
func NewCapture(limit int) *Capture {
	c := &Capture{limit: limit}
	c.part.emit = c.errs.add
	return c
}

// Printed is what the command printed so far; over says that there was more
// than is kept.
func (c *Capture) Printed() (text []byte, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.printed.Bytes()), c.over
}

// LastWords are the last lines of its standard error; empty if it had none.
func (c *Capture) LastWords() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.part.flush()
	return strings.TrimSpace(c.errs.under(""))
}

// Outcome is the result of a parser: what it printed, and how it failed, if it
// did. failure is why it did not run, or was not left to its end.
func (c *Capture) Outcome(end op.ContainerEnd, failure error) ([]byte, error) {
	printed, over := c.Printed()
	var why string
	switch {
	case failure != nil:
		why = failure.Error()
	case end.OOM:
		why = "it was killed for want of memory"
	case end.Signal != "":
		why = "it was ended by " + end.Signal
	case end.ExitCode != 0:
		why = fmt.Sprintf("it ended with exit code %d", end.ExitCode)
	case over:
		why = fmt.Sprintf("it printed more than %d MiB", c.limit>>20)
	default:
		return printed, nil
	}
	if words := c.LastWords(); words != "" {
		why += ": " + words
	}
	return printed, &engine.Error{Code: "ParserFailed", Message: why, Err: failure}
}

// Output keeps what the command writes.
func (c *Capture) Output(_, _, file string, data []byte) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := len(data)
	switch file {
	case protocol.Stdout:
		kept = min(kept, c.limit-c.printed.Len())
		c.printed.Write(data[:kept])
		c.over = c.over || len(data) > kept
	case protocol.Stderr:
		c.part.write(data)
	}
	return kept
}

// Cut is of no interest: Output was asked for more than it keeps before.
func (c *Capture) Cut(string, string, string, int64, bool) {}

// Started is of no interest.
func (c *Capture) Started(op.InstanceStart) {}

// Ended is of no interest.
func (c *Capture) Ended(op.InstanceEnd) {}

// Sample is of no interest.
func (c *Capture) Sample(op.Sample) {}

// Machine is of no interest.
func (c *Capture) Machine(op.Machine) {}

// Canary is of no interest.
func (c *Capture) Canary(string, string, []op.CanaryIO) {}

// Log is of no interest: what the command writes is captured.
func (c *Capture) Log(string, string) {}

// Failed is of no interest.
func (c *Capture) Failed(error) {}
