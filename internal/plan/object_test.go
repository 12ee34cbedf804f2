package plan

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/object/coordinator"
	"github.com/cnsbench/cnsbench/internal/object/metrics"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/objectspec"
	"github.com/cnsbench/cnsbench/internal/workload"
	"github.com/cnsbench/cnsbench/internal/workload/parser"
)

// withObjects adds the spec resolver and the parser of the object workload to an Input.
func withObjects(in Input) Input {
	in.ObjectSpec, in.Parsers = objectspec.Resolve, map[string]parser.Func{"object": metrics.Parse}
	return in
}

// anObjectWorkload is a Benchmark with everything that differs between engines: the
// locations of credentials, the certificate, the files to send and the files with
// objects.
const anObjectWorkload = `spec:
  actions:
    - name: o
      createObjSpec:
        workload: object
        objectSpec:
          storage: %s
          stages:
            - name: main
              works: [{workers: 2, totalOps: 10, containers: c(1), operations: [{type: multipart, objects: c(1), sizes: c(1)MiB, ratio: 50}, {type: filewrite, files: /srv/files, ratio: 50}]}]
            - name: cleanup
              works: [{type: cleanup, workers: 1, containers: c(1), objects: c(1)}]
`

// mountsOf returns the volume mounts of the object program in the form PATH=SOURCE, its
// claims, its store and its shard order.
func mountsOf(t *testing.T, p *Plan) (mounts []string, claims []corev1.PersistentVolumeClaim, store model.Store,
	order *coordinator.ShardOrder) {
	t.Helper()
	w, err := p.Actions[0].Workload.Render("run", 0)
	if err != nil {
		t.Fatal(err)
	}
	pod := w.Pods[0]
	volumes := map[string]corev1.Volume{}
	for _, v := range pod.Spec.Volumes {
		volumes[v.Name] = v
	}
	for _, m := range pod.Spec.Containers[0].VolumeMounts {
		switch v := volumes[m.Name]; {
		case v.Secret != nil:
			mounts = append(mounts, fmt.Sprintf("%s=secret %s %o", m.MountPath, v.Secret.SecretName,
				*v.Secret.DefaultMode))
		case v.HostPath != nil:
			mounts = append(mounts, fmt.Sprintf("%s=%s %s", m.MountPath, *v.HostPath.Type, v.HostPath.Path))
		case v.PersistentVolumeClaim != nil:
			mounts = append(mounts, m.MountPath+"=claim")
		}
	}
	if order, err = coordinator.ParseShardOrder([]byte(w.ConfigMaps[0].Data["order.json"])); err != nil {
		t.Fatal(err)
	}
	return mounts, w.Claims, order.Workload.Stages[0].Works[0].Store, order
}

