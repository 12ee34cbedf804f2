package workload

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// render makes an instance of an entry of one part.
func render(t *testing.T, engine string, parts ...Part) (*Instance, error) {
	t.Helper()
	e := &Entry{Name: "e", Parts: parts}
	return e.Render(Params{Action: "a", Count: 1, RunID: "r1", Engine: engine, Cluster: engine == "kubernetes"})
}

func mustRender(t *testing.T, engine, text string) *Instance {
	t.Helper()
	i, err := render(t, engine, Part{"e.yaml", text})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// asWritten is a pod with much that only a cluster understands.
const asWritten = `
apiVersion: v1
kind: Pod
metadata:
  name: p
  labels: {app: p}
  annotations: {role: workload, cnsbench.dev/sync: main, outputFile: /output/x, sidecar.istio.io/inject: "false"}
spec:
  serviceAccountName: me
  nodeSelector: {disk: ssd}
  tolerations: [{key: dedicated, operator: Exists}]
  affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: p}}}]}}
  securityContext: {runAsNonRoot: true, fsGroup: 7}
  priorityClassName: low
  initContainers: [{name: init, image: tools}]
  containers:
    - name: helper
      image: helper
      livenessProbe: {tcpSocket: {port: 80}}
    - name: main
      image: main
      command: [main, "$(SERVICE_MY_DB)"]
      envFrom: [{secretRef: {name: own}}, {configMapRef: {name: settings}}, {configMapRef: {name: others, optional: true}}]
      env:
        - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
        - {name: LIMIT, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}
        - {name: PASSWORD, valueFrom: {secretKeyRef: {name: theirs, key: k}}}
        - {name: A, valueFrom: {configMapKeyRef: {name: settings, key: a}}}
      resources: {limits: {cpu: "1"}}
      readinessProbe: {tcpSocket: {port: 80}}
      volumeMounts: [{name: data, mountPath: /data}]
  volumes:
    - name: data
      persistentVolumeClaim: {claimName: data}
    - name: shared
      persistentVolumeClaim: {claimName: shared}
    - name: host
      hostPath: {path: /dev}
    - name: key
      secret: {secretName: own}
    - name: all
      projected: {sources: [{secret: {name: own}}, {configMap: {name: settings}}, {serviceAccountToken: {path: token}}]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Secret
metadata: {name: own}
stringData: {password: x}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {a: b}
---
apiVersion: v1
kind: Service
metadata: {name: my-db}
spec: {selector: {app: p}, ports: [{port: 80}]}
`

// A cluster gets the pod as its author wrote it: names are the instance's.
func TestClusterPod(t *testing.T) {
	got, err := yaml.Marshal(mustRender(t, "kubernetes", asWritten))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/cluster.golden", string(got))
}

func TestClusterProblems(t *testing.T) {
	pod := func(annotations, spec string) string {
		return strings.Replace(podHead, "%s", annotations, 1) + spec
	}
	tests := []struct{ name, manifest, want string }{
		{"liveness probe", pod(", annotations: {sync: \"true\"}",
			"  containers: [{name: c, command: [a], livenessProbe: {tcpSocket: {port: 1}}}]\n"),
			`e.yaml: container "c" of Pod "p" waits at the barrier and has a livenessProbe: it would be killed while it waits, since its program does not run yet (leave the probe out, or name in annotation sync those that wait)`},
		{"startup probe", pod(", annotations: {sync: c}",
			"  containers: [{name: b, command: [a]}, {name: c, command: [a], startupProbe: {tcpSocket: {port: 1}}}]\n"),
			`e.yaml: container "c" of Pod "p" waits at the barrier and has a startupProbe: it would be killed while it waits, since its program does not run yet (leave the probe out, or name in annotation sync those that wait)`},
		{"cannot wait", pod(", annotations: {sync: \"true\"}", "  containers: [{name: c}, {name: d, command: [a]}]\n"),
			`e.yaml: container "c" of Pod "p" is to wait at the barrier but leaves its command to the image: it cannot be wrapped, and begins at once (give its command, or name in annotation sync those that wait: d)`},
		{"none can wait", pod(", annotations: {sync: c}", "  containers: [{name: c}]\n"),
			`e.yaml: container "c" of Pod "p" is to wait at the barrier but leaves its command to the image: it cannot be wrapped, and begins at once (give its command)`},
		{"output without a command", pod(", annotations: {outputFile: /x}", "  containers: [{name: c}]\n"),
			`e.yaml: Pod "p" has an outputFile, but no container with a command, which could read it (give the container's command, so that it is wrapped)`},
		{"started again", pod("", "  restartPolicy: OnFailure\n  containers: [{name: c}]\n"),
			`e.yaml: Pod "p" has restartPolicy OnFailure: the run waits for its end, but it would be restarted (restartPolicy: Never, or annotation role: server)`},
		{"no key", pod("", "  containers: [{name: c, env: [{name: A, valueFrom: {configMapKeyRef: {name: m, key: b}}}]}]\n") + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n",
			`e.yaml: env A of container "c": ConfigMap "m" has no key "b"`},
		{"unknown mount", pod("", "  containers: [{name: c, volumeMounts: [{name: d, mountPath: /d}]}]\n"),
			`e.yaml: container "c" of Pod "p" mounts "d", which is not a volume of the pod`},
		{"two secrets", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\n", `e.yaml: there are two Secrets "s"`},
		{"no name", "apiVersion: v1\nkind: Service\n", `e.yaml: the Service has no name`},
		{"other kinds", "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: s}\n",
			`e.yaml: an object of kind Role (rbac.authorization.k8s.io/v1): not supported by engine kubernetes (Pod, Job, StatefulSet, Deployment, PersistentVolumeClaim, ConfigMap, Secret and Service are)`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := render(t, "kubernetes", Part{"e.yaml", tt.manifest})
			if message(err) != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// What would only be killed on a cluster is no problem where nothing probes,
// and what does not wait may be probed.
func TestProbesThatDoNoHarm(t *testing.T) {
	probed := strings.Replace(podHead, "%s", ", annotations: {sync: c}", 1) +
		"  containers: [{name: c, command: [a]}, {name: d, command: [b], livenessProbe: {tcpSocket: {port: 1}}}]\n"
	mustRender(t, "kubernetes", probed)
	mustRender(t, "local", strings.Replace(probed, "sync: c", "sync: \"true\"", 1))
}

// A StatefulSet's pods have the names that its controller would give them, and
// each its own claims.
func TestParallelStatefulSet(t *testing.T) {
	const set = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, annotations: {role: workload, sync: "true"}}
spec:
  replicas: 2
  serviceName: db
  podManagementPolicy: Parallel
  ordinals: {start: 3}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: db, command: [db], volumeMounts: [{name: store, mountPath: /s}]}]
      volumes: [{name: store, emptyDir: {}}]
  volumeClaimTemplates:
    - metadata: {name: store}
      spec: {resources: {requests: {storage: 1Gi}}}
`
	service := "---\napiVersion: v1\nkind: Service\nmetadata: {name: db}\nspec: {clusterIP: None, selector: {app: db}}\n"
	for engine, text := range map[string]string{"local": set, "kubernetes": set + service} {
		t.Run(engine, func(t *testing.T) {
			i := mustRender(t, engine, text)
			type pod struct{ Name, Claim, Index, Host string }
			var got []pod
			for _, p := range i.Pods {
				got = append(got, pod{p.Name, p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName, p.Labels[podIndex],
					p.Spec.Hostname + "." + p.Spec.Subdomain})
				if len(p.Sync) != 1 || p.Service {
					t.Errorf("%s: waits %v, server %v", p.Name, p.Sync, p.Service)
				}
			}
			want := []pod{{"a-0-db-3", "a-0-store-db-3", "3", "."}, {"a-0-db-4", "a-0-store-db-4", "4", "."}}
			if engine == "kubernetes" {
				want[0].Host, want[1].Host = "db-3.a-0-db", "db-4.a-0-db"
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			var claims []string
			for _, c := range i.Claims {
				claims = append(claims, c.Name+" "+c.Labels[LabelVolume])
			}
			if diff := cmp.Diff([]string{"a-0-store-db-3 store", "a-0-store-db-4 store"}, claims); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A Job's pod is not started again: that would be an unrecorded retry.
func TestJobIsNotRetried(t *testing.T) {
	i := mustRender(t, "kubernetes", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {template: {spec: {restartPolicy: OnFailure, containers: [{name: c}]}}}\n")
	if got := i.Pods[0].Spec.RestartPolicy; got != corev1.RestartPolicyNever {
		t.Errorf("restartPolicy %s", got)
	}
}

func TestParsers(t *testing.T) {
	pod := func(annotations string) string {
		return strings.Replace(podHead, "%s", ", annotations: {outputFile: /o/x, "+annotations+"}", 1) +
			"  containers: [{name: side, image: s}, {name: c, image: tools, command: [a]}]\n"
	}
	const prototype = "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: my-parser, annotations: {container: busybox}}\ndata: {lib.sh: l, parse.sh: \"#!/bin/cat\"}\n"
	tests := []struct {
		name, manifest string
		want           Output
	}{
		{"built in", pod("parser: fio"), Output{Container: "c", File: "/o/x", Parser: "fio"}},
		{"raw", pod("parser: null-parser"), Output{Container: "c", File: "/o/x"}},
		{"a key of the entry", pod("parser: p.py"),
			Output{Container: "c", File: "/o/x", Parser: "p.py", Script: "#!/p\nprint(1)", Image: "tools"}},
		{"its own image", pod("parser: p.py, parserImage: python"),
			Output{Container: "c", File: "/o/x", Parser: "p.py", Script: "#!/p\nprint(1)", Image: "python"}},
		{"the prototype's", pod("parser: my-parser") + prototype,
			Output{Container: "c", File: "/o/x", Parser: "my-parser", Script: "#!/bin/cat", Image: "busybox"}},
		{"unknown", pod("parser: fo"), Output{Container: "c", File: "/o/x", Parser: "fo"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			i, err := render(t, "kubernetes", Part{"e.yaml", tt.manifest}, Part{"p.py", "#!/p\nprint(1)"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]Output{tt.want}, i.Outputs); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The output is that of a container which waits, not of its helper.
func TestWriterOfOutput(t *testing.T) {
	i := mustRender(t, "local", strings.Replace(podHead, "%s", ", annotations: {outputFile: /x, sync: c}",
		1)+"  containers: [{name: b, command: [a]}, {name: c, command: [a]}]\n")
	if got := i.Outputs[0].Container; got != "c" {
		t.Errorf("of container %s", got)
	}
}
