package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
)

// The benches in this file need the test bed (make testbed-up). They compare results with the audit
// log of its API server.

func (e *env) testbed() (kubeconfig, audit string, err error) {
	dir := filepath.Join(e.root, "out", "testbed")
	kubeconfig, audit = filepath.Join(dir, "admin.kubeconfig"), filepath.Join(dir, "audit.log")
	for _, path := range []string{kubeconfig, audit} {
		if _, err := os.Stat(path); err != nil {
			return "", "", fmt.Errorf("%w; run make testbed-up first", err)
		}
	}
	return kubeconfig, audit, nil
}

func (e *env) onCluster(ctx context.Context, yaml string, flags ...string) (*trial, error) {
	kubeconfig, _, err := e.testbed()
	if err != nil {
		return nil, err
	}
	return e.run(ctx, yaml, append([]string{"--engine", "kubernetes", "--runner", "local", "--kubeconfig", kubeconfig,
		"--namespace", "default", "--image", "localhost/cnsbench:dev"}, flags...)...)
}

func (e *env) volumesAt(perSecond float64, length time.Duration) string {
	return fmt.Sprintf(`
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: bench-volumes}
spec:
  seed: %d
  runtime: %v
  gracePeriod: 2m
  actions:
    - name: create
      rateName: r
      createObjSpec: {volume: {storageClass: "null", size: 64Mi}}
  rates:
    - {name: r, poissonRateSpec: {perSecond: %g}}
`, e.seed, length, perSecond)
}

// audit compares milestones with the API server's audit log at 2 volumes per second and at 25,
// where queues form.
func audit(ctx context.Context, e *env) (table, error) {
	var t table
	for _, c := range []struct {
		name      string
		perSecond float64
		length    time.Duration
		bound     time.Duration // of the 99th percentile; 0: only the stated error is checked
	}{
		{"2/s", 2, pick(e, 260*time.Second, 30*time.Second), 5 * time.Millisecond},
		{"25/s", 25, pick(e, 30*time.Second, 10*time.Second), 0},
	} {
		if err := t.auditAt(ctx, e, c.name, c.perSecond, c.length, c.bound); err != nil {
			return t, err
		}
	}
	return t, nil
}

func (t *table) auditAt(ctx context.Context, e *env, name string, perSecond float64, length,
	bound time.Duration) error {
	_, log, err := e.testbed()
	if err != nil {
		return err
	}
	machine, unwatched := watchStillness(ctx)
	trial, err := e.onCluster(ctx, e.volumesAt(perSecond, length))
	machine.end()
	if err != nil {
		return err
	}
	defer trial.remove()
	t.stillness(name, machine, unwatched)
	ops, err := trial.ops("create")
	if err != nil {
		return err
	}
	truth, err := readAudit(log, "cnsb-"+trial.bundle.Run.ID+"-")
	if err != nil {
		return err
	}
	start := trial.bundle.Run.Clock.Start
	for _, m := range []struct {
		milestone string
		of        func(audited) request
	}{{op.Acked, func(a audited) request { return a.created }}, {op.Bound,
		func(a audited) request { return a.bound }}} {
		var differences, outside, running []int64
		covered, early, earliest := 0, 0, int64(0)
		for _, o := range ops {
			logged := m.of(truth["cnsb-"+trial.bundle.Run.ID+"-"+o.Object])
			seen, stated := milestoneOf(&o, m.milestone)
			if logged.complete.IsZero() || !seen.Known() {
				continue
			}
			at := start.Add(time.Duration(seen))
			outside = append(outside, int64(max(at.Sub(logged.complete), logged.received.Sub(at), 0)))
			d := int64(at.Sub(logged.complete))
			if d < 0 {
				d, early = -d, early+1
				earliest = max(earliest, d)
			}
			differences = append(differences, d)
			between := span{logged.complete, at}
			if at.Before(logged.complete) {
				between = span{at, logged.complete}
			}
			running = append(running, d-int64(machine.within(between)))
			if d <= stated {
				covered++
			}
		}
		if len(differences) < len(ops)*9/10 {
			return fmt.Errorf("%s: only %d of %d ops are in the audit log", m.milestone, len(differences), len(ops))
		}
		p99 := time.Duration(quantile(differences, 0.99))
		what := fmt.Sprintf("%s: %s, from the API server's instant, p99", name, m.milestone)
		if bound > 0 {
			t.info(len(differences), strings.Replace(what, "p99", "p50", 1), "%v (%d before it, by at most %v)",
				time.Duration(quantile(differences,
					0.5)).Round(10*time.Microsecond), early, time.Duration(earliest).Round(10*time.Microsecond))
			t.add(what, p99.Round(10*time.Microsecond).String(), "≤ "+bound.String(), metIf(p99 <= bound),
				len(differences))
		} else {
			t.info(len(differences), what, "%v", p99.Round(10*time.Microsecond))
		}
		t.info(len(outside), fmt.Sprintf("%s: %s, outside of the request's time in the API server, p99", name,
			m.milestone),
			"%v", time.Duration(quantile(outside, 0.99)).Round(10*time.Microsecond))
		if unwatched == nil {
			t.info(len(running), fmt.Sprintf("%s: %s, without the time in which a CPU stood still, p99", name,
				m.milestone),
				"%v", time.Duration(quantile(running, 0.99)).Round(10*time.Microsecond))
		}
		if m.milestone == op.Bound {
			share := float64(covered) / float64(len(differences))
			t.add(fmt.Sprintf("%s: %s within the stated error", name, m.milestone), fmt.Sprintf("%.1f %%", 100*share),
				"≥ 99 %", metIf(share >= 0.99), len(differences))
		}
	}
	return nil
}

