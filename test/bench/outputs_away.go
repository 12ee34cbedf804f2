package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// outputsAway measures the lateness of 200 ops/s of null without outputs, with four outputs whose receivers refuse
// connections, and with four that accept connections and never answer. The order changes with each round. Then the
// receivers are away for a minute in the middle of a run: each document must arrive once.
func outputsAway(ctx context.Context, e *env) (table, error) {
	var t table
	refusing, err := closedPort(ctx)
	if err != nil {
		return t, err
	}
	hanging, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0") // the kernel accepts, nothing reads
	if err != nil {
		return t, err
	}
	defer hanging.Close()
	addresses := map[string]string{"none": "", "refused": refusing, "hanging": hanging.Addr().String()}
	orders := [][]string{{"none", "refused", "hanging"}, {"hanging", "none", "refused"}, {"refused", "hanging", "none"}}
	late := map[string][]int64{}
	for round := range pick(e, 6, 1) {
		for _, kind := range orders[round%len(orders)] {
			trial, err := e.besideOutputs(ctx, addresses[kind], e.seed+uint64(round), pick(e, 60, 5), "1s")
			if err != nil {
				return t, fmt.Errorf("receivers %s: %w", kind, err)
			}
			found, err := lateness(trial)
			if err != nil {
				return t, err
			}
			trial.remove()
			late[kind] = append(late[kind], found...)
		}
	}
	if late["away in the middle"], err = t.outage(ctx, e); err != nil {
		return t, err
	}
	base := quantile(late["none"], 0.99)
	t.info(len(late["none"]), "p99 of lateness without outputs", "%s", ms(base))
	for _, kind := range []string{"refused", "hanging", "away in the middle"} {
		got := quantile(late[kind], 0.99)
		t.add("p99 of lateness, receivers "+kind, fmt.Sprintf("%s (%+.3f ms)", ms(got), float64(got-base)/1e6),
			"≤ without + 0.1 ms", metIf(got-base <= 100_000), len(late[kind]))
		t.info(len(late[kind]), "p99.9 of lateness, receivers "+kind, "%s; without %s", ms(quantile(late[kind], 0.999)),
			ms(quantile(late["none"], 0.999)))
	}
	t.note("outputs: httpPostSpec, elasticsearchSpec, otlpSpec of all operations, remoteWriteSpec each second")
	return t, nil
}

// closedPort returns an address at which nothing listens.
func closedPort(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// outage runs with receivers that go away for a while, counts what they have at the end, and returns the lateness of
// each operation.
func (t *table) outage(ctx context.Context, e *env) ([]int64, error) {
	r, err := newReceiver(ctx)
	if err != nil {
		return nil, err
	}
	before, away := pick(e, 10*time.Second, 2*time.Second), pick(e, time.Minute, 3*time.Second)
	moved := make(chan error, 1)
	go func() {
		moved <- func() error {
			for n := 0; n == 0; n, _ = r.counts("httppost") { // the run has begun
				if err := sleep(ctx, 10*time.Millisecond); err != nil {
					return err
				}
			}
			if err := errors.Join(sleep(ctx, before), r.goAway(ctx), sleep(ctx, away)); err != nil {
				return err
			}
			return r.comeBack(ctx)
		}()
	}()
	trial, err := e.besideOutputs(ctx, r.address, e.seed, int((2*before + away).Seconds()), "2m")
	if err != nil {
		return nil, err // the receiver's goroutine ends with the context of the bench
	}
	defer trial.remove()
	if err := <-moved; err != nil {
		return nil, err
	}
	if err := r.goAway(ctx); err != nil {
		return nil, err
	}
	sent := map[string]int{}
	for i, kind := range outputKinds[:3] {
		if sent[kind], err = trial.count(fmt.Sprintf("touch-%d", i)); err != nil {
			return nil, err
		}
	}
	for _, err := range trial.bundle.RemoteWrites(outputKinds[3]) {
		if err != nil {
			return nil, err
		}
		sent[outputKinds[3]]++
	}
	for _, kind := range outputKinds {
		got, repeated := r.counts(kind)
		t.add(fmt.Sprintf("%s, away for %v: documents of %d, repeated", kind, away, sent[kind]),
			fmt.Sprintf("%d, %d", got, repeated), "all, 0", metIf(got == sent[kind] && repeated == 0), sent[kind])
	}
	return lateness(trial)
}

// count returns the number of operations of an action, whatever their outcome.
func (t *trial) count(action string) (n int, err error) {
	for o, err := range t.bundle.Ops() {
		if err != nil {
			return 0, err
		}
		if o.Action == action {
			n++
		}
	}
	return n, nil
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// outputKinds are the names of the outputs: the first three have the operations of an action each, the last the
// metrics.
var outputKinds = []string{"httppost", "elasticsearch", "otlp", "remotewrite"}

// besideOutputs runs for some seconds with outputs at an address; empty: without outputs.
func (e *env) besideOutputs(ctx context.Context, address string, seed uint64, seconds int, sendWithin string) (*trial,
	error) {
	var names, outputs []string
	if address != "" {
		for _, spec := range []string{
			`httpPostSpec: {url: "http://` + address + `/"}`,
			`elasticsearchSpec: {url: "http://` + address + `"}`,
			`otlpSpec: {url: "http://` + address + `"}`,
			`remoteWriteSpec: {url: "http://` + address + `/api/v1/write", interval: 1s}`,
		} {
			name, _, _ := strings.Cut(strings.ToLower(spec), "spec:")
			names, outputs = append(names, name), append(outputs, "{name: "+name+", "+spec+"}")
		}
	}
	var actions strings.Builder
	for i := range 4 { // an action has one output
		fmt.Fprintf(&actions, "\n    - {name: touch-%d, rateName: steady, modifySpec: {actionName: volume, "+
			"parameters: {iops: \"100\"}}", i)
		if i < len(names) {
			fmt.Fprintf(&actions, ", outputs: {outputName: %s}", names[i])
		}
		actions.WriteString("}")
	}
	return e.run(ctx, fmt.Sprintf(`
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: bench-outputs-away}
spec:
  seed: %d
  actions:
    - {name: volume, createObjSpec: {volume: {storageClass: "null", size: 1Gi}}}%s
  rates: [{name: steady, duration: %ds, poissonRateSpec: {perSecond: 50}}]
  outputs: [%s]
`, seed, actions.String(), seconds, strings.Join(outputs, ", ")), "--send-within", sendWithin)
}

// lateness returns the lateness of each operation.
func lateness(trial *trial) (late []int64, err error) {
	for i := range 4 {
		ops, err := trial.ops(fmt.Sprintf("touch-%d", i))
		if err != nil {
			return nil, err
		}
		for _, o := range ops {
			ns, _ := o.Lateness()
			late = append(late, ns)
		}
	}
	return late, nil
}
