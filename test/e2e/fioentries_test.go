//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/test/rotation"
)

// fioEntry runs an entry of fio as an unprivileged user, and returns its figures and the number of I/Os of each job, by
// its name and direction, as fio reports them.
func fioEntry(t *testing.T, entry, vars string) (figures, ios map[string]float64) {
	t.Helper()
	rotation.Need(t, entry)
	b := newBox(t)
	if os.Getuid() == 0 {
		b.asNobody()
	}
	b.bench(head+`spec:
  actions:
    - name: io
      createObjSpec:
        workload: `+entry+`
        vars:
          storageClass: hostdir
          volumeSize: 64Mi
`+vars).wants(t, 0)
	_, s := b.values(b.bundle())
	kept, err := bundle.Open(b.bundle())
	if err != nil {
		t.Fatal(err)
	}
	figures = map[string]float64{}
	for x, err := range kept.Scalars() {
		if err != nil {
			t.Fatal(err)
		}
		figures[x.Metric] = x.Value
	}
	for _, f := range s.Validity {
		if strings.HasPrefix(f.Name, "fio") || f.Name == "outputUnread" || f.Name == "noIO" {
			t.Errorf("flag %s: %s", f.Name, f.Evidence)
		}
	}
	type direction struct {
		IOs float64 `json:"total_ios"`
	}
	var report struct {
		Jobs []struct {
			Jobname     string
			Read, Write direction
		}
	}
	if err := json.Unmarshal([]byte(b.output(b.bundle(), "io-0", "fio/output/fio.json")), &report); err != nil {
		t.Fatal(err)
	}
	ios = map[string]float64{}
	for _, j := range report.Jobs {
		ios[j.Jobname+".read"] += j.Read.IOs
		ios[j.Jobname+".write"] += j.Write.IOs
	}
	b.clean()
	return figures, ios
}

// TestEntryFioJobfile runs two jobs of a job file in the Benchmark. Figures are of each and in sum.
func TestEntryFioJobfile(t *testing.T) {
	figures, ios := fioEntry(t, "fio-jobfile", `          jobFile: |
            [log]
            rw=write
            bs=4k
            number_ios=200
            [look]
            rw=randread
            bs=8k
            number_ios=100
`)
	if ios["log.write"] != 200 || figures["log.write.ios"] != 200 || figures["look.read.ios"] != 100 ||
		figures["read.ios"] != ios["look.read"] || figures["write.ios"] != 200 {
		t.Errorf("fio reports %v, figures are %v", ios, figures)
	}
}

// iolog3 and iolog2 are the same operations on two files; those of version 2 have no times.
const (
	iolog3 = `fio version 3 iolog
0 a add
1 b add
1000 a write 0 4096
200000 b read 8192 16384
400000 a write 4096 4096
600000 b sync 0 0
1000000 a trim 0 4096
1500000 a read 0 512
`
	iolog2 = `fio version 2 iolog
a add
b add
a write 0 4096
b read 8192 16384
a write 4096 4096
b sync 0 0
a trim 0 4096
a read 0 512
`
)

// TestEntryFioIolog replays logs of both versions, in the Benchmark and in a file: at the recorded times, at ten times
// the speed, and without waiting.
func TestEntryFioIolog(t *testing.T) {
	rotation.Need(t, "fio-iolog")
	where := "." // not /tmp, of which containers have their own
	if os.Getuid() == 0 {
		where = "/opt" // which others can read
	}
	dir, err := os.MkdirTemp(where, "iolog-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	file, err := filepath.Abs(filepath.Join(dir, "recorded.log"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(file, []byte(iolog3), 0o644), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	block := func(log string) string {
		return "          iolog: |\n            " + strings.ReplaceAll(strings.TrimSpace(log), "\n", "\n            ") + "\n"
	}
	for _, tt := range []struct {
		name, vars  string
		least, most float64 // reads per second: two in the time of the log
	}{
		{"version 3", block(iolog3), 0.2, 1.5},
		{"version 2, as fast as possible", block(iolog2), 1.4, 1e6},
		{"a file at ten times the speed", "          iologFile: " + file + "\n          speed: 1000\n", 1.4, 14},
		{"without stalls", block(iolog3) + "          noStall: 1\n          jobs: 2\n", 1.4, 1e6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			figures, ios := fioEntry(t, "fio-iolog", "          direct: 0\n"+tt.vars)
			if ios["replay.read"] != 2 || ios["replay.write"] != 2 || figures["read.ios"] != 2 || figures["write.ios"] != 2 ||
				figures["read.bytes"] != 16384+512 || figures["write.bytes"] != 8192 {
				t.Errorf("fio reports %v, figures are %v", ios, figures)
			}
			if got := figures["read.iops"]; got < tt.least || got > tt.most {
				t.Errorf("%v reads per second, want %v to %v", got, tt.least, tt.most)
			}
		})
	}
}

// TestEntryFioMix checks the shares of two streams.
func TestEntryFioMix(t *testing.T) {
	figures, ios := fioEntry(t, "fio-mix", `          runtime: 3
          streams: reads randread 4k 75, log write 16k 25
`)
	share := ios["reads.read"] / (ios["reads.read"] + ios["log.write"])
	if share < 0.7 || share > 0.8 || figures["reads.read.ios"] != ios["reads.read"] ||
		figures["write.ios"] != ios["log.write"] {
		t.Errorf("share %.3f, want 0.75; fio reports %v, figures are %v", share, ios, figures)
	}
}

// TestEntryFioBad: what cannot be run says what to change.
func TestEntryFioBad(t *testing.T) {
	for _, tt := range []struct{ entry, vars, says string }{
		{"fio-jobfile", "jobFile: '[a]', volumeSize: 64Ki", "no room for a test file"},
		{"fio-jobfile", "jobFile: no section", "fio: "},
		{"fio-jobfile", "", "jobFile"},
		{"fio-iolog", "", "the trace is empty"},
		{"fio-iolog", "iolog: hello", "unknown format"},
		{"fio-iolog", "iologFile: /no/such/file", "no such file"},
		{"fio-iolog", `iolog: "fio version 3 iolog\n1 f read 100 100"`, "set direct to 0"},
		{"fio-iolog", `direct: 0, volumeSize: 1Mi, iolog: "fio version 3 iolog\n1 f read 0 512\n2 f read 4194304 512"`,
			"raise volumeSize"},
		{"fio-mix", "streams: reads randread 4k", `want NAME RW BS SHARE`},
	} {
		rotation.Need(t, tt.entry)
		b := newBox(t)
		r := b.bench(head + `spec:
  actions: [{name: io, createObjSpec: {workload: ` + tt.entry + `, vars: {storageClass: hostdir, ` + tt.vars + `}}}]
`)
		if r.code == 0 || !strings.Contains(r.said(), tt.says) {
			t.Errorf("%s, %s: does not say %q\n%v", tt.entry, tt.vars, tt.says, r)
		}
		b.clean()
	}
}
