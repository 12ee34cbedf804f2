// Package rotation selects what the tests of a commit run of long lists, such as the applications of the library. CI
// runs a few of each list for a commit, and others for the next; without $CI, or with CNSBENCH_ENTRIES=all, all run.
package rotation

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// programs are those that the entries of the library whose workload is a real application need, by their names in
// $PATH or with a path. make workload-servers installs them; make has them in its $PATH.
var programs = map[string][]string{
	"db-bench":        {"db_bench"},
	"dbench":          {"fio"},
	"etcd":            {"/usr/bin/etcd", "etcd-benchmark", "curl"},
	"kernels":         {"fio"},
	"filebench":       {"filebench"},
	"fio-iolog":       {"fio"},
	"fio-jobfile":     {"fio"},
	"fio-mix":         {"fio"},
	"megahit":         {"megahit"},
	"nginx-wrk":       {"/usr/sbin/nginx", "wrk", "curl"},
	"pgbench":         {"/usr/lib/postgresql/15/bin/postgres"},
	"redis-benchmark": {"redis-server", "redis-cli", "redis-benchmark"},
	"sysbench-fileio": {"sysbench"},
	"sysbench-oltp":   {"/usr/sbin/mariadbd", "mariadb", "sysbench"},
	"ycsb":            {"/usr/lib/postgresql/15/bin/postgres", "go-ycsb", "ferretdb"},
}

// Applications are the names of these entries, sorted.
var Applications = slices.Sorted(maps.Keys(programs))

const perCommit = 4

// Need skips a test of an entry that is not selected, or whose programs are not installed. Without $CI all are
// selected; $CNSBENCH_ENTRIES, entries separated by commas or "all", takes precedence.
func Need(t testing.TB, entry string) {
	t.Helper()
	if programs[entry] == nil {
		t.Fatalf("no such application: %q; there are %v", entry, Applications)
	}
	if selected := selection(t); !slices.Contains(selected, entry) {
		t.Skipf("this commit's tests run %v only; make test-entries runs all", selected)
	}
	for _, program := range programs[entry] {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s needs %s (make workload-servers; Filebench: docs/reference/workloads.md): %v", entry, program, err)
		}
	}
}

// Weekly skips a test in CI that is run with all applications only.
func Weekly(t testing.TB) {
	t.Helper()
	if len(selection(t)) < len(Applications) {
		t.Skip("make test-entries, which is run each week, has it")
	}
}

func selection(t testing.TB) []string {
	t.Helper()
	if names := os.Getenv("CNSBENCH_ENTRIES"); names != "" && names != "all" {
		return strings.Split(names, ",")
	}
	return selected(t, perCommit, Applications)
}

// Turn skips a test in CI that is not among the n of a list whose turn it is.
func Turn(t testing.TB, n int, list []string, name string) {
	t.Helper()
	if !slices.Contains(list, name) {
		t.Fatalf("%q is not in %v", name, list)
	}
	if turn := selected(t, n, list); !slices.Contains(turn, name) {
		t.Skipf("this commit's tests run %v only; without $CI all run", turn)
	}
}

// Half returns half of a table of tests in CI, those whose turn it is, and elsewhere all.
func Half[T any](t testing.TB, tests map[string]T) map[string]T {
	t.Helper()
	turn := selected(t, (len(tests)+1)/2, slices.Sorted(maps.Keys(tests)))
	if len(turn) == len(tests) {
		return tests
	}
	t.Logf("this commit's tests run %v only; without $CI all run", turn)
	half := make(map[string]T)
	for _, name := range turn {
		half[name] = tests[name]
	}
	return half
}

// selected returns the n of a list whose turn it is in CI, and elsewhere all.
func selected(t testing.TB, n int, list []string) []string {
	t.Helper()
	if os.Getenv("CI") == "" || os.Getenv("CNSBENCH_ENTRIES") == "all" {
		return list
	}
	commit, err := exec.CommandContext(t.Context(), "git", "rev-parse", "HEAD").Output()
	if err != nil {
		t.Fatalf("the commit selects what is run: git rev-parse HEAD: %v; or set CNSBENCH_ENTRIES=all", err)
	}
	turn, err := of(string(commit), n, list)
	if err != nil {
		t.Fatal(err)
	}
	return turn
}

// of returns the n of a list whose turn it is with a commit. They follow each other in the cycle of the list; the hash of
// the commit says where they begin.
func of(commit string, n int, list []string) ([]string, error) {
	start, err := strconv.ParseUint(commit[:min(len(commit), 8)], 16, 64)
	if err != nil {
		return nil, fmt.Errorf("commit %q: %w", commit, err)
	}
	var turn []string
	for i := range min(n, len(list)) {
		turn = append(turn, list[(int(start)+i)%len(list)])
	}
	return turn, nil
}
