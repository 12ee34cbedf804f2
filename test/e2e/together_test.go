package e2e

import (
	"slices"
	"strings"
	"testing"
)

// pair is a workload whose client waits for its server in an init container. The server is later in
// the order of the file names. Neither container writes the output that a parser has to read.
const pair = `apiVersion: v1
kind: ConfigMap
metadata: {name: pair, labels: {type: workload}}
data:
  claim.yaml: |
    apiVersion: v1
    kind: PersistentVolumeClaim
    metadata: {name: data, annotations: {role: volume}}
    spec: {accessModes: [ReadWriteOnce], storageClassName: hostdir, resources: {requests: {storage: 16Mi}}}
  client.yaml: |
    apiVersion: v1
    kind: Pod
    metadata: {name: client}
    spec:
      initContainers:
        - name: wait
          command: [sh, -c, 'until [ -e /data/up ]; do sleep 0.05; done']
          volumeMounts: [{name: data, mountPath: /data}]
      containers: [{name: c, command: ["true"]}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
  server.yaml: |
    apiVersion: v1
    kind: Pod
    metadata: {name: server, annotations: {outputFile: /output/none.txt, parser: pair-parser}}
    spec:
      containers:
        - {name: c, command: [touch, /data/up], volumeMounts: [{name: data, mountPath: /data}]}
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
  parser.yaml: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: pair-parser, annotations: {container: some/image}}
    data: {parse.sh: "#!/bin/sh\n"}
---
` + head + `spec:
  actions: [{name: pair, timeout: 2m, createObjSpec: {workload: pair, count: 3}}]
`

// TestPodsTogether checks that the pods of an instance start together, as on a cluster, so that one
// can wait for another. A warning that applies to many instances is printed once, with their
// number.
func TestPodsTogether(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	r := b.bench(pair).wants(t, 0)
	s, ops := b.readable(b.bundle())
	if s.State != "complete" || outcomes(ops, "pair")["ok"] != 3 {
		t.Errorf("state %s, %v\n%v", s.State, outcomes(ops, "pair"), r)
	}
	if n := strings.Count(r.stdout, "outputMissing"); n != 1 || !strings.Contains(r.stdout, "and 5 more: it wrote no") {
		t.Errorf("%d flags, want one of six containers\n%s", n, r.stdout)
	}
	if n := strings.Count(r.stdout, "it wrote no"); n != 2 { // once during the run, once as a flag
		t.Errorf("said %d times, want 2\n%s", n, r.stdout)
	}
	b.clean()
}

// alike has two workloads of three instances each. One measures the page cache with an I/O depth
// that its engine does not support. The other does no I/O.
const alike = head + `spec:
  actions:
    - name: cached
      createObjSpec:
        workload: fio
        count: 3
        vars: {storageClass: hostdir, volumeSize: 64Mi, fillPercent: 3, runtime: 1, direct: 0, ioengine: psync, iodepth: 4}
    - name: idle
      createObjSpec:
        workload: fio
        count: 3
        vars: {storageClass: hostdir, volumeSize: 64Mi, fillPercent: 3, extra: "runtime=3ss\ncreate_only=1"}
`

// TestWarningsOfInstances checks that a warning that applies to all instances is one flag with
// their number, independent of the job names, and that the figures of each instance are marked.
func TestWarningsOfInstances(t *testing.T) {
	needProgram(t, "fio")
	t.Parallel()
	b := newBox(t)
	r := b.bench(alike+class("hostdir")).wants(t, 0)
	s, _ := b.readable(b.bundle())
	found := map[string]int{}
	for _, f := range s.Validity {
		if found[f.Name]++; slices.Contains([]string{"notDirect", "noIO"}, f.Name) && len(f.Sources) != 3 {
			t.Errorf("%s has sources %q, want 3", f.Name, f.Sources)
		}
	}
	if found["notDirect"] != 1 || found["noIO"] != 1 || found["fioDiffers"] != 2 {
		t.Errorf("flags %v, want one of each finding\n%v", found, r)
	}
	for _, want := range []string{
		"cached-0/fio and 2 more: direct=0", "idle-0/fio and 2 more: no I/O was done",
		"The figures of idle are invalid: 3 instances (idle-0, idle-1, idle-2): no I/O was done."} {
		if words := strings.Join(strings.Fields(r.stdout), " "); !strings.Contains(words, want) {
			t.Errorf("%q is not said\n%v", want, r)
		}
	}
	b.clean()
}
