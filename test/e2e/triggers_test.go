package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// writesAtOnce is a workload that sleeps, prints the time and then writes about 20 MB a second.
const writesAtOnce = `apiVersion: v1
kind: ConfigMap
metadata: {name: w, labels: {type: workload}, annotations: {cnsbench.default.storageClass: hostdir}}
data:
  data.yaml: |
    apiVersion: v1
    kind: PersistentVolumeClaim
    metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], storageClassName: "{{storageClass}}", resources: {requests: {storage: 64Mi}}}
  pod.yaml: |
    apiVersion: v1
    kind: Pod
    metadata: {name: w, annotations: {role: workload, sync: "true"}}
    spec:
      containers:
        - name: c
          command:
            - sh
            - -c
            - |
              sleep 2
              date +%s%N
              end=$(($(date +%s) + 2))
              while [ $(date +%s) -lt $end ]; do
                dd if=/dev/zero of=/data/f bs=64k count=16 conv=notrunc,fsync 2>/dev/null
                sleep 0.03
              done
              sleep 1.5
          volumeMounts: [{name: data, mountPath: /data}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
---
`

// triggersJSON is the part of run.json about rates with a condition.
type triggersJSON struct {
	BarrierAt int64
	Clock     struct{ Start time.Time }
	Rates     []struct {
		Name      string
		Triggers  int
		Condition *struct {
			Evaluations, Unknown int
			Firings              []struct {
				Since, At int64
				Observed  string
			}
		}
	}
	Validity []struct{ Name, Severity, Evidence string }
}

// triggers reads run.json.
func (b *box) triggers() (run triggersJSON) {
	b.Helper()
	text, err := os.ReadFile(filepath.Join(b.bundle(), "run.json"))
	if err != nil {
		b.Fatal(err)
	}
	decode(b, string(text), &run)
	return run
}

// hindered is the time by which the machine delayed the samples of a workload most, each due after 250 ms.
func (b *box) hindered(instance string) (most time.Duration) {
	b.Helper()
	text, err := os.ReadFile(filepath.Join(b.bundle(), "series", "samples.jsonl"))
	if err != nil {
		b.Fatal(err)
	}
	last := int64(0)
	for line := range strings.Lines(string(text)) {
		var s struct {
			Instance string
			At       int64
		}
		if decode(b, line, &s); s.Instance != instance {
			continue
		}
		if last != 0 {
			most = max(most, time.Duration(s.At-last)-250*time.Millisecond)
		}
		last = s.At
	}
	return most
}

// firesOnce checks that a rate triggered once, at most an interval of a second and 50 ms after the truth, apart from
// what the machine delayed, and that its op says why.
func (b *box) firesOnce(run *triggersJSON, ops []opJSON, rate, action string, truth int64) {
	b.Helper()
	for _, r := range run.Rates {
		if r.Name != rate {
			continue
		}
		if r.Triggers != 1 || r.Condition == nil || len(r.Condition.Firings) != 1 {
			b.Errorf("%+v: want one trigger", r)
			return
		}
		f := r.Condition.Firings[0]
		late, allowed := time.Duration(f.At-truth), 1050*time.Millisecond+b.hindered("w-0")
		b.Logf("rate %s: %v after the truth, at most %v allowed; %d evaluations, %d undecided: %s", rate, late, allowed,
			r.Condition.Evaluations, r.Condition.Unknown, f.Observed)
		if late < 0 || f.Since < truth || late > allowed {
			b.Errorf("rate %s triggered %v after the truth, by a sample of %v after it; want 0 to %v", rate, late,
				time.Duration(f.Since-truth), allowed)
		}
		n := 0
		for _, o := range ops {
			if o.Action != action {
				continue
			}
			n++
			if o.Intended == nil || *o.Intended != f.At || !strings.Contains(o.Message, f.Observed) {
				b.Errorf("op %+v of %+v", o, f)
			}
		}
		if n != 1 {
			b.Errorf("%d ops of %s", n, action)
		}
	}
}

