package agent

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/cnsbench/cnsbench/internal/agent/transport"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// broken is a listener whose Accept fails for some calls, or for all.
type broken struct {
	net.Listener
	left int
}

func (b *broken) Accept() (net.Conn, error) {
	if b.left == 0 {
		return nil, net.ErrClosed
	}
	b.left--
	return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
}

func (b *broken) Close() error { return nil }

// verdict is a sink that records what the listener reports.
type verdict struct {
	engine.Sink
	failed error
	lines  []string
}

func (v *verdict) Failed(err error)   { v.failed = err }
func (v *verdict) Log(_, line string) { v.lines = append(v.lines, line) }

// TestAcceptFails checks that a listener survives temporary errors but not permanent ones, and that the number of its
// log lines is limited.
func TestAcceptFails(t *testing.T) {
	for name, tc := range map[string]struct {
		failures int
		fatal    bool
	}{
		"a while":  {acceptFailures, false},
		"for ever": {acceptFailures * 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink := &verdict{}
				s := newServer(t.Context(), &broken{left: tc.failures}, "", nil, op.NewClock(), sink, transport.Silence)
				s.wg.Wait()
				if (sink.failed != nil) != tc.fatal || tc.fatal && !errors.Is(sink.failed, syscall.EMFILE) {
					t.Errorf("failed: %v", sink.failed)
				}
				if len(sink.lines) > refusalLines || !strings.Contains(sink.lines[0], "too many open files") {
					t.Errorf("%d lines, the first %q", len(sink.lines), sink.lines)
				}
			})
		})
	}
}
