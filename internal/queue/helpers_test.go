package queue

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// script is what a test submits: text for sh, which gets the directory of the results as its argument.
const (
	quick = "exit 0"
	// slow runs until it is interrupted, and cleans up then; a file in its results says how often it was.
	slow = `mkdir -p "$1"; n=0
trap 'n=$((n+1)); echo $n >"$1/interrupts"; echo cleaning up >&2; [ -e "$1/stay" ] && [ $n = 1 ] || exit 130' INT
echo begun >&2; echo >"$1/begun"
while :; do sleep 0.02; done`
)

// serverDir is set in a process that a test starts as a server to kill.
const serverDir = "CNSBENCH_TEST_QUEUE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(serverDir); dir != "" {
		q, err := Open(options(dir))
		if err == nil {
			_, err = q.Submit(Submission{Name: "slow", Text: slow})
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		q.Run(context.Background(), context.Background())
	}
	os.Exit(m.Run())
}

func options(dir string) Options {
	return Options{Dir: dir,
		Command: func(_ Submission, file, out string) (*exec.Cmd, error) { return exec.Command("sh", file, out), nil },
		Outcome: func(code int) (State, string) {
			switch code {
			case 0:
				return Done, ""
			case 130:
				return Cancelled, "interrupted"
			}
			return Failed, fmt.Sprint("status ", code)
		},
		Log: func(string) {}}
}

func open(t *testing.T, dir string) *Queue {
	t.Helper()
	q, err := Open(options(dir))
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// run runs the queue; stop ends it, at once or after a second interrupt, and waits.
func run(t *testing.T, q *Queue) (stop func(again bool)) {
	t.Helper()
	soft, end := context.WithCancel(context.Background())
	hard, kill := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); q.Run(soft, hard) }()
	stop = func(again bool) {
		end()
		if again {
			kill()
		}
		<-done
	}
	t.Cleanup(func() {
		stop(true)
		if err := q.Close(); err != nil {
			t.Error(err)
		}
		kill()
	})
	return stop
}

func submit(t *testing.T, q *Queue, text string) Submission {
	t.Helper()
	s, err := q.Submit(Submission{Name: "a", Text: text})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// until waits for a condition, and fails after a time that a busy machine does not need.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 3000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("not reached: " + what)
}

func untilState(t *testing.T, q *Queue, id string, want State) Submission {
	t.Helper()
	var s Submission
	until(t, id+" is "+string(want), func() bool {
		var err error
		if s, err = q.Get(id); err != nil {
			t.Fatal(err)
		}
		return s.State == want
	})
	return s
}

// begun waits until a script traps the signal.
func begun(t *testing.T, q *Queue, id string) (out string) {
	t.Helper()
	out = filepath.Join(q.Dir, untilState(t, q, id, Running).Out)
	until(t, id+" has begun", func() bool {
		_, err := os.Stat(filepath.Join(out, "begun"))
		return err == nil
	})
	return out
}

func interrupts(t *testing.T, out string) string {
	t.Helper()
	n, err := os.ReadFile(filepath.Join(out, "interrupts"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(n))
}

func ignoreExit(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}
