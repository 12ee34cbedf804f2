//go:build e2e

package kubernetes

import (
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/redact"
)

// TestLogsOfOps checks that logs of a storage pod are read around the selected ops, and that missing rights are named
// and do not fail a run. The test bed's sidecars are no pods, so a pod stands in whose command names one of them and
// the driver, and prints a line five times a second.
func TestLogsOfOps(t *testing.T) {
	t.Parallel()
	bed := newBed(t)
	storage := bed.project(t, noAccount)
	storage.apply(`
apiVersion: v1
kind: Pod
metadata: {name: sidecar}
spec:
  automountServiceAccountToken: false
  securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
  containers:
    - name: provisioner
      image: localhost/cnsbench-tools:test
      imagePullPolicy: IfNotPresent
      command: [sh, -c, "while sleep 0.2; do echo csi-provisioner of hostdir.csi.cnsbench.dev password=hunter22; done"]
      ` + restrictedContainer + `
`)
	t.Cleanup(func() { storage.kubectl("delete", "--ignore-not-found", "--now", "pod/sidecar") })
	storage.kubectl("wait", "--for=condition=Ready", "--timeout=2m", "pod/sidecar")
	file := strings.Replace(volumes("hostdir", ""), "runtime: 15s", "runtime: 6s", 1)
	source := storage.name + "/sidecar/provisioner"

	t.Run("by an administrator", func(t *testing.T) {
		p := bed.project(t, noRights)
		c := p.command("local", file)
		p.ends(c, 0)
		logs := p.opLogs(c)
		if len(logs.Ops) < 3 {
			t.Errorf("%d ops have logs, want at least the slowest three", len(logs.Ops))
		}
		for _, r := range logs.Ops {
			n := 0
			for _, l := range r.Lines {
				if l.At < r.From || l.At > r.To {
					t.Errorf("op %d, from %d to %d, has a line at %d", r.ID, r.From, r.To, l.At)
				}
				if l.Source != source {
					continue
				}
				n++
				if want := "csi-provisioner of hostdir.csi.cnsbench.dev password=" + redact.Hidden; l.Line != want {
					t.Errorf("got %q, want %q", l.Line, want)
				}
			}
			if want := int((r.To - r.From) / op.Time(400e6)); n < want {
				t.Errorf("op %d has %d lines of %s, want at least %d; notes %q", r.ID, n, source, want, logs.About.Notes)
			}
		}
	})
	t.Run("without the rights", func(t *testing.T) {
		p := bed.project(t, noRights)
		c := p.command("pod", file, "--create-rbac")
		p.ends(c, 0)
		logs := p.opLogs(c)
		if notes := strings.Join(logs.About.Notes, "\n"); strings.Count(notes, "the right is missing: list pods in all "+
			"namespaces") != 1 {
			t.Errorf("notes %q", notes)
		}
		for _, r := range logs.Ops {
			for _, l := range r.Lines {
				if l.Source == source {
					t.Fatalf("op %d has a line of %s", r.ID, source)
				}
			}
		}
	})
}

// opLogs returns the log lines around the ops of a run.
func (p *project) opLogs(c *command) bundle.OpLogs {
	p.t.Helper()
	b, err := bundle.Open(c.bundle)
	if err != nil {
		p.t.Fatal(err)
	}
	logs, err := b.OpLogs()
	if err != nil || !logs.Collected {
		p.t.Fatalf("logs %+v, %v", logs, err)
	}
	return logs
}
