package bundle

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cnsbench/cnsbench/internal/op"
)

const (
	childMode = "CNSBENCH_TEST_CHILD"
	childDir  = "CNSBENCH_TEST_DIR"
)

// TestMain runs the tests and fails if they leave a goroutine behind, or runs the child program that the kill tests
// kill.
func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(childMode) {
	case "":
		goleak.VerifyTestMain(m)
		return
	case "run":
		err = childRun(os.Getenv(childDir))
	case "close":
		err = childClose(os.Getenv(childDir))
	}
	if err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
}

// childRun records operations without end and prints each ID after Op has returned. For each hundredth ID it also adds
// a ledger entry, which is durable when it is printed.
func childRun(dir string) error {
	w, err := Create(dir, Run{Engine: "kubernetes"})
	if err != nil {
		return err
	}
	for id := int64(1); ; id++ {
		w.Op(op.Op{ID: id, Started: op.Never, Milestones: []op.Milestone{{Name: "acked", At: op.Time(id)}}})
		w.Log(op.Time(id), "child", strconv.FormatInt(id, 10))
		fmt.Println("op", id)
		if id%100 == 0 {
			if err := w.Ledger().Add(op.LedgerEntry{Kind: "volume", Name: strconv.FormatInt(id, 10)}); err != nil {
				return err
			}
			fmt.Println("ledger", id)
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// childClose records a fixed number of operations, flushes them, and closes the bundle.
func childClose(dir string) error {
	w, err := Create(dir, Run{Engine: "kubernetes"})
	if err != nil {
		return err
	}
	for id := int64(1); id <= closeOps; id++ {
		w.Op(op.Op{ID: id})
	}
	if err := w.Raw("i", "c", "f", make([]byte, 4<<20)); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Println("closing", 0)
	if err := w.Close(nil); err != nil {
		return err
	}
	fmt.Println("closed", 0)
	return nil
}

const closeOps = 5000

// acks holds what the child has printed, with times.
type acks struct {
	mu     sync.Mutex
	ops    []time.Time // index i: the time at which ID i+1 was received
	ledger int64
	failed string
	mark   chan string // receives "closing" and "closed"
}

// begun reports whether the child has recorded an operation or has failed.
func (a *acks) begun() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.ops) > 0 || a.failed != ""
}

func (a *acks) listen(out *bufio.Scanner) {
	for out.Scan() {
		what, rest, _ := strings.Cut(out.Text(), " ")
		now := time.Now()
		a.mu.Lock()
		switch what {
		case "op":
			a.ops = append(a.ops, now)
		case "ledger":
			a.ledger, _ = strconv.ParseInt(rest, 10, 64)
		case "closing", "closed":
			a.mark <- what
		default:
			a.failed = out.Text()
		}
		a.mu.Unlock()
	}
	close(a.mark)
}

// child starts this program as a child in the given mode.
func child(t *testing.T, mode, dir string) (*exec.Cmd, *acks) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childMode+"="+mode, childDir+"="+dir)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	a := &acks{mark: make(chan string, 2)}
	go a.listen(bufio.NewScanner(out))
	return cmd, a
}

// kill sends SIGKILL to the child, waits until its output is read, and returns the time of the kill.
func kill(t *testing.T, cmd *exec.Cmd, a *acks) time.Time {
	t.Helper()
	at := time.Now()
	must(t, cmd.Process.Kill())
	for range a.mark { // closed when listen returns
	}
	_ = cmd.Wait() // always "signal: killed"
	if a.failed != "" {
		t.Fatalf("child: %s", a.failed)
	}
	return at
}

// kills returns the number of kills: usual, or the value of CNSBENCH_KILLS, for example 500 for a soak test.
func kills(t *testing.T, usual int) int {
	t.Helper()
	if s := os.Getenv("CNSBENCH_KILLS"); s != "" {
		n, err := strconv.Atoi(s)
		must(t, err)
		return n
	}
	return usual
}

