package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// tmux is a terminal of tmux, with a server of its own.
type tmux struct {
	*box
	socket string
	closed bool
}

// TestScreens compares what commands print on terminals of 80 and 200 columns, colours included, with goldens.
func TestScreens(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	kept := filepath.Join("testdata", "kept-2026-11")
	if err := os.CopyFS(b.in("kept"), os.DirFS(kept)); err != nil {
		t.Fatal(err)
	}
	for _, width := range []int{80, 200} {
		s := b.newTmux(width)
		for name, command := range map[string]string{
			"show":         "cnsbench show kept/bundle",
			"study-show":   "cnsbench show kept/study",
			"compare":      "cnsbench compare kept/study",
			"study-status": "cnsbench show --status kept/study",
		} {
			golden := filepath.Join("testdata", "screens", fmt.Sprintf("%s-%d.txt", name, width))
			got := []byte(s.shows("cd " + b.dir + " && " + command))
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s: the screen differs from %s (rewrite it with -update):\n%s", command, golden, got)
			}
		}
	}
}

// liveLines are what the terminal shows of a run in progress: a line with a bar, one for each action, one of the I/O.
var liveLines = regexp.MustCompile(`(?m)^ *[0-9.]+s  running \[=* *\] \d+s left  \d+ ok.*$
^  writer +1 ok  .*$
^  churn +\d+ ok.*  \S+/s  median .*, max .*$
^  I/O +read .*/s, write [1-9].*/s.*$
^  (churn|writer) .*$`)

// TestLiveScreen checks that a run in progress rewrites its lines in place, and leaves none of them behind.
func TestLiveScreen(t *testing.T) {
	t.Parallel()
	needRoot(t)
	b := newBox(t)
	b.write("bench.yaml", head+`spec:
  runtime: 6s
  actions:
    - {name: writer, createObjSpec: {workload: fio, vars: {storageClass: hostdir, volumeSize: 64Mi, runtime: 6}}}
    - {name: churn, createObjSpec: {volume: {storageClass: "null"}}, rateName: often}
  rates: [{name: often, constantRateSpec: {interval: 100ms}}]
`)
	s := b.newTmux(80)
	s.call("send-keys",
		"clear; cd "+b.dir+" && cnsbench run bench.yaml --out bundle --storage-dir storage; touch ended", "Enter")
	s.until(func() bool { return liveLines.MatchString(s.call("capture-pane", "-p")) })
	s.until(func() bool { _, err := os.Stat(b.in("ended")); return err == nil })
	text := s.call("capture-pane", "-p")
	if strings.Contains(text, "s left") || strings.Contains(text, "  I/O     read") ||
		!strings.Contains(text, "complete") {
		t.Errorf("after the run:\n%s", text)
	}
	for line := range strings.Lines(text) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	s.close()
	b.clean()
}

// newTmux starts a shell in a terminal of that width.
func (b *box) newTmux(width int) *tmux {
	b.Helper()
	needProgram(b.T, "tmux")
	s := &tmux{box: b, socket: b.in(fmt.Sprintf("tmux-%d", width))}
	s.call("-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(width), "-y", "300", "-s", "main",
		"env", "PS1=", "TERM=screen-256color", "TZ=UTC", "HOME="+b.in("home"),
		"PATH="+filepath.Dir(b.cnsbench())+":"+b.path, "sh")
	b.Cleanup(s.close)
	return s
}

// close ends the server and waits until it is gone. A second call does nothing.
func (s *tmux) close() {
	s.Helper()
	if s.closed {
		return
	}
	s.closed = true
	process := filepath.Join("/proc", strings.TrimSpace(s.call("display-message", "-p", "#{pid}")))
	s.call("kill-server")
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(process); err != nil {
			return
		}
	}
	s.Errorf("tmux did not end")
}

func (s *tmux) call(args ...string) string {
	s.Helper()
	out, err := exec.CommandContext(context.WithoutCancel(s.Context()), "tmux",
		append([]string{"-u", "-S", s.socket}, args...)...).CombinedOutput()
	if err != nil {
		s.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// shows runs a command and returns the screen at its end, with the sequences that set colours.
func (s *tmux) shows(command string) string {
	s.Helper()
	ended := s.in("ended")
	_ = os.Remove(ended)
	s.call("send-keys", "clear; "+command+"; touch "+ended, "Enter")
	s.until(func() bool { _, err := os.Stat(ended); return err == nil })
	return strings.TrimRight(s.call("capture-pane", "-p", "-e"), "\n") + "\n"
}

func (s *tmux) until(condition func() bool) {
	s.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.Fatalf("the screen did not change:\n%s", s.call("capture-pane", "-p"))
		}
	}
}
