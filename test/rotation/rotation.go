// Package rotation selects the applications of the library that the tests of a commit run. CI runs a few of them for
// each commit, the next commit others; make test-entries runs all.
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
	names := os.Getenv("CNSBENCH_ENTRIES")
	switch {
	case names == "all" || names == "" && os.Getenv("CI") == "":
		return Applications
	case names != "":
		return strings.Split(names, ",")
	}
	commit, err := exec.CommandContext(t.Context(), "git", "rev-parse", "HEAD").Output()
	if err != nil {
		t.Fatalf("the commit selects the applications: git rev-parse HEAD: %v; or set CNSBENCH_ENTRIES=all", err)
	}
	selected, err := of(string(commit))
	if err != nil {
		t.Fatal(err)
	}
	return selected
}

// of returns the applications of a commit: perCommit of them, which follow each other in the cycle of all. The hash of
// the commit says where they begin.
func of(commit string) ([]string, error) {
	start, err := strconv.ParseUint(commit[:min(len(commit), 8)], 16, 64)
	if err != nil {
		return nil, fmt.Errorf("commit %q: %w", commit, err)
	}
	var selected []string
	for i := range min(perCommit, len(Applications)) {
		selected = append(selected, Applications[(int(start)+i)%len(Applications)])
	}
	return selected, nil
}
