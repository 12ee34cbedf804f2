//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/test/servers"
)

// eachStore is a Benchmark in which two instances do all object operations. The verbs stand for its
// storage and for the operations that only this storage offers.
const eachStore = head + `spec:
  actions:
    - name: objects
      createObjSpec:
        workload: object
        count: %d
        objectSpec:
          storage: %s
          stages:
            - {name: init, works: [{type: init, workers: 2, containers: "r(1,2)", containerPrefix: cnsbench-e2e-}]}
            - {name: prepare, works: [{type: prepare, workers: 3, containers: "r(1,2)", objects: "r(1,20)", sizes: c(8)KiB, containerPrefix: cnsbench-e2e-}]}
            - name: main
              works:
                - workers: 4
                  totalOps: 400
                  containers: u(1,2)
                  containerPrefix: cnsbench-e2e-
                  maxFailuresPerMillion: 0
                  operations:
                    - {type: read, ratio: 30, objects: "u(1,20)", verify: true}
                    - {type: read, ratio: 10, objects: "u(1,20)", length: 4Ki, within: 8Ki, verify: true}
                    - {type: write, ratio: 30, objects: "u(21,40)", sizes: "u(4,16)KiB", checks: [readAfterWrite, listAfterWrite]}
                    - {type: head, ratio: 10, objects: "u(1,20)"}
                    - {type: list, ratio: 10, maxKeys: 100}
                    - {type: copy, ratio: 10, objects: "u(1,20)"}
            - name: parts
              works: [{workers: 2, totalOps: 4, containers: c(1), containerPrefix: cnsbench-e2e-, maxFailuresPerMillion: 0, operations: [{type: multipart, objects: "u(1,4)", objectPrefix: large, sizes: c(11)MiB}]}]
            - name: files
              works: [{workers: 2, totalOps: 10, containers: c(2), containerPrefix: cnsbench-e2e-, maxFailuresPerMillion: 0, operations: [{type: filewrite, files: %q, fileSelection: inOrder}]}]
            - name: clean
              works:
                - {name: objects, type: cleanup, workers: 3, containers: "r(1,2)", objects: "r(1,40)", containerPrefix: cnsbench-e2e-}
                - {name: copies, type: cleanup, workers: 3, containers: "r(1,2)", objects: "r(1,20)", objectPrefix: copy-myobjects, containerPrefix: cnsbench-e2e-}
                - {name: large, type: cleanup, workers: 1, containers: c(1), objects: "r(1,4)", objectPrefix: large, containerPrefix: cnsbench-e2e-}
                - {name: files, type: cleanup, workers: 1, containers: c(2), objects: "r(1,3)", objectPrefix: file, containerPrefix: cnsbench-e2e-}
            - {name: dispose, works: [{type: dispose, workers: 1, containers: "r(1,2)", containerPrefix: cnsbench-e2e-}]}
  slos:
    - {name: reads, expr: 'count(objects["main.read"]) > 50.0 && count(objects["prepare.write"]) == 40.0'}
`

// stored is an object store that a Benchmark uses.
type stored struct {
	spec   string // the storage; %s or %q stands for a file of credentials or certificates
	keys   string // content of this file; empty: no file
	env    []string
	secret string // must not be in the bundle
	alone  bool   // supports only one instance
	asUser bool   // run by an unprivileged user
}

// does runs all object operations and checks that they were done.
func (s stored) does(t *testing.T) {
	needRoot(t)
	b := newBox(t)
	if s.asUser {
		b.asNobody()
	}
	spec, count := s.spec, 2
	if s.alone {
		count = 1
	}
	if s.keys != "" {
		spec = fmt.Sprintf(spec, b.private("keys", s.keys))
	}
	files := b.in("files")
	if err := os.Mkdir(files, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		b.write(fmt.Sprintf("files/file%d", i+1), strings.Repeat("some text. ", 1000*i))
	}
	cmd := b.command(context.Background(), b.cnsbench(),
		b.runArgs(b.write("bench.yaml", fmt.Sprintf(eachStore, count, spec, files)))...)
	cmd.Env = append(cmd.Env, s.env...)
	r := b.finish(t.Context(), cmd).wants(t, 0)
	bundle, err := bundle.Open(b.bundle())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range bundle.Run.Validity {
		if f.Name == "objectsFailed" || f.Name == "inconsistent" || f.Name == "partLost" {
			t.Errorf("%s: %s\n%v", f.Name, f.Evidence, r)
		}
	}
	sums := map[string]float64{}
	for x, err := range bundle.Scalars() {
		if err != nil {
			t.Fatal(err)
		}
		sums[x.Metric] += x.Value
	}
	done := 0.0
	for _, o := range []string{"read", "read-2", "write", "head", "list", "copy"} {
		if done += sums["main."+o+".ok"]; sums["main."+o+".ok"] == 0 || sums["main."+o+".failed"] > 0 {
			t.Errorf("%s: %v ok, %v failed", o, sums["main."+o+".ok"], sums["main."+o+".failed"])
		}
	}
	if done != 400 || sums["parts.multipart.ok"] != 4 || sums["files.filewrite.ok"] != 10 ||
		sums["files.filewrite.bytes"] < 1 || sums["main.write.readAfterWrite.checks"] == 0 ||
		sums["dispose.dispose.ok"] != 2 {
		t.Errorf("%v\n%v", sums, r)
	}
	if s.secret != "" {
		b.nowhere(s.secret)
	}
	b.clean()
}

