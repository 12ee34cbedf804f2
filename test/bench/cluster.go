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
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/cnsbench/cnsbench/internal/op"
)

// The benches in this file need the test bed (make testbed-up). They compare results with the audit
// log of its API server.

// cluster is the test bed.
type cluster struct {
	e          *env
	dir        string
	kubeconfig string
	audit      string // the API server's log
	client     kubernetes.Interface
}

func (e *env) testbed() (*cluster, error) {
	dir := filepath.Join(e.root, "out", "testbed")
	c := &cluster{e, dir, filepath.Join(dir, "admin.kubeconfig"), filepath.Join(dir, "audit.log"), nil}
	if _, err := os.Stat(c.audit); err != nil {
		return nil, fmt.Errorf("%w; run make testbed-up first", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // no limit
	c.client, err = kubernetes.NewForConfig(config)
	return c, err
}

// run runs a Benchmark.
func (c *cluster) run(ctx context.Context, yaml string, flags ...string) (*trial, error) {
	return c.e.run(ctx, yaml, append([]string{"--engine", "kubernetes", "--runner", "local", "--kubeconfig", c.kubeconfig,
		"--namespace", "default", "--image", "localhost/cnsbench:dev"}, flags...)...)
}

// bed runs the test bed's program.
func (c *cluster) bed(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(c.dir, "bin", "testbed"), args...)
	cmd.Env = append(os.Environ(), "TESTBED_DIR="+c.dir)
	_, err := execute(cmd, nil)
	return err
}

// logged calls do and returns what the audit log then has of the objects of a resource that were created meanwhile.
func (c *cluster) logged(resource string, ready func(*auditEvent) bool, do func() error) (map[string]written, error) {
	st, err := os.Stat(c.audit)
	if err != nil {
		return nil, err
	}
	if err := do(); err != nil {
		return nil, err
	}
	time.Sleep(2 * time.Second) // the log is written each second
	return readAudit(c.audit, st.Size(), resource, ready)
}

// written has the writes of one object in the API server's log: its creation, and the first update that made it ready.
type written struct{ created, ready request }

// request has the times at which the API server received and answered a request. The object changed
// between these times.
type request struct{ received, complete time.Time }

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

// readAudit returns the objects of a resource that the log has, from an offset on, by their names. For updates the log
// must contain the responses (level RequestResponse).
func readAudit(path string, from int64, resource string, ready func(*auditEvent) bool) (map[string]written, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return nil, err
	}
	found := map[string]written{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e auditEvent
		if !bytes.Contains(lines.Bytes(), []byte(resource)) || json.Unmarshal(lines.Bytes(), &e) != nil || // being written
			e.Stage != "ResponseComplete" || e.ResponseStatus.Code/100 != 2 || e.ObjectRef.Resource != resource {
			continue
		}
		o, r := found[e.ObjectRef.Name], request{e.RequestReceivedTimestamp, e.StageTimestamp}
		switch {
		case e.Verb == "create" && e.ObjectRef.Subresource == "":
			o.created = r
		case e.ObjectRef.Subresource == "status" && ready(&e) && o.ready.complete.IsZero():
			o.ready = r
		}
		found[e.ObjectRef.Name] = o
	}
	return found, lines.Err()
}

const claims = "persistentvolumeclaims"

func isBound(e *auditEvent) bool { return e.ResponseObject.Status.Phase == "Bound" }

// instants are those of a milestone, against the audit log.
type instants struct {
	milestone string
	of        func(written) request
	wrong     []int64 // distances from the API server's answer, in ns
	stated    []int64 // errors that CNSBench states for them
	outside   []int64 // distances from the request's time in the API server
	taken     []int64 // from the op's start to the receipt of the creation
	covered   int     // distances within the stated error
}

// add adds those of the ops of an action.
func (x *instants) add(trial *trial, action string, log map[string]written) error {
	ops, err := trial.ops(action)
	if err != nil {
		return err
	}
	before := len(x.wrong)
	for i := range ops {
		logged := log["cnsb-"+trial.bundle.Run.ID+"-"+ops[i].Object]
		was := x.of(logged)
		for _, m := range ops[i].Milestones {
			if m.Name != x.milestone || was.complete.IsZero() {
				continue
			}
			at := trial.at(m.At)
			off := int64(at.Sub(was.complete).Abs())
			x.wrong, x.stated = append(x.wrong, off), append(x.stated, m.Err)
			x.outside = append(x.outside, int64(max(at.Sub(was.complete), was.received.Sub(at), 0)))
			x.taken = append(x.taken, int64(logged.created.received.Sub(trial.at(ops[i].Started))))
			if off <= m.Err {
				x.covered++
			}
		}
	}
	if n := len(x.wrong) - before; n < len(ops)*9/10 {
		return fmt.Errorf("%s: only %d of %d ops are in the audit log", x.milestone, n, len(ops))
	}
	return nil
}

