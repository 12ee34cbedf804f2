package agent_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent"
	"github.com/cnsbench/cnsbench/internal/agent/protocol"
)

// A container that is started anew is welcome where it is expected, with the
// token that it has, and known by another name; the first one's end is not its own.
func TestAgain(t *testing.T) {
	f := newFixture(t)
	first := f.expect("p", agent.Options{})
	_, _ = f.wrap(first, "sleep", "60")
	if _, _, err := first.Started(t.Context()); err != nil {
		t.Fatal(err)
	}
	second, err := f.Again(first, "c~1") // before the first has ended
	if err != nil {
		t.Fatal(err)
	}
	if second.Token() != first.Token() {
		t.Error("the second has another token")
	}
	if err := first.Signal(syscall.SIGKILL, 0); err != nil {
		t.Fatal(err)
	}
	if end := f.done(first); end.Signal != "SIGKILL" || !end.Asked {
		t.Errorf("the first ended %+v", end)
	}
	_, _ = f.wrap(second, "sh", "-c", "exit 3")
	if end := f.done(second); end.ExitCode != 3 || end.Name != "c~1" {
		t.Errorf("the second ended %+v", end)
	}
	third, out := f.wrap(second, "true")
	if err := third.Wait(); err == nil || !strings.Contains(out.String(), "started a second time") {
		t.Errorf("a third start, which nobody expected: %v, %q", err, out)
	}
}

// A stopped command stands still with all of its group, goes on afterwards, and
// its volume can be touched again meanwhile.
func TestStopAndTouchAgain(t *testing.T) {
	f := newFixture(t)
	s := f.expect("p", agent.Options{Touch: []protocol.TouchSpec{{Volume: "v", Path: t.TempDir(), Write: true, Read: true}}})
	_, _ = f.wrap(s, "sh", "-c", "(while :; do echo tick; sleep 0.02; done) & wait")
	if _, _, err := s.Started(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := s.Touches()
	if err := s.Signal(syscall.SIGSTOP, 0); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond) // what was written before is on its way
	written := func() int {
		b, _ := f.sink.OutputOf("p", "c", protocol.Stdout)
		return len(b)
	}
	still := written()
	time.Sleep(500 * time.Millisecond)
	if n := written(); n != still {
		t.Errorf("a child wrote %d bytes while its group was stopped", n-still)
	}
	again, err := s.Touch(t.Context())
	if err != nil || len(again) != len(before) || len(again) != 2 {
		t.Fatalf("touched %v first, then %v: %v", before, again, err)
	}
	for _, touch := range again {
		if touch.Failure != "" || touch.At <= before[1].At {
			t.Errorf("touched again: %+v, after %v", touch, before[1].At)
		}
	}
	if err := s.Signal(syscall.SIGCONT, 0); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); written() == still; {
		if time.Now().After(deadline) {
			t.Fatal("it did not go on")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := s.Signal(syscall.SIGKILL, 0); err != nil {
		t.Fatal(err)
	}
	f.done(s)
}