// TestObjectsOnFiles checks the store with one file per object, on a volume that the run creates.
func TestObjectsOnFiles(t *testing.T) {
	for name, s := range map[string]stored{
		"hostdir":               {spec: `{fileSpec: {storageClass: hostdir, size: 64Mi}}`, alone: true},
		"hostdir, for a user":   {spec: `{fileSpec: {storageClass: hostdir, size: 64Mi}}`, alone: true, asUser: true},
		"a file system, synced": {spec: `{fileSpec: {storageClass: loopfile, size: 512Mi, sync: data}}`, alone: true},
	} {
		t.Run(name, s.does)
	}
}

// TestObjectsOnSwift checks one server by the Swift protocol and by S3, with credentials from a
// file and from the environment.
func TestObjectsOnSwift(t *testing.T) {
	t.Parallel() // most of the time is the start of the servers
	v := servers.ForTest(t, servers.StartSwift)
	swift := fmt.Sprintf("swiftSpec: {authURL: %q, username: %q, policy: %q}", v.AuthURL, servers.SwiftUser,
		servers.SwiftPolicy)
	s3 := fmt.Sprintf("s3Spec: {endpoint: %q}", v.Address)
	token, account, err := v.Token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	byToken := fmt.Sprintf("swiftSpec: {storageURL: %q, policy: %q}", account, servers.SwiftPolicy)
	for name, s := range map[string]stored{
		"a file": {spec: "{" + swift + ", credentials: {file: %q}}",
			keys: "password=" + servers.SwiftPassword + "\n"},
		"S3, from the environment": {spec: "{" + s3 + "}",
			env: []string{"AWS_ACCESS_KEY_ID=" + servers.SwiftUser, "AWS_SECRET_ACCESS_KEY=" + servers.SwiftPassword}},
		"a token in a file": {spec: "{" + byToken + ", credentials: {file: %q}}",
			keys: "token=" + token + "\n", secret: token},
		"a token, from the environment": {spec: "{" + byToken + "}", env: []string{"OS_AUTH_TOKEN=" + token},
			secret: token, asUser: true},
		"the environment of a user": {spec: "{" + swift + "}",
			env: []string{"OS_PASSWORD=" + servers.SwiftPassword}, asUser: true},
	} {
		t.Run(name, s.does)
	}
}

// TestObjectsOnKeystone checks Swift with tokens of a real Keystone.
func TestObjectsOnKeystone(t *testing.T) {
	t.Parallel() // most of the time is the start of the servers
	k := servers.ForTest(t, servers.StartKeystone)
	stored{spec: fmt.Sprintf("{swiftSpec: {authURL: %q, auth: keystonev3, username: %q, project: %q, userDomain: Default, projectDomain: Default, region: one}, credentials: {file: %%q}}",
		k.AuthURL, servers.KeystoneUser, servers.KeystoneProject), keys: "password=" + servers.KeystonePassword +
		"\n"}.does(t)
}

// TestObjectsByHostNames checks virtual-host addressing with a server that takes the bucket from
// the host name.
func TestObjectsByHostNames(t *testing.T) {
	v := servers.ForTest(t, servers.StartVersityHosts)
	stored{spec: fmt.Sprintf("{s3Spec: {endpoint: %q, addressing: virtualHost}}", v.Address),
		env: []string{"AWS_ACCESS_KEY_ID=" + servers.VersityKey,
			"AWS_SECRET_ACCESS_KEY=" + servers.VersitySecret}}.does(t)
}

// TestObjectsOverTLS checks servers whose certificate only caFile certifies.
func TestObjectsOverTLS(t *testing.T) {
	t.Parallel() // most of the time is the start of the servers
	t.Run("S3", func(t *testing.T) {
		v := servers.ForTest(t, servers.StartVersityTLS)
		stored{spec: fmt.Sprintf("{s3Spec: {endpoint: %q, caFile: %q}}", v.Address, v.Cert),
			env: []string{"AWS_ACCESS_KEY_ID=" + servers.VersityKey,
				"AWS_SECRET_ACCESS_KEY=" + servers.VersitySecret}}.does(t)
	})
	t.Run("Swift", func(t *testing.T) {
		v := servers.ForTest(t, servers.StartSwiftTLS)
		stored{spec: fmt.Sprintf("{swiftSpec: {authURL: %q, username: %q, caFile: %q}}", v.AuthURL, servers.SwiftUser,
			v.Cert),
			env: []string{"OS_PASSWORD=" + servers.SwiftPassword}}.does(t)
	})
}

// TestObjectSecretsOfEnvironment checks that credentials that are passed on appear in no file of a
// run and, while it runs, in no process list.
func TestObjectSecretsOfEnvironment(t *testing.T) {
	needRoot(t)
	b := newBox(t)
	address, server := b.nullServer()
	cmd := b.command(context.Background(), b.cnsbench(), b.runArgs(b.write("bench.yaml", head+fmt.Sprintf(`spec:
  actions:
    - name: objects
      createObjSpec:
        workload: object
        count: 2
        objectSpec:
          storage: {s3Spec: {endpoint: %q}}
          stages:
            - name: main
              works: [{workers: 2, runtime: 2s, containers: c(1), operations: [{type: read, objects: "u(1,9)"}]}]
`, address)))...)
	cmd.Env = append(cmd.Env, "AWS_ACCESS_KEY_ID=somebody", "AWS_SECRET_ACCESS_KEY="+secretKey)
	l := b.launch(cmd)
	l.child("object", "part")
	for _, p := range runningProcesses() {
		if strings.Contains(p.command, secretKey) {
			t.Errorf("everybody can see %s", p.command)
		}
	}
	l.wait().wants(t, 0)
	server.kill()
	b.nowhere(secretKey)
	b.clean()
}