// differences adds the p99, which is to be at most limit (0: any), and how many instants are within their stated error.
func (x *instants) differences(t *table, what string, limit time.Duration) {
	n, p99 := len(x.wrong), quantile(x.wrong, 0.99)
	what += ": " + x.milestone + ", from the API server's instant"
	if limit > 0 {
		t.add(n, what+", p99", ms(p99), "≤ "+limit.String(), p99 <= int64(limit))
	} else {
		t.info(n, what+", p99", "%s", ms(p99))
	}
	t.info(n, what+", p50; p99 outside of the request's time in the API server", "%s; %s", ms(quantile(x.wrong, 0.5)),
		ms(quantile(x.outside, 0.99)))
	share := 100 * float64(x.covered) / float64(n)
	t.add(n, what+", within the stated error", fmt.Sprintf("%.1f %%", share), "≥ 99 %", share >= 99)
}

func (e *env) volumesAt(perSecond float64, length time.Duration) string {
	return e.benchmark(`  runtime: %v
  gracePeriod: 2m
  actions: [{name: create, rateName: r, createObjSpec: {volume: {storageClass: "null", size: 64Mi}}}]
  rates: [{name: r, poissonRateSpec: {perSecond: %g}}]
`, length, perSecond)
}

// audit compares milestones with the API server's audit log at 2 volumes per second and at 25,
// where queues form.
func audit(ctx context.Context, e *env, t *table) error {
	c, err := e.testbed()
	if err != nil {
		return err
	}
	for _, r := range []struct {
		perSecond float64
		length    time.Duration
		limit     time.Duration // of the 99th percentile; 0: only the stated error is checked
	}{
		{2, pick(e, 260*time.Second, 30*time.Second), 5 * time.Millisecond},
		{25, pick(e, 30*time.Second, 10*time.Second), 0},
	} {
		var trial *trial
		log, err := c.logged(claims, isBound, func() (err error) {
			trial, err = c.run(ctx, e.volumesAt(r.perSecond, r.length))
			return err
		})
		if err != nil {
			return err
		}
		defer trial.remove()
		for _, x := range []instants{
			{milestone: op.Acked, of: func(w written) request { return w.created }},
			{milestone: op.Bound, of: func(w written) request { return w.ready }},
		} {
			if err := x.add(trial, "create", log); err != nil {
				return err
			}
			x.differences(t, fmt.Sprintf("%g/s", r.perSecond), r.limit)
		}
	}
	return nil
}

// kubeBursts creates claims, 100 in flight, and compares the instants at which they were bound, and the errors that
// CNSBench states for them, with the audit log. Latencies would not do: the API server takes up requests of a burst
// late, and the log does not have that wait.
func kubeBursts(ctx context.Context, e *env, t *table) error {
	c, err := e.testbed()
	if err != nil {
		return err
	}
	x := instants{milestone: op.Bound, of: func(w written) request { return w.ready }}
	for range pick(e, 8, 5) {
		var trial *trial
		log, err := c.logged(claims, isBound, func() (err error) {
			trial, err = c.run(ctx, e.objects(ofClaims.ours, fmt.Sprintf("concurrencySpec: {parallelism: %d}, limit: %d",
				kubeParallel, pick(e, 400, 100))))
			return err
		})
		if err != nil {
			return err
		}
		if err := errors.Join(x.add(trial, "object", log), os.RemoveAll(trial.bundle.Dir)); err != nil {
			return err
		}
	}
	const what = "PVC, 100 in flight"
	x.differences(t, what, 15*time.Millisecond)
	ratio := float64(quantile(x.stated, 0.5)) / float64(quantile(x.wrong, 0.99))
	t.add(len(x.stated), what+": median of the stated errors / p99 of the differences", fmt.Sprintf("× %.2f", ratio),
		"× 0.33 to × 3", ratio >= 1./3 && ratio <= 3)
	t.info(len(x.taken), what+": from the request to its receipt by the API server, p50 and p99", "%s, %s",
		ms(quantile(x.taken, 0.5)), ms(quantile(x.taken, 0.99)))
	return nil
}
