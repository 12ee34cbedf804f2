package local_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/local"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/agenttest"
)

// parserEnv is an environment variable. If it is set, this test binary runs one parser script in the directory that the
// variable names.
const parserEnv = "CNSBENCH_PARSER_TEST_DIR"

// surroundings is a parser script that prints what it can see and change: its PID, the network interfaces, its input
// file, and whether /usr is writable.
const surroundings = `#!/bin/sh
echo pid $$
echo network $(sed -n 's/^ *\([a-z0-9]*\):.*/\1/p' /proc/net/dev)
cat "$1"
touch /usr/x 2>/dev/null && echo wrote to the host
exit 0
`

func parseAlone() int {
	dir := os.Getenv(parserEnv)
	fail := func(err error) int {
		fmt.Println("failed:", err)
		return 1
	}
	for _, d := range []string{"session", "storage"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return fail(err)
		}
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("what was written\n"), 0o644); err != nil {
		return fail(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	e := local.New(local.Options{DriverCommand: []string{os.Getenv("CNSBENCH_TEST_BIN") + "/cnsbench", "csi", "driver"},
		AgentPath: os.Getenv("CNSBENCH_TEST_BIN") + "/cnsbench-agent", StorageDir: filepath.Join(dir, "storage")})
	err := e.Open(ctx, engine.Session{RunID: "r", Clock: op.NewClock(), Ledger: &agenttest.Ledger{},
		Sink: agenttest.NewSink(), Dir: filepath.Join(dir, "session"),
		StorageClasses: map[string]storagev1.StorageClass{"sc": {ObjectMeta: metav1.ObjectMeta{Name: "sc"},
			Provisioner: "null.csi.cnsbench.dev"}}})
	if err != nil {
		return fail(err)
	}
	printed, err := e.Parse(ctx, engine.ParseRequest{Name: "parse-0", Script: engine.Script{Text: surroundings},
		File: file})
	fmt.Printf("%s", printed)
	if err != nil {
		return fail(err)
	}
	if err := e.Close(); err != nil {
		return fail(err)
	}
	return 0
}

// TestParserAlone checks that a script is isolated from the host, for root and for an unprivileged user.
func TestParserAlone(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to become somebody else")
	}
	for _, uid := range []int{0, 65534} {
		t.Run("user "+strconv.Itoa(uid), func(t *testing.T) {
			dir, err := os.MkdirTemp("", "cnsbench-parser-") // other users cannot enter the parents of t.TempDir
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			self, err := os.ReadFile("/proc/self/exe")
			if err != nil {
				t.Fatal(err)
			}
			program := filepath.Join(dir, "local.test")
			if err := os.WriteFile(program, self, 0o755); err != nil {
				t.Fatal(err)
			}
			for _, p := range []string{dir, bin} {
				if err := os.Chmod(p, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chown(dir, uid, uid); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "setpriv", "--reuid", strconv.Itoa(uid), "--regid",
				strconv.Itoa(uid), "--clear-groups", program)
			cmd.Env = append(os.Environ(), parserEnv+"="+dir, "CNSBENCH_TEST_BIN="+bin)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			if len(lines) != 3 || lines[1] != "network lo" || lines[2] != "what was written" {
				t.Fatalf("it sees\n%s", out)
			}
			// Threads use PIDs as well, so the PID is not always 1 or 2.
			if pid, err := strconv.Atoi(strings.TrimPrefix(lines[0], "pid ")); err != nil || pid > 100 {
				t.Errorf("%s: a pid of the host's?", lines[0])
			}
			if left := leaks(t, dir); len(left) > 4 { // session, storage, file and the test binary
				t.Errorf("left behind: %q", left)
			}
		})
	}
}
