package e2e

import (
	"bufio"
	"encoding/json"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ackedAfter is how long after its end an op is certainly in the bundle of a killed run: ops are written in batches of
// 100 ms; the rest is for a busy machine.
const ackedAfter = 1200 * time.Millisecond

// killSeed returns the seed of random moments: CNSBENCH_SEED, or a new one. It is printed, so that a failure can be
// repeated.
func killSeed(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64N(1e9)
	if s := os.Getenv("CNSBENCH_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("CNSBENCH_SEED: %v", err)
		}
	}
	t.Logf("CNSBENCH_SEED=%d", seed)
	return seed
}

// chance is the random generator of one test. Tests that run beside it do not change its numbers.
func chance(seed uint64, test string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(test))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// within returns a random duration of less than most.
func within(r *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(r.Int64N(int64(most)))
}

// killRunner kills a run on the most realistic driver at a random moment and cleans up.
func (b *box) killRunner(r *rand.Rand) {
	b.Helper()
	l := b.startRun(busy(realDriver()))
	b.wait(within(r, 5*time.Second))
	b.killAndCleanUp(l, r)
}

// wait sleeps and prints how long, because the moment of a kill explains a failure.
func (b *box) wait(d time.Duration) {
	b.Helper()
	b.Logf("kill after %v", d)
	time.Sleep(d)
}

// killAndCleanUp kills the runner and, half of the time, all processes of the box, as a power failure does. Then it
// checks the bundle against the log of the driver, and cleanup, which is killed once in three times.
func (b *box) killAndCleanUp(l *live, r *rand.Rand) {
	b.Helper()
	at := time.Now()
	l.kill()
	if r.IntN(2) == 0 {
		for _, p := range b.processes() {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
		b.Log("everything was killed, not the runner alone")
	}
	if _, err := os.Stat(filepath.Join(b.bundle(), "run.json")); err != nil {
		b.Log("killed before there was a bundle")
		b.clean()
		return
	}
	show := b.run("show", b.bundle()).wants(b, 0)
	if !strings.Contains(show.stdout+show.stderr, "incomplete") {
		b.Errorf("show does not say that the bundle is incomplete\n%v", show)
	}
	s, ops := b.readable(b.bundle())
	if s.Complete {
		b.Errorf("a killed run counts as complete: state %q", s.State)
	}
	logs, _ := filepath.Glob(filepath.Join(b.tmp, "cnsbench-*", "*-truth.jsonl")) // cleanup removes them
	for _, log := range logs {
		b.agrees(ops, callsOf(b, log), at.Add(-ackedAfter))
	}
	b.cleanUp(r)
	b.clean()
}

// cleanUp removes what a run has left. Once in three times the first cleanup is killed. A further cleanup must find
// nothing.
func (b *box) cleanUp(r *rand.Rand) {
	b.Helper()
	if r.IntN(3) == 0 {
		l := b.start(b.cnsbench(), "cleanup", b.bundle())
		after := within(r, 600*time.Millisecond)
		b.Logf("cleanup was killed after %v", after)
		time.Sleep(after)
		l.kill()
	}
	b.run("cleanup", b.bundle()).wants(b, 0)
	again := b.run("cleanup", b.bundle()).wants(b, 0)
	// A run whose containers are left to cnsbench object cleanup stays registered.
	if !strings.Contains(again.stdout, "not registered") && !strings.HasPrefix(again.stdout, "0 objects removed; containers") {
		b.Errorf("a second cleanup finds something\n%v", again)
	}
}

// call is a call as a driver logs it.
type call struct {
	Event, RPC, Name, Volume, Snapshot, Code string
	End                                      int64 `json:"end_unix_ns"`
}

// callsOf reads the log of a driver. Its last line may be torn, because the driver can be killed as well.
func callsOf(t testing.TB, log string) (calls []call) {
	t.Helper()
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c call
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			if lines.Scan() {
				t.Errorf("%s: damaged before its end: %v", log, err)
			}
			return calls
		}
		calls = append(calls, c)
	}
	return calls
}

// agrees compares the ops of a bundle with what a driver has logged, as an independent ledger: each op that succeeded
// is in the log, none was done twice, and none whose last call ended before sure is missing. For the last it uses
// snapshots, because their ops end with the call that creates them.
func (b *box) agrees(ops []opJSON, calls []call, sure time.Time) {
	b.Helper()
	ids, succeeded := map[int64]bool{}, map[string]string{}
	seen := map[string]int{}
	for _, o := range ops {
		if ids[o.ID] {
			b.Errorf("op %d is in the bundle twice", o.ID)
		}
		ids[o.ID] = true
		if o.Kind == "delete" || o.Started == nil {
			continue
		}
		name := o.Action + "-" + strconv.FormatInt(o.Instance, 10)
		if seen[name]++; seen[name] > 1 {
			b.Errorf("%d ops made %s", seen[name], name)
		}
		if o.Outcome == "ok" {
			succeeded[name] = o.Kind
		}
	}
	made, lost, certain := map[string]int{}, 0, 0
	for _, c := range calls {
		if c.Code != "OK" || c.RPC != "CreateVolume" && c.RPC != "CreateSnapshot" {
			continue
		}
		name := strings.TrimSuffix(withoutRun(c.Name), "-data") // the volume of a workload
		if made[name]++; made[name] > 1 {
			b.Errorf("the driver created %s %d times", name, made[name])
		}
		if c.RPC == "CreateSnapshot" && time.Unix(0, c.End).Before(sure) {
			if certain++; seen[name] == 0 {
				lost++
				b.Errorf("snapshot %s ended at %v and is not in the bundle", name, time.Unix(0, c.End))
			}
		}
	}
	for name, kind := range succeeded {
		switch kind {
		case "create", "snapshot", "restore", "clone":
			if made[name] == 0 {
				b.Errorf("%s %s succeeded by the bundle, and the driver has not created it", kind, name)
			}
		}
	}
	b.Logf("%d ops, %d objects of the driver; %d snapshots were certain, %d are lost", len(ops), len(made), certain, lost)
}

// withoutRun returns the name of an object without its prefix "cnsbench-RUNID-".
func withoutRun(name string) string {
	_, rest, _ := strings.Cut(name, "-")
	_, rest, _ = strings.Cut(rest, "-")
	return rest
}
