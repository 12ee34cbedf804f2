package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// opView is what show --op prints as JSON.
type opView struct {
	Op struct {
		ID             int64
		Action         string
		Instance       int
		Outcome        string
		Started, Ended int64
	}
	Spans []struct{ Name string }
	Logs  *struct {
		Why      string
		From, To int64
		N        int64
		Lines    []struct {
			At           int64
			Source, Line string
			Named        bool
		}
	}
	LogsMissing string
}

// op returns an op with its log lines.
func (b *box) op(name string) (v opView) {
	b.Helper()
	decode(b, b.run("show", b.bundle(), "--op", name, "--output", "json").wants(b, 0).stdout, &v)
	return v
}

// opLogs returns the ids of the ops that have log lines, by their reason.
func (b *box) opLogs() map[string][]int64 {
	b.Helper()
	found := map[string][]int64{}
	for line := range strings.Lines(b.text("bundle/logs/ops.jsonl")) {
		var l struct {
			Op *struct {
				ID  int64
				Why string
			}
		}
		decode(b, line, &l)
		if l.Op != nil {
			found[l.Op.Why] = append(found[l.Op.Why], l.Op.ID)
		}
	}
	return found
}

// TestLogsOfOps injects failures of snapshots and a time in which volumes wait, and checks that the ops concerned have
// the driver's lines about them, and only lines of their time.
func TestLogsOfOps(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	inject := b.write("inject.yaml", `
rpcs: {CreateSnapshot: {error: 100% RESOURCE_EXHAUSTED}}
windows: [{after: 2s, for: 600ms, since: first, rpcs: [CreateVolume]}]
`)
	b.bench(head+`spec:
  runtime: 4s
  actions:
    - {name: v, rateName: often, createObjSpec: {volume: {storageClass: sut, size: 1Gi}}}
    - {name: s, rateName: seldom, snapshotSpec: {actionName: v, snapshotClass: snap, select: random}}
  rates:
    - {name: often, constantRateSpec: {interval: 20ms}}
    - {name: seldom, constantRateSpec: {interval: 900ms}}
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotClass
metadata: {name: snap}
driver: null.csi.cnsbench.dev
deletionPolicy: Delete
`+class("null"), "--inject", inject).wants(t, 0)
	found := b.opLogs()
	if len(found["error"]) < 3 || len(found["slow"]) < 3 {
		t.Fatalf("ops with logs: %v, want failed and slow ones", found)
	}
	for why, says := range map[string]string{"error": `"code":"ResourceExhausted"`, "slow": `"injected":"window"`} {
		for _, id := range found[why] {
			b.hasOwnLines(id, why, says)
		}
	}
	text := b.run("show", b.bundle(), "--op", "s/0").wants(t, 0).stdout
	for _, want := range []string{"s/0 · snapshot of v-", "ResourceExhausted", "kept because: error",
		`"rpc":"CreateSnapshot"`, "driver null.csi.cnsbench.dev"} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("show --op s/0 does not say %q:\n%s", want, text)
		}
	}
	if link := fmt.Sprintf(`<a href="#op-%d">`, found["error"][0]); !strings.Contains(b.text("bundle/report.html"), link) {
		t.Errorf("the report has no link %s", link)
	}
	b.run("show", b.bundle(), "--verify").wants(t, 0)
}

// hasOwnLines checks that an op has a line of the driver about it, and that all its lines are of its time.
func (b *box) hasOwnLines(id int64, why, says string) {
	b.Helper()
	v := b.op(fmt.Sprint(id))
	own := false
	for _, l := range v.Logs.Lines {
		if l.At < v.Op.Started-1e9 || l.At > v.Op.Ended+1e9 {
			b.Errorf("op %d, from %d to %d, has a line at %d", id, v.Op.Started, v.Op.Ended, l.At)
		}
		name := fmt.Sprintf(`-%s-%d"`, v.Op.Action, v.Op.Instance)
		own = own || l.Named && strings.Contains(l.Line, says) && strings.Contains(l.Line, name)
	}
	if !own || v.Logs.Why != why {
		b.Errorf("%s op %d (%s/%d): none of its %d lines says %s of it", why, id, v.Op.Action, v.Op.Instance,
			len(v.Logs.Lines), says)
	}
}

// TestLogsHostile checks that output of workloads around an op is bounded, without its secrets, and cannot control a
// terminal.
func TestLogsHostile(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	// An init container prints, so that its lines are of the op's time whatever the machine does.
	b.bench(strings.Replace(printer(1, `printf 'password=hunter2hunter2 \\033[2J\\n'; printf '\\377\\000binary'; `+
		`head -c 100000000 /dev/zero | tr '\\0' x`), "      containers:\n", `      containers: [{name: idle, command: ["true"]}]
      initContainers:
`, 1)).wants(t, 0)
	info, err := os.Stat(b.in("bundle", "logs", "ops.jsonl"))
	if err != nil || info.Size() > 512<<10 {
		t.Fatalf("%v: %v", info, err)
	}
	r := b.run("show", b.bundle(), "--op", "w/0").wants(t, 0)
	b.harmless(r)
	for _, text := range []string{r.stdout, b.text("bundle/logs/ops.jsonl"), b.section("logs")} {
		if !strings.Contains(text, "password=***") || strings.Contains(text, "hunter2") {
			t.Errorf("a secret is not redacted:\n%.2000s", text)
		}
	}
}

// section returns a section of the report.
func (b *box) section(id string) string {
	b.Helper()
	_, rest, _ := strings.Cut(b.text("bundle/report.html"), `<section id="`+id+`">`)
	text, _, found := strings.Cut(rest, "</section>")
	if !found {
		b.Errorf("the report has no section %s", id)
	}
	return text
}
