// Package agenttest is what tests of the agent and of local pods share: the
// agent built from this tree, a sink and a ledger that remember everything.
package agenttest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Main builds the agent for the tests of a package and runs them; for TestMain.
func Main(m *testing.M, agent *string) int {
	dir, err := os.MkdirTemp("", "cnsbench-agent-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir) // a temporary directory
	// Tests as another user run it too.
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	*agent = filepath.Join(dir, "cnsbench-agent")
	build := exec.CommandContext(context.Background(), "go", "build", "-o", *agent,
		"github.com/cnsbench/cnsbench/cmd/cnsbench-agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the agent: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// Sink remembers what it is given.
type Sink struct {
	// OutputDelay slows Output down; set it before use.
	OutputDelay time.Duration
	// Most is how many bytes of each file are kept; 0: all; set it before use.
	Most int

	mu       sync.Mutex
	starts   []op.InstanceStart
	ends     []op.InstanceEnd
	samples  []op.Sample
	machines []op.Machine
	canaries map[string][]op.CanaryIO
	outputs  map[string][]byte
	cuts     map[string]Cut
	logs     []string
	failures []error
}

// NewSink is empty.
func NewSink() *Sink {
	return &Sink{canaries: map[string][]op.CanaryIO{}, outputs: map[string][]byte{}, cuts: map[string]Cut{}}
}

// Started remembers s.
func (s *Sink) Started(start op.InstanceStart) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starts = append(s.starts, start)
}

// Ended remembers e.
func (s *Sink) Ended(e op.InstanceEnd) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends = append(s.ends, e)
}

// Machine remembers a reading.
func (s *Sink) Machine(m op.Machine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machines = append(s.machines, m)
}

// Sample remembers a sample.
func (s *Sink) Sample(sample op.Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples = append(s.samples, sample)
}

// Canary remembers I/Os by instance/volume.
func (s *Sink) Canary(instance, volume string, ios []op.CanaryIO) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := instance + "/" + volume
	s.canaries[key] = append(s.canaries[key], ios...)
}

// Output appends to the file instance/container:name, as far as Most goes.
func (s *Sink) Output(instance, container, file string, data []byte) int {
	time.Sleep(s.OutputDelay)
	s.mu.Lock()
	defer s.mu.Unlock()
	key := instance + "/" + container + ":" + file
	kept := len(data)
	if s.Most > 0 {
		kept = min(kept, max(0, s.Most-len(s.outputs[key])))
	}
	s.outputs[key] = append(s.outputs[key], data[:kept]...)
	return kept
}

// Cut is what Sink.Cut was told last of a file.
type Cut struct {
	Discarded int64
	Final     bool
}

// Cut remembers what was discarded of instance/container:name.
func (s *Sink) Cut(instance, container, file string, discarded int64, final bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cuts[instance+"/"+container+":"+file] = Cut{discarded, final}
}

// CutOf is what was discarded of a file so far.
func (s *Sink) CutOf(instance, container, file string) Cut {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cuts[instance+"/"+container+":"+file]
}

// Log remembers "source: line".
func (s *Sink) Log(source, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logs = append(s.logs, source+": "+line)
}

// Failed remembers err.
func (s *Sink) Failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, err)
}

// Failures are the failures of the platform so far.
func (s *Sink) Failures() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]error(nil), s.failures...)
}

// Starts are the starts so far.
func (s *Sink) Starts() []op.InstanceStart {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]op.InstanceStart(nil), s.starts...)
}

// Ends are the ends so far.
func (s *Sink) Ends() []op.InstanceEnd {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]op.InstanceEnd(nil), s.ends...)
}

// Machines are the readings of machines so far.
func (s *Sink) Machines() []op.Machine {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]op.Machine(nil), s.machines...)
}

// Samples are the samples so far.
func (s *Sink) Samples() []op.Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]op.Sample(nil), s.samples...)
}

// Canaries are the I/Os on one volume so far.
func (s *Sink) Canaries(instance, volume string) []op.CanaryIO {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]op.CanaryIO(nil), s.canaries[instance+"/"+volume]...)
}

// OutputOf is a file so far, and whether anything came.
func (s *Sink) OutputOf(instance, container, file string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.outputs[instance+"/"+container+":"+file]
	return append([]byte(nil), b...), ok
}

// OutputNames are the keys of all files.
func (s *Sink) OutputNames() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for k := range s.outputs {
		all = append(all, k)
	}
	return all
}

// Logs is everything logged, a line each.
func (s *Sink) Logs() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.logs, "\n")
}

// Ledger keeps entries in memory.
type Ledger struct {
	mu      sync.Mutex
	entries []op.LedgerEntry
	all     []op.LedgerEntry
}

// Add adds e.
func (l *Ledger) Add(e op.LedgerEntry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, e)
	l.all = append(l.all, e)
	return nil
}

// Done removes the newest entry of that name.
func (l *Ledger) Done(kind, name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.entries) - 1; i >= 0; i-- {
		if e := l.entries[i]; e.Kind == kind && e.Name == name {
			l.entries = append(l.entries[:i], l.entries[i+1:]...)
			return nil
		}
	}
	return fmt.Errorf("ledger: %s %s is not in it", kind, name)
}

// Open is what is not done.
func (l *Ledger) Open() []op.LedgerEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]op.LedgerEntry(nil), l.entries...)
}

// Ever is everything that was added.
func (l *Ledger) Ever() []op.LedgerEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]op.LedgerEntry(nil), l.all...)
}

// Eventually waits for a condition, and fails the test after the time given.
func Eventually(t testing.TB, within time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not within %v: %s", within, what)
}