// TestTriggerThroughput checks that a trigger follows the I/O of a workload that begins at a known time, that another
// whose threshold is never crossed does not, and that the run says so.
func TestTriggerThroughput(t *testing.T) {
	b := newBox(t)
	r := b.bench(writesAtOnce + head + `spec:
  actions:
    - {name: w, createObjSpec: {workload: w}}
    - {name: more, rateName: growth, createObjSpec: {volume: {storageClass: "null"}}}
    - {name: none, rateName: never, createObjSpec: {volume: {storageClass: "null"}}}
  rates:
    - {name: growth, triggerRateSpec: {when: throughput(w.write) > 1e6, reset: throughput(w.write) < 1e5, cooldown: 0s}}
    - {name: never, triggerRateSpec: {when: throughput(w.write) > 1e12 || errors(more) > 0}}
`)
	r.wants(t, 0)
	run := b.triggers()
	printed, err := os.ReadFile(filepath.Join(b.bundle(), "raw", "w-0", "c", "stdout"))
	if err != nil {
		t.Fatal(err)
	}
	wall, err := strconv.ParseInt(strings.TrimSpace(string(printed)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	s, ops := b.readable(b.bundle())
	b.firesOnce(&run, ops, "growth", "more", wall-run.Clock.Start.UnixNano())
	flags := map[string]string{}
	for _, f := range s.Validity {
		flags[f.Name] = f.Evidence
	}
	if !strings.Contains(flags["triggerNotFired"], "rate never never triggered") || flags["triggerDataMissing"] != "" {
		t.Errorf("flags %v", flags)
	}
	for _, want := range []string{"Triggers\n", "growth", "true since", "never by throughput(w.write) > 1e12"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("the summary lacks %q:\n%s", want, r.stdout)
		}
	}
	b.clean()
}

// TestTriggerStall checks that a stall of a volume, a freeze of known length by the driver, triggers while it lasts, by
// the I/Os of the canary that have not ended.
func TestTriggerStall(t *testing.T) {
	needRoot(t)
	needProgram(t, "mkfs.ext4")
	b := newBox(t)
	b.bench(strings.Replace(writesAtOnce, "count=16", "count=0", 1)+head+`spec:
  actions:
    - {name: w, createObjSpec: {workload: w, canary: {interval: 20ms}, vars: {storageClass: loopfile}}}
    - {name: hold, startAfter: 500ms, modifySpec: {actionName: w, parameters: {freezeHold: 1500ms}}}
    - {name: freeze, startAfter: 1500ms, snapshotSpec: {actionName: w}}
    - {name: answer, rateName: spike, createObjSpec: {volume: {storageClass: "null"}}}
  rates:
    - name: spike
      triggerRateSpec: {when: max(w.canaryWrite) > duration("400ms"), reset: max(w.canaryWrite) < duration("100ms")}
`).wants(t, 0)
	run := b.triggers()
	_, ops := b.readable(b.bundle())
	var from, to int64
	for _, o := range ops {
		for _, m := range o.Milestones {
			switch {
			case strings.HasPrefix(m.Name, "freeze.start"):
				from = m.At
			case strings.HasPrefix(m.Name, "freeze.end"):
				to = m.At
			}
		}
	}
	if time.Duration(to-from) < 1500*time.Millisecond {
		t.Fatalf("the volume was frozen from %d to %d", from, to)
	}
	// The first I/O of the canary is due up to 20 ms before the freeze, or in it.
	b.firesOnce(&run, ops, "spike", "answer", from+int64(380*time.Millisecond))
	if f := run.Rates[0].Condition.Firings; len(f) == 1 && f[0].At > to {
		t.Errorf("it triggered %v after the freeze, which it could see before", time.Duration(f[0].At-to))
	}
	b.clean()
}