// TestKillWhileRunning kills a recording process at random times. It checks that every operation acknowledged more than
// 1.1 s before the kill exists once and in order, and that every ledger entry exists whose Add had returned.
func TestKillWhileRunning(t *testing.T) {
	for i := range kills(t, 6) {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "b")
			cmd, a := child(t, "run", dir)
			for !a.begun() { // Create calls fsync, which is slow on a busy disk
				time.Sleep(time.Millisecond)
			}
			time.Sleep(1200*time.Millisecond + time.Duration(rand.IntN(1200))*time.Millisecond)
			at := kill(t, cmd, a)

			sure := 0
			for sure < len(a.ops) && at.Sub(a.ops[sure]) > 1100*time.Millisecond {
				sure++
			}
			b, err := Open(dir)
			must(t, err)
			if b.Complete || b.Live || b.Run.State != Running || len(b.Warnings) == 0 {
				t.Errorf("complete %v, live %v, state %s, warnings %q", b.Complete, b.Live, b.Run.State, b.Warnings)
			}
			ops := collect(t, b.Ops())
			for i, o := range ops {
				if o.ID != int64(i+1) || len(o.Milestones) != 1 {
					t.Fatalf("op %d of the bundle has id %d", i+1, o.ID)
				}
			}
			if len(ops) < sure {
				t.Errorf("%d ops are there, %d were sure", len(ops), sure)
			}
			if n := len(collect(t, b.Log())); n < sure {
				t.Errorf("%d log lines are there, %d were sure", n, sure)
			}
			l, err := OpenLedger(dir)
			must(t, err)
			if got := int64(len(l.Open())) * 100; got < a.ledger {
				t.Errorf("the ledger ends at %d, %d was durable", got, a.ledger)
			}
			must(t, l.Add(op.LedgerEntry{Kind: "volume", Name: "after"}))
			must(t, l.Close())
			t.Logf("%d ops said, %d sure, %d found", len(a.ops), sure, len(ops))
		})
	}
}

// TestKillWhileClosing kills a process at random times during Close. It checks that no operation is lost or duplicated,
// and that a bundle marked as complete passes Verify.
func TestKillWhileClosing(t *testing.T) {
	var mu sync.Mutex
	seen := make(map[string]int)
	t.Run("kills", func(t *testing.T) {
		for i := range kills(t, 24) {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "b")
				cmd, a := child(t, "close", dir)
				if m := <-a.mark; m != "closing" {
					t.Fatalf("child said %q %s", m, a.failed)
				}
				time.Sleep(time.Duration(rand.IntN(120_000)) * time.Microsecond)
				kill(t, cmd, a)
				b, err := Open(dir)
				must(t, err)
				ops := collect(t, b.Ops())
				if len(ops) != closeOps {
					t.Fatalf("%d of %d ops", len(ops), closeOps)
				}
				for i, o := range ops {
					if o.ID != int64(i+1) {
						t.Fatalf("op %d has id %d", i+1, o.ID)
					}
				}
				if b.Complete {
					must(t, b.Verify())
				} else if len(b.Warnings) == 0 {
					t.Error("incomplete without a warning")
				}
				mu.Lock()
				defer mu.Unlock()
				seen[fmt.Sprintf("columnar=%v complete=%v", b.columnar, b.Complete)]++
			})
		}
	})
	t.Logf("states met: %v", seen)
}

// TestKilledBetweenSteps checks the states that a kill leaves after each step of Close, including those that random
// kills rarely produce.
func TestKilledBetweenSteps(t *testing.T) {
	remove := func(files ...string) func(string) error {
		return func(dir string) error {
			for _, f := range files {
				if err := os.Remove(filepath.Join(dir, f)); err != nil {
					return err
				}
			}
			return nil
		}
	}
	for _, c := range []struct {
		name  string
		spoil func(dir string) error
	}{
		{"parquet half written", func(dir string) error {
			if err := os.Rename(filepath.Join(dir, columnarFile),
				filepath.Join(dir, columnarFile+tmpSuffix)); err != nil {
				return err
			}
			if err := os.Truncate(filepath.Join(dir, columnarFile+tmpSuffix), 100); err != nil {
				return err
			}
			return remove(manifestFile)(dir)
		}},
		{"segments not yet removed", remove(manifestFile)},
		{"manifest half written", func(dir string) error {
			return os.Rename(filepath.Join(dir, manifestFile), filepath.Join(dir, manifestFile+tmpSuffix))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWriter(t)
			for id := range int64(3000) {
				w.Op(op.Op{ID: id})
			}
			must(t, w.Flush())
			segment := filepath.Join(w.Dir(), segmentName(1))
			events, err := os.ReadFile(segment)
			must(t, err)
			must(t, w.Close(nil))
			must(t, os.WriteFile(segment, events, 0o644))
			must(t, c.spoil(w.Dir()))
			b, err := Open(w.Dir())
			must(t, err)
			if b.Complete || len(b.Warnings) == 0 {
				t.Errorf("complete %v, warnings %q", b.Complete, b.Warnings)
			}
			for i, o := range collect(t, b.Ops()) {
				if o.ID != int64(i) {
					t.Fatalf("op %d has id %d", i, o.ID)
				}
			}
			if n := len(collect(t, b.Ops())); n != 3000 {
				t.Errorf("%d ops", n)
			}
		})
	}
}