// TestObjectStorage checks mounts, environment, store and claims of the object workload
// for each kind of store on each engine.
func TestObjectStorage(t *testing.T) {
	swift := map[string]string{"auth_url": "https://h:5000/v3", "username": "u", "project_name": "p",
		"user_domain": "Default", "project_domain": "Default", "interface": "internal"}
	const spec = `swiftSpec: {authURL: "https://h:5000/v3", auth: keystonev3, username: u, project: p, userDomain: Default, projectDomain: Default, interface: internal, policy: gold, timeout: 2s, caFile: %s}`
	files := "/host/srv/files=Directory /srv/files"
	tests := []struct {
		name, engine, storage string
		mounts                []string
		environment           []string
		store                 model.Store
		claim                 string
	}{
		{"Swift", "local", "{" + fmt.Sprintf(spec, "/etc/ca.pem") + ", credentials: {file: /root/keys}}",
			[]string{"/host/etc/ca.pem=File /etc/ca.pem", "/host/root/keys=File /root/keys", files}, nil,
			model.Store{Kind: "swift", AuthKind: "keystonev3", Auth: swift,
				Settings: map[string]string{"policy": "gold", "timeout": "2000", "cafile": "/host/etc/ca.pem",
					"credentials": "/host/root/keys"}}, ""},
		{"Swift", "kubernetes", "{" + fmt.Sprintf(spec, "/credentials/ca.crt") + ", credentials: {secretName: keys}}",
			[]string{"/credentials=secret keys 400"}, nil,
			model.Store{Kind: "swift", AuthKind: "keystonev3", Auth: swift,
				Settings: map[string]string{"policy": "gold", "timeout": "2000", "cafile": "/credentials/ca.crt",
					"credentials": "/credentials"}}, ""},
		{"Swift, by the environment", "local", "{swiftSpec: {authURL: \"http://h/auth/v1.0\", username: u}}",
			[]string{files}, []string{"OS_PASSWORD", "OS_AUTH_TOKEN"},
			model.Store{Kind: "swift", AuthKind: "tempauth",
				Auth: map[string]string{"auth_url": "http://h/auth/v1.0",
					"username": "u"}, Settings: map[string]string{}}, ""},
		{"Swift, by a token", "local", "{swiftSpec: {storageURL: \"http://h/v1/AUTH_a\"}, credentials: {file: /root/keys}}", []string{"/host/root/keys=File /root/keys", files}, nil,
			model.Store{Kind: "swift", AuthKind: "none",
				Settings: map[string]string{"storage_url": "http://h/v1/AUTH_a",
					"credentials": "/host/root/keys"}}, ""},
		{"Swift, by a token of the environment", "local", "{swiftSpec: {storageURL: \"http://h/v1/AUTH_a\"}}",
			[]string{files}, []string{"OS_PASSWORD", "OS_AUTH_TOKEN"},
			model.Store{Kind: "swift", AuthKind: "none",
				Settings: map[string]string{"storage_url": "http://h/v1/AUTH_a"}}, ""},
		{"Swift, by a token", "kubernetes", "{swiftSpec: {storageURL: \"http://h/v1/AUTH_a\"}, credentials: {secretName: keys}}", []string{"/credentials=secret keys 400"}, nil,
			model.Store{Kind: "swift", AuthKind: "none",
				Settings: map[string]string{"storage_url": "http://h/v1/AUTH_a", "credentials": "/credentials"}}, ""},
		{"S3, by the environment", "local", "{s3Spec: {endpoint: \"http://h\", signature: v2, payload: signed, region: r}}", []string{files}, []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"},
			model.Store{Kind: "s3", Settings: map[string]string{"endpoint": "http://h", "signature": "v2",
				"payload": "signed", "region": "r"}}, ""},
		{"S3, by names of hosts", "kubernetes", "{s3Spec: {endpoint: \"http://h\", addressing: virtualHost}}", nil, nil,
			model.Store{Kind: "s3", Settings: map[string]string{"endpoint": "http://h",
				"path_style_access": "false"}}, ""},
		{"S3, several endpoints", "kubernetes", "{s3Spec: {endpoints: [\"http://a\", \"http://b:1\"], spread: request, addresses: all, onEndpointFailure: leaveOut}}", nil, nil,
			model.Store{Kind: "s3", Settings: map[string]string{"endpoints": "http://a,http://b:1", "spread": "request",
				"addresses": "all", "on_endpoint_failure": "leaveOut"}}, ""},
		{"S3, by paths", "kubernetes", "{s3Spec: {endpoint: \"http://h\", addressing: path}}", nil, nil,
			model.Store{Kind: "s3", Settings: map[string]string{"endpoint": "http://h"}}, ""},
		{"S3, of nobody", "kubernetes", "{s3Spec: {endpoint: \"http://h\", insecureSkipVerify: true}}", nil, nil,
			model.Store{Kind: "s3", Settings: map[string]string{"endpoint": "http://h", "no_verify_ssl": "true"}}, ""},
		{"files", "local", "{fileSpec: {storageClass: hostdir, size: 3Gi, sync: data}}", []string{"/data=claim", files},
			nil,
			model.Store{Kind: "file", Settings: map[string]string{"root": "/data", "sync": "data"}}, "hostdir 3Gi"},
		{"files", "kubernetes", "{fileSpec: {storageClass: fast, size: 3Gi}}", []string{"/data=claim"}, nil,
			model.Store{Kind: "file", Settings: map[string]string{"root": "/data"}}, "fast 3Gi"},
	}
	for _, tt := range tests {
		t.Run(tt.name+" on "+tt.engine, func(t *testing.T) {
			in := Input{Capabilities: local(), Files: []File{{Name: "x.yaml",
				Data: []byte(head + fmt.Sprintf(anObjectWorkload, tt.storage))}}}
			if tt.engine == "kubernetes" {
				in.Capabilities, in.Classes, in.Image = kubernetes(), someClasses(), "cnsbench"
			}
			p, problems := Load(t.Context(), withObjects(in))
			if p == nil {
				t.Fatal(problems)
			}
			mounts, claims, store, order := mountsOf(t, p)
			if store.Settings == nil { // the JSON encoding omits an empty map
				store.Settings = map[string]string{}
			}
			if diff := cmp.Diff(tt.mounts, mounts); diff != "" {
				t.Error("mounts", diff)
			}
			if diff := cmp.Diff(tt.store, store); diff != "" {
				t.Error("store", diff)
			}
			w, _ := p.Actions[0].Workload.Render("run", 0)
			environment := tt.environment
			if tt.engine == "local" && tt.claim == "" { // a store with an address
				environment = append(strings.Fields("HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy"),
					environment...)
			}
			if diff := cmp.Diff(environment, w.Pods[0].Environment, cmpopts.EquateEmpty()); diff != "" {
				t.Error("environment", diff)
			}
			claim := ""
			for _, c := range claims {
				claim = *c.Spec.StorageClassName + " " + c.Spec.Resources.Requests.Storage().String()
			}
			if claim != tt.claim {
				t.Errorf("claim %q, want %q", claim, tt.claim)
			}
			ops, deletes := order.Workload.Stages[0].Works[0].Ops, order.Workload.Stages[1].Works[0].Ops
			if want := map[string]string{"local": "/host/srv/files",
				"kubernetes": "/srv/files"}[tt.engine]; ops[1].Files != want || !deletes[0].Parts {
				t.Errorf("files of %s, and parts are deleted: %v", ops[1].Files, deletes[0].Parts)
			}
		})
	}
}

