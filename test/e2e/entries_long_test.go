//go:build e2e

package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/test/rotation"
)

// TestBrokenEntriesLong is TestBrokenEntries with faults that take longer to show.
func TestBrokenEntriesLong(t *testing.T) {
	rotation.Weekly(t)
	for _, e := range []brokenEntry{
		{name: "a variable without a type", harm: editFault(entryHead, "    cnsbench.type.duration: seconds 1..\n", ""),
			fails: "variables", says: "cnsbench.type.duration: int"},
		{name: "begins before the barrier", harm: editFault(entryPod, `sync: "true"`, `sync: "false"`), fails: "barrier",
			says: "pod mine does not wait"},
		{name: "never ends", harm: writeFault(entryRun, oneWrite+"echo 1 2 3 >/output/rounds.txt\nsleep 1000\n"),
			flags: []string{"--timeout", "2s"}, fails: "ends, series", says: "still ran 2s"},
		{name: "another clock", harm: editFault(entryParse, "$3 / ($2 - $1), $1", "$3 / ($2 - $1), $1 / 1000"),
			fails: "series",
			says:  "seconds since 1970"},
		{name: "silent about half an output", harm: editFault(entryParse, "if (!complete)", "if (0)"), fails: "halfOutput",
			says: "no warning"},
		{name: "hangs on an empty output", harm: editFault(entryParse, "exec awk", "[ -s \"$1\" ] || sleep 1000\nexec awk"),
			flags: []string{"--timeout", "8s"}, fails: "emptyOutput", says: "it took longer than 8s"},
		{name: "figures of nothing", harm: writeFault(entryParse, "#!/bin/sh\necho 'a,1,1/s'\n"),
			fails: "halfOutput, emptyOutput",
			says:  "1 metric"},
	} {
		t.Run(e.name, e.test)
	}
}

// TestBuiltInEntries tests the entries of the library that do I/O, if their programs are here.
func TestBuiltInEntries(t *testing.T) {
	rotation.Weekly(t)
	for _, tt := range []struct {
		name, programs string
		vars           string
		fails          string // checks
	}{
		{name: "dd"},
		{name: "db-bench"},
		{name: "dbench"},
		{name: "etcd", vars: "benchmark=" + etcdBenchmark},
		{name: "filebench"},
		{name: "fio", programs: "fio"},
		{name: "kernels"},
		{name: "fio-iolog"},
		{name: "fio-jobfile"},
		{name: "fio-mix"},
		{name: "megahit"},
		{name: "nginx-wrk"},
		{name: "pgbench"},
		{name: "redis-benchmark"},
		{name: "sysbench-fileio"},
		{name: "sysbench-oltp"},
		{name: "write-once"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			needProgram(t, strings.Fields(tt.programs)...)
			if slices.Contains(rotation.Applications, tt.name) {
				rotation.Need(t, tt.name)
			}
			b := newBox(t)
			var more []string
			if tt.vars != "" {
				more = []string{"--vars", tt.vars}
			}
			if r := b.testEntry(tt.name, more...); strings.Join(r.failed(), ", ") != tt.fails {
				t.Errorf("exit %d: %+v", r.code, r.Checks)
			}
			b.clean()
		})
	}
}
