//go:build e2e

package kubernetes

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cnsbench/cnsbench/internal/hist"
)

// nullServer starts a pod with an S3 null server and waits until it is ready.
func (p *project) nullServer() {
	p.t.Helper()
	p.apply(`
apiVersion: v1
kind: Pod
metadata: {name: null-server, labels: {app: null-server}}
spec:
  automountServiceAccountToken: false
  securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
  containers:
    - name: server
      image: ` + p.image + `
      command: [/cnsbench, object, null-server, --listen, ":9000", --size, 4KiB]
      readinessProbe: {tcpSocket: {port: 9000}, periodSeconds: 1}
      ` + restrictedContainer + `
---
apiVersion: v1
kind: Service
metadata: {name: s3}
spec: {selector: {app: null-server}, ports: [{port: 9000}]}
`)
	p.t.Cleanup(func() { p.kubectl("delete", "--ignore-not-found", "--now", "pod/null-server", "service/s3") })
	p.kubectl("wait", "--for=condition=Ready", "--timeout=2m", "pod/null-server")
}

// testObjects checks that three pods share the workers of an object workload beside fio, go through
// its stages together and give the results of one client. The credentials are in a Secret and
// appear in no file of the run.
func testObjects(p *project) {
	const secret = "not-to-be-found-anywhere"
	p.nullServer()
	p.apply(`
apiVersion: v1
kind: Secret
metadata: {name: s3-keys}
stringData: {accesskey: someone, secretkey: ` + secret + `}
`)
	p.t.Cleanup(func() { p.kubectl("delete", "--ignore-not-found", "secret/s3-keys") })
	c := p.command("local", `
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: e2e}
spec:
  seed: 7
  actions:
    - {name: fio, createObjSpec: {workload: fio, vars: {storageClass: hostdir, volumeSize: 64Mi, rateIops: 50, runtime: 8, direct: 0}}}
    - name: objects
      createObjSpec:
        workload: object
        count: 3
        objectSpec:
          storage: {s3Spec: {endpoint: "http://s3.`+p.name+`.svc:9000"}, credentials: {secretName: s3-keys}}
          stages:
            - name: init
              works: [{type: init, workers: 2, containers: "r(1,4)"}]
            - name: prepare
              works: [{type: prepare, workers: 5, containers: "r(1,4)", objects: "r(1,50)", sizes: c(4)KiB}]
            - name: main
              works:
                - {workers: 7, rampUp: 2s, runtime: 6s, rampDown: 2s, rate: constant(100), containers: "u(1,4)", objects: "u(1,50)", operations: [{type: read}]}
            - name: cleanup
              works: [{type: cleanup, workers: 4, containers: "r(1,4)", objects: "r(1,50)"}]
  slos:
    - {name: reads, expr: 'count(objects.read) == 600.0 && count(objects["prepare.write"]) == 200.0 && count(objects["cleanup.delete"]) == 200.0'}
    - {name: beside, expr: 'iops(fio.read) > 0.0 && p99(objects.read.firstByte) < duration("1m")'}
`)
	p.ends(c, 0)
	b, _ := p.bundle(c)
	instances, reads := map[string]bool{}, hist.New()
	for h, err := range b.Histograms() {
		switch {
		case err != nil:
			p.t.Fatal(err)
		case h.Total && h.Action == "objects" && h.Metric == "read":
			instances[h.Instance] = true
			if h.From < b.Run.BarrierAt {
				p.t.Errorf("%s is measured from %v on, before the barrier at %v", h.Instance, h.From, b.Run.BarrierAt)
			}
			if err := reads.Merge(h.Hist); err != nil {
				p.t.Error(err)
			}
		case h.Total && h.Metric == "prepare.write" && h.To > b.Run.BarrierAt:
			p.t.Errorf("%s wrote until %v, after the barrier at %v", h.Instance, h.To, b.Run.BarrierAt)
		}
	}
	if len(instances) != 3 || reads.N() != 600 {
		p.t.Errorf("%d reads of %v", reads.N(), instances)
	}
	if lost := p.found(b, "partLost"); len(lost) > 0 {
		p.t.Errorf("lost: %v", lost)
	}
	p.nowhere(c.bundle, secret)
}

// nowhere fails the test if a file of the run contains text.
func (p *project) nowhere(dir, text string) {
	p.t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		found, err := os.ReadFile(path)
		if strings.Contains(string(found), text) {
			p.t.Errorf("%s has the secret", path)
		}
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// testObjectPodLost checks that a run fails if one of three pods is deleted in mid-run, and that
// the operations of this pod are accounted for.
func testObjectPodLost(p *project) {
	p.nullServer()
	c := p.command("local", `
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: e2e}
spec:
  actions:
    - name: objects
      createObjSpec:
        workload: object
        count: 3
        objectSpec:
          storage: {s3Spec: {endpoint: "http://s3.`+p.name+`.svc:9000"}}
          stages:
            - name: init
              works: [{type: init, workers: 1, containers: "r(1,4)"}]
            - name: main
              works:
                - {workers: 6, runtime: 25s, rate: constant(60), containers: "u(1,4)", objects: "u(1,50)", operations: [{type: read}]}
            - name: cleanup
              works: [{type: cleanup, workers: 4, containers: "r(1,4)", objects: "r(1,50)"}]
`)
	p.start(c)
	p.during(c, "a part writes of its main stage", func() bool {
		files, _ := filepath.Glob(filepath.Join(c.bundle, "raw/objects-1/object/output/*.objects.jsonl"))
		if len(files) == 0 {
			return false
		}
		text, _ := os.ReadFile(files[0])
		return strings.Count(string(text), `"second":{"stage":1`) > 3
	})
	p.kubectl("delete", "pod", "--grace-period=0", "--force", "-l", "cnsbench.dev/instance=objects-1")
	p.ended(c, 2, "partLost")
}
