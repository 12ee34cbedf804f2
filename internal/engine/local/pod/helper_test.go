package pod_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/agent"
	"github.com/cnsbench/cnsbench/internal/engine/local/pod"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/agenttest"
)

// helperEnv is an environment variable. If it is set, this test binary starts one pod in the directory that the
// variable names. It prints the PIDs of the agents and the log of the pod, and ends with the pod.
const helperEnv = "CNSBENCH_POD_TEST_DIR"

func helper() int {
	ctx := context.Background()
	dir, clock := os.Getenv(helperEnv), op.NewClock()
	sink, ledger := agenttest.NewSink(), &agenttest.Ledger{}
	fail := func(err error) int {
		fmt.Println("failed:", err)
		return 1
	}
	server, err := agent.Listen(ctx, filepath.Join(dir, "s"), clock, sink)
	if err != nil {
		return fail(err)
	}
	host, err := pod.NewHost(ctx, pod.HostOptions{Server: server, Clock: clock, Ledger: ledger, Sink: sink,
		Agent: os.Getenv("CNSBENCH_POD_TEST_AGENT")})
	if err != nil {
		return fail(err)
	}
	f := &fixture{Host: host, dir: dir}
	data := filepath.Join(dir, "data")
	if err := os.MkdirAll(data, 0o755); err != nil {
		return fail(err)
	}
	p, err := host.Start(ctx, f.spec("p", os.Getenv("CNSBENCH_POD_TEST_SCRIPT"),
		volume("data", data, "/var/lib/not/there")), op.NewTrace(clock))
	if err != nil {
		return fail(err)
	}
	if err := p.Ready(ctx); err != nil {
		return fail(err)
	}
	for _, e := range ledger.Ever() {
		fmt.Println("pid", e.Data["pid"])
	}
	<-p.Done()
	fmt.Printf("log:\n%s\nend %+v\n", sink.Logs(), p.End())
	samples := sink.Samples()
	last := samples[len(samples)-1]
	fmt.Println("sampled operations:", last.ReadOps > 0 && last.WriteOps > 0, last)
	return 0
}

// runHelper starts the helper. It runs as the user uid unless that is 0, and as the argument of the command beneath if
// there is one.
func runHelper(t *testing.T, script string, uid int, beneath ...string) (*exec.Cmd, io.Reader) {
	t.Helper()
	// Other users cannot enter the parents of t.TempDir.
	dir, err := os.MkdirTemp("", "cnsbench-pod-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cmd := exec.Command("/proc/self/exe")
	if uid != 0 {
		self := copyProgram(t, dir)
		if err := os.Chown(dir, uid, uid); err != nil {
			t.Fatal(err)
		}
		args := append(append([]string(nil), beneath...), "setpriv", "--reuid", strconv.Itoa(uid), "--regid",
			strconv.Itoa(uid), "--clear-groups", self)
		cmd = exec.Command(args[0], args[1:]...)
	}
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), helperEnv+"="+dir, "CNSBENCH_POD_TEST_AGENT="+agentPath,
		"CNSBENCH_POD_TEST_SCRIPT="+script)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, out
}

// copyProgram copies this test binary to a path where another user can execute it.
func copyProgram(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, "pod.test")
	if err := os.WriteFile(to, b, 0o755); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestKilledRunner checks that no process survives a killed runner.
func TestKilledRunner(t *testing.T) {
	cmd, out := runHelper(t, "sleep 987 & exec sleep 987", 0)
	line, err := bufio.NewReader(out).ReadString('\n')
	pid, perr := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "pid ")))
	if err != nil || perr != nil {
		t.Fatalf("helper said %q: %v %v", line, err, perr)
	}
	agenttest.Eventually(t, "the workload runs", func() bool { return len(children(pid)) >= 1 })
	workload := children(pid)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	agenttest.Eventually(t, "the agent and its processes are gone", func() bool {
		for _, p := range append(workload, pid) {
			if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p)); err == nil && len(b) > 0 {
				return false
			}
		}
		return true
	})
}

// children returns the PIDs of the child processes of pid.
func children(pid int) []int {
	var all []int
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		if len(f) > 1 && f[1] == strconv.Itoa(pid) {
			child, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			all = append(all, child)
		}
	}
	return all
}

// TestOrdinaryUser checks a pod in a user namespace, also where the kernel does not permit a new mount of /proc because
// the present one is partly covered (as in a container).
func TestOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("the other tests run as an ordinary user already")
	}
	tests := []struct {
		name    string
		beneath []string
		hostsPs bool
	}{
		{name: "alone"},
		{"covered proc", []string{"unshare", "--mount", "sh", "-c", `mount --bind /dev/null /proc/version && exec "$@"`,
			"sh"}, true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			script := "id -u; echo written > /var/lib/not/there/file; echo $(touch /usr/x 2>&1 | grep -o Read-only); dd if=/var/lib/not/there/file of=/dev/null 2>/dev/null; sleep 1.1"
			cmd, out := runHelper(t, script, 65534, tc.beneath...)
			said, err := io.ReadAll(out)
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("helper: %v", err)
			}
			for _, part := range []string{"p/main: 0\n", "OK:true", "p/main: Read-only", "sampled operations: true"} {
				if !strings.Contains(string(said), part) {
					t.Errorf("no %q in\n%s", part, said)
				}
			}
			if got := strings.Contains(string(said), "/proc is the host's"); got != tc.hostsPs {
				t.Errorf("the host's /proc: %v, want %v, in\n%s", got, tc.hostsPs, said)
			}
			if b, err := os.ReadFile(filepath.Join(cmd.Dir, "data/file")); err != nil || string(b) != "written\n" {
				t.Errorf("%q, %v", b, err)
			}
		})
	}
}
