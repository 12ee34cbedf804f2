// Package sandbox gives one container of a pod, run as a local process, its own
// view of the machine: a root of its own in which the host's directories
// appear read-only, /tmp is private, and volumes stand at their mount paths,
// which need not exist on the host and are never created there.
//
// It is surroundings for a benchmark's workload and no security boundary:
// the process may use the host's network and devices.
//
// The runner starts `cnsbench-agent jail` in new mount and PID (and, when not
// root, user) namespaces and writes a Spec to its descriptor SpecFD; the agent
// calls Enter and then runs the command as the namespace's PID 1.
package sandbox

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/cnsbench/cnsbench/internal/agent/wrap"
)

// SpecFD is the descriptor on which the agent finds its Spec. The runner
// writes it after it has noted the process in its ledger; if it closes the
// pipe before that, the agent ends.
const SpecFD = 3

// Spec is everything `cnsbench-agent jail` needs.
type Spec struct {
	// Name of the container, for its log files.
	Name string `json:"name"`
	// Socket of the runner, a path on the host, and the token to show there.
	Socket string `json:"socket"`
	Token  string `json:"token"`
	// LogDir takes <Name>.stdout and .stderr; a directory of the host.
	LogDir string `json:"logDir"`
	// ClockOffset shifts the agent's clock, for tests.
	ClockOffset int64 `json:"clockOffset,omitempty"`

	// Root is an existing empty directory on which the new root is built.
	Root string `json:"root"`
	// Hide lists directories where the run mounts things. The jail lets go at
	// once of the mounts in them, and of all others but the system's, lest it
	// keeps other volumes busy; see needed.
	Hide   []string     `json:"hide,omitempty"`
	Mounts []Mount      `json:"mounts,omitempty"`
	Cmd    wrap.Command `json:"cmd"`
}

// Mount puts a file or directory of the host at a path of the jail.
type Mount struct {
	// Source on the host; empty: Target is only made sure to exist, as a
	// directory.
	Source   string `json:"source,omitempty"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"readOnly,omitempty"`
}

// Write hands s to the agent at the other end of the pipe w and closes it.
func (s *Spec) Write(w *os.File) error {
	err := json.NewEncoder(w).Encode(s)
	if closeErr := w.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("hand the agent its specification: %w", err)
	}
	return nil
}

// Read takes the Spec from the descriptor that the agent was started with.
func Read() (*Spec, error) {
	f := os.NewFile(SpecFD, "jail specification")
	if f == nil {
		return nil, fmt.Errorf("descriptor %d is not open: `cnsbench-agent jail` is started by cnsbench only", SpecFD)
	}
	defer f.Close() // was only read
	b, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("read the specification: %w", err)
	}
	s := &Spec{}
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("read the specification (the runner may have ended): %w", err)
	}
	return s, nil
}
