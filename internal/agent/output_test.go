package agent_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent"
	"github.com/cnsbench/cnsbench/internal/quota"
	"github.com/cnsbench/cnsbench/test/agenttest"
)

// TestOutputLimit checks a command that writes without end: the agent sends up to the lower limit of the two sides and
// counts the rest, and the command ends normally.
func TestOutputLimit(t *testing.T) {
	const written = 64 << 20
	for _, tt := range []struct {
		name         string
		limit        int64 // the agent's limit, in bytes
		most         int   // the runner's limit per file, in bytes
		logDir       func(t *testing.T) string
		stdout, file int
	}{
		{"by the agent", 1 << 20, 0, (*testing.T).TempDir, 256 << 10, 768 << 10},
		{"by the agent, without files", 1 << 20, 0, none, 256 << 10, 768 << 10},
		{"by the runner", 0, 100_000, (*testing.T).TempDir, 100_000, 100_000},
		{"by the runner, without files", 0, 100_000, none, 100_000, 100_000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newTLSFixture(t)
			f.sink.Limit = tt.most
			file := filepath.Join(t.TempDir(), "file")
			s := f.expect("p", agent.Options{MaxOutput: tt.limit, Outputs: []string{file}})
			command := fmt.Sprintf("yes | head -c %d; head -c %d /dev/zero > %s", written, written, file)
			p := agenttest.Run(t, agentPath, s.Env(), "wrap", "--log-dir", tt.logDir(t), "--", "sh", "-c", command)
			if end := f.done(s); !end.OK() {
				t.Errorf("end %+v", end)
			}
			if code := p.Exit(t, 5*time.Second); code != 0 {
				t.Errorf("exit code %d", code)
			}
			for name, want := range map[string]int{"stdout": tt.stdout, file: tt.file} {
				kept, _ := f.sink.OutputOf("p", "c", name)
				cut := f.sink.CutOf("p", "c", name)
				if len(kept) != want || !cut.Final {
					t.Errorf("%s: %d bytes kept, %+v, want %d", name, len(kept), cut, want)
				}
				// The runner counts the data that was in flight when its limit was reached.
				most := int64(written - want)
				if cut.Discarded > most || tt.limit > 0 && cut.Discarded != most || cut.Discarded < most/2 {
					t.Errorf("%s: %d bytes discarded at the source, want %d", name, cut.Discarded, most)
				}
			}
		})
	}
}

func none(*testing.T) string { return "none" }

// TestLogLimit checks that the lines of a command are logged up to a limit, and that the error of a failed command has
// its last lines.
func TestLogLimit(t *testing.T) {
	f := newFixture(t)
	s := f.expect("p", agent.Options{})
	f.wrap(s, "sh", "-c", "yes a-line-like-any-other | head -n 200000; echo the-last; exit 3")
	end := f.done(s)
	if end.ExitCode != 3 || !strings.HasSuffix(end.Message, "the-last") || strings.Count(end.Message, "\n") > 10 {
		t.Errorf("end %+v", end)
	}
	logs := f.sink.Logs()
	if len(logs) > 2*quota.OneSource || strings.Count(logs, "further lines of stdout") != 1 {
		t.Errorf("%d bytes of log", len(logs))
	}
	if out, _ := f.sink.OutputOf("p", "c", "stdout"); len(out) != 200000*22+9 {
		t.Errorf("%d bytes of output", len(out))
	}
}
