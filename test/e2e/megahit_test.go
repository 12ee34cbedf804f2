//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/test/rotation"
)

// megahitRun runs the entry megahit with further variables.
func (b *box) megahitRun(vars, more string) result {
	b.Helper()
	return b.bench(head + `spec:
  actions:
    - name: assembly
      createObjSpec: {workload: megahit, count: 2, vars: {storageClass: hostdir, kList: '21,29', ` + vars + `}}
` + more)
}

// TestEntryMegahit runs the entry as an unprivileged user, compares the figures with those that MEGAHIT printed, and
// checks that both instances had the same work.
func TestEntryMegahit(t *testing.T) {
	rotation.Need(t, "megahit")
	b := newBox(t)
	if os.Getuid() == 0 {
		b.asNobody()
	}
	b.megahitRun("genome: 100000", `  slos: [{name: the-same, expr: 'value(assembly.bases) > 190000.0'}]
`).wants(t, 0)
	all, s := b.values(b.bundle())
	line := fmt.Sprintf(" - %.0f contigs, total %.0f bp, ", all["contigs"]/2, all["bases"]/2)
	elapsed := 0.0
	for _, instance := range []string{"assembly-0", "assembly-1"} {
		text := b.output(b.bundle(), instance, "megahit/output/megahit.log")
		m := regexp.MustCompile(`ALL DONE\. Time elapsed: (\S+) seconds`).FindStringSubmatch(text)
		if m == nil || !strings.Contains(text, line) {
			t.Fatalf("%s: not printed: %q, %v\n%s", instance, line, all, text)
		}
		elapsed += number(t, m[1]) * 1e9 / 2
	}
	if off := all["elapsed"] - elapsed; off > 1 || off < -1 {
		t.Errorf("elapsed is %v, the mean of those printed %v", all["elapsed"], elapsed)
	}
	for _, f := range s.Validity {
		if f.Name == "outputUnread" || f.Name == "megahitTruncated" {
			t.Errorf("flag %s: %s", f.Name, f.Evidence)
		}
	}
	b.clean()
}

// TestEntryMegahitKilled kills the pod: the replacement assembles the same reads from the beginning.
func TestEntryMegahitKilled(t *testing.T) {
	rotation.Need(t, "megahit")
	b := newBox(t)
	b.megahitRun("genome: 500000", `    - {name: kill, startAfter: 1s, killSpec: {actionName: assembly, select: all}}
`).wants(t, 0)
	if text := b.output(b.bundle(), "assembly-0", "megahit~1/output/megahit.log"); !strings.Contains(text, "ALL DONE.") {
		t.Errorf("no result after the kill\n%s", text)
	}
	if all, _ := b.values(b.bundle()); all["elapsed"] == 0 || all["bases"] < 450000 {
		t.Errorf("figures: %v", all)
	}
	b.clean()
}

// TestEntryMegahitBad: what cannot be assembled says why, and what to change.
func TestEntryMegahitBad(t *testing.T) {
	rotation.Need(t, "megahit")
	for _, tt := range []struct{ name, vars, says string }{
		{"no program", "program: no_megahit", "no_megahit: not found (variable program)"},
		{"no room", "volumeSize: 8Mi", "raise volumeSize, or lower genome or coverage"},
		{"reads longer than the genome", "genome: 1000, readLength: 1001", `"1001" is more than 1000`},
		{"no such option", "genome: 1000, extra: --kk", "option --kk not recognized"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBox(t)
			if r := b.megahitRun(tt.vars, ""); r.code == 0 || !strings.Contains(r.said(), tt.says) {
				t.Errorf("does not say %q\n%v", tt.says, r)
			}
			b.clean()
		})
	}
}
