package main

import (
	"context"
	"fmt"
	"net"
	"strings"
)

// outputsAway measures the lateness of 200 ops/s of null without outputs, with four outputs whose receivers refuse
// connections, and with four that accept connections and never answer. The order changes with each round.
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
			found, err := e.latenessBeside(ctx, addresses[kind], e.seed+uint64(round))
			if err != nil {
				return t, fmt.Errorf("receivers %s: %w", kind, err)
			}
			late[kind] = append(late[kind], found...)
		}
	}
	base := quantile(late["none"], 0.99)
	t.info(len(late["none"]), "p99 of lateness without outputs", "%s", ms(base))
	for _, kind := range []string{"refused", "hanging"} {
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

// latenessBeside returns the lateness of each operation of a run with outputs at an address; empty: without outputs.
func (e *env) latenessBeside(ctx context.Context, address string, seed uint64) ([]int64, error) {
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
	trial, err := e.run(ctx, fmt.Sprintf(`
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: bench-outputs-away}
spec:
  seed: %d
  actions:
    - {name: volume, createObjSpec: {volume: {storageClass: "null", size: 1Gi}}}%s
  rates: [{name: steady, duration: %ds, poissonRateSpec: {perSecond: 50}}]
  outputs: [%s]
`, seed, actions.String(), pick(e, 60, 5), strings.Join(outputs, ", ")), "--send-within", "1s")
	if err != nil {
		return nil, err
	}
	defer trial.remove()
	var late []int64
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