// TestObjectCredentialsOnACluster checks that on a cluster credentials must come from a
// Secret, not from the environment or a local file.
func TestObjectCredentialsOnACluster(t *testing.T) {
	for storage, want := range map[string]string{
		`{swiftSpec: {authURL: "http://h/auth/v1.0", username: u}}`:                                  `x.yaml:10:20: spec.actions[0].createObjSpec.objectSpec.storage: a token from authURL needs a password (credentials: {secretName: NAME}, with the key password)`,
		`{swiftSpec: {storageURL: "http://h/v1/AUTH_a"}}`:                                            `storage: without an authURL the credentials have the token (credentials: {secretName: NAME}, with the key token)`,
		`{swiftSpec: {}, credentials: {secretName: s}}`:                                              `storage.swiftSpec: give authURL, or storageURL with a token among the credentials`,
		`{swiftSpec: {storageURL: "http://h/v1/a", username: u}, credentials: {secretName: s}}`:      `storage.swiftSpec: authURL and username belong together`,
		`{swiftSpec: {storageURL: "http://h/v1/a", auth: keystonev3}, credentials: {secretName: s}}`: `storage.swiftSpec: auth, project, userDomain, projectDomain, region and interface are for an authURL`,
		`{swiftSpec: {storageURL: "http://k:t@h/v1/a"}, credentials: {secretName: s}}`:               `storage.swiftSpec.storageURL: credentials do not belong into an address`,
		`{s3Spec: {endpoint: "http://h", endpoints: ["http://i"]}}`:                                  `give endpoint, or endpoints`,
		`{s3Spec: {region: "r"}}`:                                           `give endpoint, or endpoints`,
		`{s3Spec: {endpoints: ["http://user:word@i"]}}`:                     `storage.s3Spec.endpoints[0]: credentials do not belong into an address`,
		`{s3Spec: {endpoint: "http://h"}, credentials: {file: /root/keys}}`: `spec.actions[0].createObjSpec.objectSpec.storage.credentials.file: a file of this machine is not on the cluster's nodes`,
	} {
		_, said := onCluster(t, Input{Classes: someClasses(), Image: "cnsbench"},
			fmt.Sprintf(anObjectWorkload, storage))
		if !strings.Contains(said, want) {
			t.Errorf("not said: %s\n%s", want, said)
		}
	}
}

