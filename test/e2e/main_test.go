// Package e2e runs the built programs as a user does and checks their output, exit code,
// bundle and leftovers.
package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var (
	module   string // directory of the repository
	programs string // directory of cnsbench and its agent
)

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

// testMain builds the programs from the source tree. CNSBENCH_BIN names a directory with prebuilt
// programs to use instead.
func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "e2e-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func build(dir string) error {
	var err error
	if module, err = filepath.Abs(filepath.Join("..", "..")); err != nil {
		return err
	}
	if programs = os.Getenv("CNSBENCH_BIN"); programs != "" {
		programs, err = filepath.Abs(programs)
		return err
	}
	programs = dir
	cmd := exec.Command("go", "build", "-trimpath", "-tags=grpcnotrace", "-o", dir, "./cmd/cnsbench",
		"./cmd/cnsbench-agent")
	cmd.Dir, cmd.Env = module, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	return os.Chmod(dir, 0o755) // unprivileged users run the programs too
}
