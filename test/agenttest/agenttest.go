// Package agenttest has helpers for tests of the agent and of local pods: the agent built from this tree, and
// a sink and a ledger that record everything.
package agenttest

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Main builds the agent and runs the tests of a package, which fail if they leave a goroutine behind; for TestMain.
func Main(m *testing.M, agent *string) int {
	dir, err := os.MkdirTemp("", "cnsbench-agent-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	// Tests run it as another user too.
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
	code := m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// Sink records what it receives.
type Sink struct {
	// OutputDelay delays every Output; set it before use.
	OutputDelay time.Duration
	// Limit bounds the bytes kept of each file; 0: all; set it before use.
	Limit int

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

// NewSink returns an empty sink.
func NewSink() *Sink {
	return &Sink{canaries: map[string][]op.CanaryIO{}, outputs: map[string][]byte{}, cuts: map[string]Cut{}}
}

// add appends v to a list of s, and list copies one.
func add[T any](s *Sink, to *[]T, v ...T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*to = append(*to, v...)
}

func list[T any](s *Sink, from *[]T) []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(*from)
}

// Started appends start.
func (s *Sink) Started(start op.InstanceStart) { add(s, &s.starts, start) }

// Ended appends e.
func (s *Sink) Ended(e op.InstanceEnd) { add(s, &s.ends, e) }

// Machine appends a reading.
func (s *Sink) Machine(m op.Machine) { add(s, &s.machines, m) }

// Volume does nothing: agents have no readings of drivers.
func (s *Sink) Volume(op.VolumeReading) {}

// Sample appends a sample.
func (s *Sink) Sample(sample op.Sample) { add(s, &s.samples, sample) }

// Log appends "source: line".
func (s *Sink) Log(source, line string) { add(s, &s.logs, source+": "+line) }

// Failed appends err.
func (s *Sink) Failed(err error) { add(s, &s.failures, err) }

// Canary appends I/Os by instance/volume.
func (s *Sink) Canary(instance, volume string, ios []op.CanaryIO) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := instance + "/" + volume
	s.canaries[key] = append(s.canaries[key], ios...)
}

// Output appends to the file instance/container:name, up to Limit.
func (s *Sink) Output(instance, container, file string, data []byte) int {
	time.Sleep(s.OutputDelay)
	s.mu.Lock()
	defer s.mu.Unlock()
	key := instance + "/" + container + ":" + file
	kept := len(data)
	if s.Limit > 0 {
		kept = min(kept, max(0, s.Limit-len(s.outputs[key])))
	}
	s.outputs[key] = append(s.outputs[key], data[:kept]...)
	return kept
}

// Cut is the last Sink.Cut of a file.
type Cut struct {
	Discarded int64
	Final     bool
}

// Cut stores the discarded bytes of instance/container:name.
func (s *Sink) Cut(instance, container, file string, discarded int64, final bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cuts[instance+"/"+container+":"+file] = Cut{discarded, final}
}

// CutOf returns the discarded bytes of a file.
func (s *Sink) CutOf(instance, container, file string) Cut {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cuts[instance+"/"+container+":"+file]
}

// Failures returns the errors passed to Failed.
func (s *Sink) Failures() []error { return list(s, &s.failures) }

// Starts returns the starts so far.
func (s *Sink) Starts() []op.InstanceStart { return list(s, &s.starts) }

// Ends returns the ends so far.
func (s *Sink) Ends() []op.InstanceEnd { return list(s, &s.ends) }

// Machines returns the readings of machines so far.
func (s *Sink) Machines() []op.Machine { return list(s, &s.machines) }

// Samples returns the samples so far.
func (s *Sink) Samples() []op.Sample { return list(s, &s.samples) }

// Canaries returns the I/Os on one volume so far.
func (s *Sink) Canaries(instance, volume string) []op.CanaryIO {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.canaries[instance+"/"+volume])
}

// OutputOf returns a file and whether it was announced.
func (s *Sink) OutputOf(instance, container, file string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.outputs[instance+"/"+container+":"+file]
	return slices.Clone(b), ok
}

// OutputNames returns the keys of all files.
func (s *Sink) OutputNames() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.outputs))
}

// Logs returns the log, one line each.
func (s *Sink) Logs() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.logs, "\n")
}

// Ledger is a ledger in memory.
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

// Note is Add.
func (l *Ledger) Note(e op.LedgerEntry) error { return l.Add(e) }

// Done removes the newest entry of that name.
func (l *Ledger) Done(kind, name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.entries) - 1; i >= 0; i-- {
		if e := l.entries[i]; e.Kind == kind && e.Name == name {
			l.entries = slices.Delete(l.entries, i, i+1)
			return nil
		}
	}
	return fmt.Errorf("ledger: %s %s is not in it", kind, name)
}

// Open returns the entries that are not done.
func (l *Ledger) Open() []op.LedgerEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries)
}

// Ever returns all entries ever added.
func (l *Ledger) Ever() []op.LedgerEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

// Eventually polls until ok returns true and fails the test after a minute.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	const within = time.Minute
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not within %v: %s", within, what)
}