// TestNamesOfObjectOperations checks that several operations of one type can have unique
// names, which become names of metrics.
func TestNamesOfObjectOperations(t *testing.T) {
	const spec = `spec:
  actions:
    - name: o
      createObjSpec:
        workload: object
        objectSpec:
          storage: {s3Spec: {endpoint: "http://h"}}
          stages:
            - name: main
              works: [{workers: 2, totalOps: 10, containers: c(1), objects: c(1), operations: [{type: read, ratio: 50}, {type: read, name: %s, ratio: 30}, {type: read, name: small, ratio: 20}]}]
  slos:
    - name: fast
      expr: p99(o.large.service) < duration("1s") && p99(o.small) < duration("1s") && p99(o.read) < duration("1s")
`
	for name, want := range map[string]string{
		"large":   "",
		"small":   `operations[2].name: another operation of the work is called "small" (give each a name of its own, or none)`,
		"service": `operations[1].name: "service" is the name of a phase`,
		"read":    `operations[1].name: "read" is the default name of an operation`,
	} {
		p, said := onCluster(t, Input{Classes: someClasses(), Image: "cnsbench"}, fmt.Sprintf(spec, name))
		if want == "" {
			if p == nil {
				t.Error(said)
			}
		} else if !strings.Contains(said, want) {
			t.Errorf("not said: %s\n%s", want, said)
		}
	}
}

// TestObjectBudget checks that the budget has the load of an object workload on its
// store for each trigger.
func TestObjectBudget(t *testing.T) {
	p, problems := Load(t.Context(), withObjects(Input{Capabilities: local(), Files: []File{{Name: "x.yaml", Data: []byte(head + `spec:
  runtime: 30s
  actions:
    - name: o
      rateName: r
      createObjSpec:
        workload: object
        count: 2
        objectSpec:
          storage: {nullSpec: {}}
          stages:
            - {name: init, works: [{type: init, workers: 1, containers: "r(1,4)"}]}
            - {name: prepare, works: [{type: prepare, workers: 4, containers: "r(1,4)", objects: "r(1,100)", sizes: c(10)KB}]}
            - {name: rest, closureDelay: 1s}
            - {name: main, works: [{workers: 4, runtime: 10s, rampUp: 2s, rate: constant(100), containers: c(1), objects: "u(1,100)", operations: [{type: read, ratio: 50}, {type: write, ratio: 50, sizes: c(4)KB, checks: [readAfterWrite, listAfterWrite]}]}]}
            - {name: fast, works: [{workers: 4, runtime: 10s, containers: c(1), objects: "u(1,100)", operations: [{type: head}]}]}
  rates: [{name: r, constantRateSpec: {interval: 10s}}]
`)}}}))
	if p == nil {
		t.Fatal(problems)
	}
	want := []ObjectBudget{{Action: "o", Times: 3, Works: []workload.StoreBudget{
		{Stage: "init", Work: "init", Requests: map[string]float64{string(model.MakeContainer): 12}},
		{Stage: "prepare", Work: "prepare", Requests: map[string]float64{string(model.Write): 400}, Sent: 4e6},
		{Stage: "main", Work: "normal", Requests: map[string]float64{string(model.Read): 1200, string(model.Write): 600,
			string(model.List): 600}, Sent: 2.4e6, Received: 6.6e6},
		{Stage: "fast", Work: "normal", Requests: map[string]float64{string(model.Head): 0}, Open: true},
	}}}
	if diff := cmp.Diff(want, p.Budget.Objects); diff != "" {
		t.Error(diff)
	}
	if text, err := json.Marshal(p.Budget); err != nil || !strings.Contains(string(text), `"Sent":4000000`) {
		t.Errorf("%s %v", text, err)
	}
}