func milestoneOf(o *op.Op, name string) (op.Time, int64) {
	for _, m := range o.Milestones {
		if m.Name == name {
			return m.At, m.Err
		}
	}
	return op.Never, 0
}

// audited has the writes of one claim in the API server's log: its creation and the first update
// with phase Bound.
type audited struct{ created, bound request }

// request has the times at which the API server received and answered a request. The object changed
// between these times.
type request struct{ received, complete time.Time }

// readAudit returns, for the claims with a prefix in an audit log, when their creation and the
// first update of their status to Bound were complete. The log must contain the responses (level
// RequestResponse).
func readAudit(path, prefix string) (map[string]audited, error) {
	found := map[string]audited{}
	err := auditEvents(path, 0, prefix, func(e *auditEvent) {
		if e.ObjectRef.Resource != "persistentvolumeclaims" || !strings.HasPrefix(e.ObjectRef.Name, prefix) {
			return
		}
		a, r := found[e.ObjectRef.Name], request{e.RequestReceivedTimestamp, e.StageTimestamp}
		switch {
		case e.Verb == "create":
			a.created = r
		case e.ObjectRef.Subresource == "status" && e.ResponseObject.Status.Phase == "Bound" &&
			a.bound.complete.IsZero():
			a.bound = r
		}
		found[e.ObjectRef.Name] = a
	})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, errors.New("the audit log knows nothing of the run")
	}
	return found, nil
}

// auditEvent is a successful write in the API server's audit log.
type auditEvent struct {
	Stage                    string
	Verb                     string
	RequestReceivedTimestamp time.Time
	StageTimestamp           time.Time
	ObjectRef                struct{ Resource, Name, Subresource string }
	ResponseStatus           struct{ Code int }
	ResponseObject           struct {
		Status struct {
			Phase      string
			ReadyToUse bool
		}
	}
}

// auditEvents calls do for each successful write from an offset of the log on, of the lines that contain a text.
func auditEvents(path string, from int64, containing string, do func(*auditEvent)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return err
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if !bytes.Contains(lines.Bytes(), []byte(containing)) {
			continue
		}
		var e auditEvent
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			continue // the API server is still writing this line
		}
		if e.Stage == "ResponseComplete" && e.ResponseStatus.Code/100 == 2 {
			do(&e)
		}
	}
	return lines.Err()
}

// cluster50 creates 50 volumes per second for ten seconds.
func cluster50(ctx context.Context, e *env) (table, error) {
	var t table
	trial, err := e.onCluster(ctx, e.volumesAt(50, pick(e, 10*time.Second, 3*time.Second)))
	if err != nil {
		return t, err
	}
	defer trial.remove()
	a, err := trial.action("create")
	if err != nil {
		return t, err
	}
	n := int(a.N)
	t.info(n, "lateness p99", "%s", a.Lateness.P99)
	t.info(n, "response p50, p99", "%s, %s", a.Response.P50, a.Response.P99)
	ops, err := trial.ops("create")
	if err != nil {
		return t, err
	}
	first, last := ops[0].Started, op.Time(0)
	for _, o := range ops {
		first, last = min(first, o.Started), max(last, o.Ended)
	}
	t.info(n, "offered, achieved per second", "%.1f, %.1f", *a.OfferedPerSecond,
		float64(len(ops))/time.Duration(last-first).Seconds())
	for _, s := range a.Attribution {
		if s.Share >= 0.01 {
			t.info(n, "of the time: "+s.Component, "%.1f %%", 100*s.Share)
		}
	}
	return t, nil
}
