// Package sandbox gives one container of a pod that runs as a local process its own root: the host's
// directories appear read-only, /tmp is private, and volumes are mounted at their paths, which need not exist
// on the host and are never created there.
//
// It is no security boundary: the process may use the host's network and devices.
//
// The runner starts `cnsbench-agent jail` in new mount and PID (and, when not root, user) namespaces and
// writes a Spec to its descriptor SpecFD; the agent calls Enter and then runs the command as the namespace's
// PID 1.
package sandbox

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/cnsbench/cnsbench/internal/agent/wrap"
)

// SpecFD is the descriptor on which the agent reads its Spec. The runner writes it after recording the
// process in its ledger; if it closes the pipe before that, the agent exits.
const SpecFD = 3

// Spec is the input of `cnsbench-agent jail`.
type Spec struct {
	// Name of the container, the prefix of its log files.
	Name string `json:"name"`
	// Socket is the path of the runner's socket on the host.
	Socket string `json:"socket"`
	Token  string `json:"token"`
	// LogDir is the directory of the host for <Name>.stdout and .stderr.
	LogDir string `json:"logDir"`
	// ClockOffset shifts the agent's clock, for tests.
	ClockOffset int64 `json:"clockOffset,omitempty"`

	// Root is an existing empty directory on which the new root is built.
	Root string `json:"root"`
	// Hide lists directories in which the run mounts volumes. The sandbox unmounts everything in them and
	// every other mount that it does not need, so that volumes do not stay busy.
	Hide   []string     `json:"hide,omitempty"`
	Mounts []Mount      `json:"mounts,omitempty"`
	Cmd    wrap.Command `json:"cmd"`
}

// Mount puts a file or directory of the host at a path in the sandbox.
type Mount struct {
	// Source on the host; empty: only create the directory Target.
	Source   string `json:"source,omitempty"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"readOnly,omitempty"`
}

// Write sends s to the agent at the other end of the pipe w and closes w.
func (s *Spec) Write(w *os.File) error {
	err := json.NewEncoder(w).Encode(s)
	if closeErr := w.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("send the agent its specification: %w", err)
	}
	return nil
}

// Read reads the Spec from SpecFD.
func Read() (*Spec, error) {
	f := os.NewFile(SpecFD, "sandbox specification")
	if f == nil {
		return nil, fmt.Errorf("descriptor %d is not open: only cnsbench starts `cnsbench-agent jail`", SpecFD)
	}
	defer f.Close()
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
