package process

import (
	"path/filepath"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	const rest = " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21\n"
	for _, name := range []string{"(sleep)", "(a b)", "(a) Z 1 (b)"} {
		got, err := parseStat([]byte("12 " + name + rest))
		if err != nil || got != (procStat{'S', 4711}) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
	for _, bad := range []string{"", "12", "12 (x) S 1", "12 (x"} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q is taken for a stat", bad)
		}
	}
}

func spec(t *testing.T, argv ...string) Spec {
	return Spec{Name: "p", Argv: argv, Log: filepath.Join(t.TempDir(), "log", "p.log")}
}

func TestStartAndStop(t *testing.T) {
	d := Dir(filepath.Join(t.TempDir(), "proc"))
	r, err := d.Start(spec(t, "sleep", "60"))
	if err != nil {
		t.Fatal(err)
	}
	kept, ok, err := d.Get("p")
	if err != nil || !ok || !kept.Alive() || kept.PID != r.PID || kept.RSS() == 0 {
		t.Fatalf("the record of a running process: %+v, %t, %v", kept, ok, err)
	}
	other := kept
	other.Start++
	if other.Alive() {
		t.Error("another process with the same number is taken for ours")
	}
	if err := d.Stop(other, time.Second); err != nil || !kept.Alive() {
		t.Errorf("stopping by a stale record ended another process: %v", err)
	}
	if err := d.Stop(kept, time.Second); err != nil || kept.Alive() {
		t.Errorf("stopping: %v", err)
	}
	if all, err := d.All(); err != nil || len(all) != 0 {
		t.Errorf("records left: %v, %v", all, err)
	}
}

func TestStopKillsWhatIgnoresTerm(t *testing.T) {
	d := Dir(t.TempDir())
	r, err := d.Start(spec(t, "sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"))
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond) // for the trap
	if err := d.Stop(r, 100*time.Millisecond); err != nil || r.Alive() {
		t.Errorf("stopping: %v, alive %t", err, r.Alive())
	}
}

// TestEnvironmentIsNotHandedOn: a KUBECONFIG of the starter would win over the flags of some parts.
func TestEnvironmentIsNotHandedOn(t *testing.T) {
	t.Setenv("KUBECONFIG", "elsewhere")
	d, s := Dir(t.TempDir()), spec(t, "sh", "-c", "echo k=$KUBECONFIG own=$OWN; sleep 60")
	s.Env = []string{"OWN=1"}
	r, err := d.Start(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Stop(r, 0) })
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if last := Tail(s.Log, 1); last == "k= own=1" {
			return
		}
	}
	t.Errorf("the process has another environment: %s", Tail(s.Log, 1))
}

func TestSame(t *testing.T) {
	a := Spec{Argv: []string{"x", "1"}, Env: []string{"A=1"}, Inputs: "i"}
	for name, b := range map[string]Spec{
		"argument": {Argv: []string{"x", "2"}, Env: a.Env, Inputs: "i"},
		"env":      {Argv: a.Argv, Inputs: "i"},
		"inputs":   {Argv: a.Argv, Env: a.Env, Inputs: "j"},
	} {
		if a.Same(b) {
			t.Errorf("another %s makes no difference", name)
		}
	}
	if !a.Same(a) {
		t.Error("a spec differs from itself")
	}
}
