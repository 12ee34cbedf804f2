package queue

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRun(t *testing.T) {
	t.Parallel()
	q := open(t, t.TempDir())
	run(t, q)
	first, second := submit(t, q, slow), submit(t, q, `echo "bad value" >&2; exit 7`)
	out := begun(t, q, first.ID)
	until(t, "its log is read", func() bool {
		all, _ := q.List()
		return slices.Equal(all[0].Log, []string{"begun"})
	})
	if all, _ := q.List(); all[1].State != Queued || all[0].Text != "" {
		t.Errorf("while the first runs: %+v", all)
	}
	if err := q.Cancel(first.ID); err != nil {
		t.Fatal(err)
	}
	if err := q.Cancel(first.ID); err != nil && !errors.Is(err, ErrState) || err == nil {
		t.Errorf("second cancel: %v", err)
	}
	s := untilState(t, q, first.ID, Cancelled)
	if !slices.Contains(s.Log, "cleaning up") || interrupts(t, out) != "1" {
		t.Errorf("cancelled: log %q, %s interrupts", s.Log, interrupts(t, out))
	}
	s = untilState(t, q, second.ID, Failed)
	if s.Reason != "status 7" || !slices.Equal(s.Log, []string{"bad value"}) {
		t.Errorf("failed: %+v", s)
	}
	text, err := os.ReadFile(filepath.Join(q.Dir, s.Out+".yaml"))
	if err != nil || string(text) != s.Text {
		t.Errorf("its file: %q, %v", text, err)
	}
	again, err := q.Resubmit(first.ID)
	if err != nil || again.ID != "3" || again.Text != slow {
		t.Fatalf("resubmitted: %+v, %v", again, err)
	}
	begun(t, q, again.ID)
}

// Whatever is in the place of the results is left as it is.
func TestResultsExist(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	q := open(t, dir)
	for s := range 5 { // it starts in one of these seconds
		out := filepath.Join(dir, "a-"+time.Now().Add(time.Duration(s)*time.Second).Format("20060102-150405"))
		if err := os.Symlink(t.TempDir(), out); err != nil {
			t.Fatal(err)
		}
	}
	run(t, q)
	s := untilState(t, q, submit(t, q, quick).ID, Failed)
	if !strings.Contains(s.Reason, "exists already") {
		t.Errorf("reason %q", s.Reason)
	}
}

// The end of the server interrupts the run and waits for its clean-up. A second interrupt is passed on.
func TestServerEnds(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{false, true} {
		q := open(t, t.TempDir())
		stop := run(t, q)
		s := submit(t, q, slow)
		waiting := submit(t, q, quick)
		out := begun(t, q, s.ID)
		want := "1"
		if again {
			want = "2"
			if err := os.WriteFile(filepath.Join(out, "stay"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			go stop(false)
			until(t, "the first interrupt", func() bool {
				_, err := os.Stat(filepath.Join(out, "interrupts"))
				return err == nil
			})
		}
		stop(again)
		ended, err := q.Get(s.ID)
		if err != nil || ended.State != Interrupted || interrupts(t, out) != want {
			t.Errorf("again %v: %+v, %v, %s interrupts", again, ended, err, interrupts(t, out))
		}
		if other, _ := q.Get(waiting.ID); other.State != Queued {
			t.Errorf("the other one: %+v", other)
		}
	}
}

// A server that was killed has its run clean up. The next server keeps the queue, runs nothing twice, and is paused.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	server := exec.Command(self)
	server.Env = append(os.Environ(), serverDir+"="+dir)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	var found []string
	until(t, "the run has begun", func() bool {
		found, _ = filepath.Glob(filepath.Join(dir, "slow-*", "begun"))
		return len(found) > 0
	})
	out := filepath.Dir(found[0])
	if _, err := Open(options(dir)); err == nil || !strings.Contains(err.Error(), "another server") {
		t.Errorf("a second server: %v", err)
	}
	if err := errors.Join(server.Process.Kill(), ignoreExit(server.Wait())); err != nil {
		t.Fatal(err)
	}
	until(t, "the run has cleaned up", func() bool {
		_, err := os.Stat(filepath.Join(out, "interrupts"))
		return err == nil
	})
	q := open(t, dir)
	run(t, q)
	all, paused := q.List()
	if len(all) != 1 || all[0].State != Interrupted || !paused {
		t.Fatalf("after the restart: %+v, paused %v", all, paused)
	}
	next := submit(t, q, quick)
	time.Sleep(50 * time.Millisecond)
	if s, _ := q.Get(next.ID); s.State != Queued {
		t.Errorf("a paused queue: %+v", s)
	}
	if err := q.Pause(false); err != nil {
		t.Fatal(err)
	}
	untilState(t, q, next.ID, Done)
}

func TestRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	q := open(t, dir)
	for range 3 {
		submit(t, q, quick)
	}
	if err := errors.Join(q.Move("3", -2), q.Cancel("1"), q.Close()); err != nil {
		t.Fatal(err)
	}
	q = open(t, dir)
	if got := show(q.state); got != "1:cancelled 3:queued 2:queued" || q.state.Paused {
		t.Errorf("after a restart: %s, paused %v", got, q.state.Paused)
	}
	if err := q.Close(); err != nil {
		t.Error(err)
	}
}

// A state that cannot be read is an error that names the file, and stays.
func TestDamagedState(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"cut":          `{"submissions": [{"id": "1"`,
		"path in name": `{"submissions": [{"id": "1", "name": "../a", "state": "queued"}]}`,
		"twice":        `{"submissions": [{"id": "1", "name": "a"}, {"id": "1", "name": "a"}]}`,
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, ".queue", "queue.json")
		if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		_, err := Open(options(dir))
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
		if kept, err := os.ReadFile(path); err != nil || string(kept) != text {
			t.Errorf("%s: the file is now %q, %v", name, kept, err)
		}
	}
}

// A change that cannot be saved is not made.
func TestCannotSave(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	q := open(t, dir)
	if err := os.RemoveAll(filepath.Join(dir, ".queue")); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Submit(Submission{Name: "a", Text: quick}); err == nil {
		t.Error("submitted without being saved")
	}
	if all, _ := q.List(); len(all) != 0 {
		t.Errorf("kept: %+v", all)
	}
	if err := q.Close(); err != nil {
		t.Error(err)
	}
}
