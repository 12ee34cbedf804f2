//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/test/rotation"
)

// filebenchRun runs the entry filebench with further variables.
func (b *box) filebenchRun(vars string) result {
	b.Helper()
	return b.bench(head + `spec:
  actions:
    - name: files
      createObjSpec: {workload: filebench, vars: {storageClass: hostdir, volumeSize: 256Mi, duration: 3, ` + vars + `}}
`)
}

// TestEntryFilebench runs each personality, and compares the figures with those that Filebench printed.
func TestEntryFilebench(t *testing.T) {
	rotation.Need(t, "filebench")
	for name, vars := range map[string]string{
		"fileserver": "", "varmail": "", "webserver": "", "videoserver": "",
		"own": `, workloadFile: "set $dir=/tmp\ndefine fileset name=f,path=$dir,size=4k,entries=10,dirwidth=10,prealloc\n` +
			`define process name=p {\n thread name=t,memsize=1m {\n  flowop openfile name=o,filesetname=f,fd=1\n` +
			`  flowop readwholefile name=r,fd=1\n  flowop closefile name=c,fd=1\n }\n}"`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t)
			if os.Getuid() == 0 {
				b.asNobody()
			}
			if name != "own" {
				vars = ", files: 20, fileSize: 16Ki, threads: 2"
			}
			b.filebenchRun("personality: "+name+vars).wants(t, 0)
			all, s := b.values(b.bundle())
			text := b.output(b.bundle(), "files-0", "filebench/output/filebench.txt")
			line := fmt.Sprintf("%.0f ops %.3f ops/s ", all["operations"], all["ops"])
			if !strings.Contains(text, line) || all["ops"] == 0 {
				t.Errorf("not printed: %q\n%s", line, text)
			}
			for _, f := range s.Validity {
				if f.Name == "outputUnread" || f.Name == "filebenchTruncated" {
					t.Errorf("flag %s: %s", f.Name, f.Evidence)
				}
			}
			b.seriesAfterBarrier(b.bundle(), "ops", s.BarrierAt, 2)
			b.clean()
		})
	}
}

// TestEntryFilebenchBad: what cannot be run says what to change.
func TestEntryFilebenchBad(t *testing.T) {
	rotation.Need(t, "filebench")
	for _, tt := range []struct{ vars, says string }{
		{"personalities: /no/such/folder", "set personalities to the folder"},
		{"personality: own", "defines no files"},
		{`personality: own, threads: 3, workloadFile: "define fileset name=f,path=/data,entries=1"`,
			"leave the variable threads at 0"},
	} {
		b := newBox(t)
		if r := b.filebenchRun(tt.vars); r.code == 0 || !strings.Contains(r.said(), tt.says) {
			t.Errorf("%s: does not say %q\n%v", tt.vars, tt.says, r)
		}
		b.clean()
	}
}

// TestNoFilebench: without the program, the plan says where it is.
func TestNoFilebench(t *testing.T) {
	if path, err := exec.LookPath("filebench"); err == nil {
		t.Skipf("Filebench is installed: %s", path)
	}
	b := newBox(t)
	const says = "build version 1.5-alpha3 from https://github.com/filebench/filebench/releases"
	if r := b.filebenchRun("files: 1"); r.code == 0 || !strings.Contains(r.said(), says) {
		t.Errorf("does not say %q\n%v", says, r)
	}
}
