package cluster

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/hack/testbed/internal/process"
)

// TestClaim checks that another test bed may be undone only if nothing of it runs, and no command is at work on it.
func TestClaim(t *testing.T) {
	c, err := Open(".", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.records.Start(process.Spec{Name: "part", Argv: []string{"sleep", "60"}, Log: c.Log("part")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.records.Stop(r, time.Second) })
	down := "TESTBED_DIR=" + c.Dir + " " + c.Bin("testbed") + " down"
	if _, err := c.claim(); err == nil || !strings.Contains(err.Error(), down) {
		t.Errorf("with a process: %v", err)
	}
	if err := syscall.Kill(r.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); r.Alive() && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	unlock, err := c.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.claim(); err == nil || !strings.Contains(err.Error(), "another command is at work") {
		t.Errorf("with a command at work: %v", err)
	}
	unlock()
	if unlock, err = c.claim(); err != nil {
		t.Fatalf("without a process: %v", err)
	}
	unlock()
}
