package plan

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/engine/sidecar"
)

const cephClass = `apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: csi-cephfs-sc}
provisioner: cephfs.csi.ceph.com
parameters:
  clusterID: b9127830-b0cc-4e34-aa47-9d1a2e9949a8
  fsName: myfs
  csi.storage.k8s.io/provisioner-secret-name: csi-cephfs-secret
  csi.storage.k8s.io/provisioner-secret-namespace: ceph
`

const cephSecret = `---
apiVersion: v1
kind: Secret
metadata: {name: csi-cephfs-secret, namespace: ceph}
stringData: {userID: admin, userKey: AQDNotARealKey==}
data: {adminID: YWRtaW4=}
`

const cephVolume = `spec:
  actions:
    - {name: v, createObjSpec: {volume: {storageClass: csi-cephfs-sc}}}
---
`

// TestSecrets takes Secrets of CSI drivers beside a Benchmark, and keeps them out of records.
func TestSecrets(t *testing.T) {
	in := Input{Endpoints: map[string]string{"cephfs.csi.ceph.com": "/s"}}
	p := good(t, in, cephVolume+cephClass+cephSecret)
	values, ok := p.Secrets.Of(sidecar.Reference{Namespace: "ceph", Name: "csi-cephfs-secret"})
	if !ok || values["userKey"] != "AQDNotARealKey==" || values["adminID"] != "admin" {
		t.Errorf("Secret %v, %v", values, ok)
	}
	if len(p.SecretFiles) != 1 {
		t.Errorf("files %v", p.SecretFiles)
	}
	record, err := json.Marshal(p.Record())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(record), "AQDNotARealKey") {
		t.Errorf("the record has the Secret: %s", record)
	}
}

// TestSecretProblems names the Secrets and parameters of classes that would fail at the driver or a sidecar.
func TestSecretProblems(t *testing.T) {
	in := Input{Endpoints: map[string]string{"cephfs.csi.ceph.com": "/s"}}
	for name, tt := range map[string]struct{ text, want string }{
		"missing": {cephVolume + cephClass, "names Secret ceph/csi-cephfs-secret, which is not here"},
		"other namespace": {cephVolume + cephClass + strings.ReplaceAll(cephSecret, "namespace: ceph", "namespace: other"),
			"names Secret ceph/csi-cephfs-secret, which is not here"},
		"half a reference": {cephVolume + strings.Replace(cephClass, "  csi.storage.k8s.io/provisioner-secret-namespace: ceph\n",
			"", 1) + cephSecret, "provisioner-secret-namespace is missing"},
		"unknown parameter": {cephVolume + strings.Replace(cephClass, "fsName: myfs", "csi.storage.k8s.io/fsType: ext4", 1) +
			cephSecret, "unknown parameter csi.storage.k8s.io/fsType"},
		"other driver": {cephVolume + strings.Replace(cephClass, "cephfs.csi.ceph.com", "rbd.csi.ceph.com", 1) + cephSecret,
			`is of driver "rbd.csi.ceph.com", which engine`},
	} {
		t.Run(name, func(t *testing.T) {
			in.Files = []File{{Name: "x.yaml", Data: []byte(head + tt.text)}}
			_, problems := load(t, in)
			if len(problems) != 1 || !strings.Contains(problems[0].String(), tt.want) {
				t.Errorf("%v; want %s", problems, tt.want)
			}
		})
	}
}

// TestWithoutSecrets removes documents of kind Secret from the text of a file, in any notation, and nothing else.
func TestWithoutSecrets(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"none":       {cephClass, cephClass},
		"last":       {cephClass + cephSecret, cephClass + "---\n# Secret ceph/csi-cephfs-secret is not recorded.\n"},
		"first":      {cephSecret[4:] + "---\n" + cephClass, "# Secret ceph/csi-cephfs-secret is not recorded.\n---\n" + cephClass},
		"JSON":       {`{"kind": "Secret", "metadata": {"name": "a"}, "stringData": {"k": "x"}}`, "# Secret a is not recorded.\n"},
		"broken":     {"kind: Secret\n\tdata: {k: eA==}\n", "# Secret  is not recorded.\n"},
		"in a text":  {"a: |\n  kind: Secret\n", "a: |\n  kind: Secret\n"},
		"a ref's":    {"kind: ConfigMap\ndata: {a: b} # kind: Secret\n", "kind: ConfigMap\ndata: {a: b} # kind: Secret\n"},
		"CRLF marks": {"kind: ConfigMap\r\n---\r\nkind: Secret\r\nmetadata: {name: a}\r\n", "kind: ConfigMap\r\n---\r\n# Secret a is not recorded.\n"},
	} {
		if got := string(WithoutSecrets([]byte(tt.text))); got != tt.want {
			t.Errorf("%s: %q\nwant %q", name, got, tt.want)
		}
	}
}

// TestEndpoints gives classes to the drivers behind sockets by their provisioner, and leaves the others to the built-in
// drivers.
func TestEndpoints(t *testing.T) {
	text := `spec:
  csiEndpoints: [{provisioner: rbd.csi.ceph.com, socket: "unix:///rbd"}]
  actions:
    - {name: v, createObjSpec: {volume: {storageClass: csi-cephfs-sc}}}
    - {name: w, createObjSpec: {volume: {storageClass: hostdir}}}
    - {name: x, createObjSpec: {volume: {storageClass: rbd}}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: rbd}
provisioner: rbd.csi.ceph.com
---
` + cephClass + cephSecret
	p := good(t, Input{Endpoints: map[string]string{"cephfs.csi.ceph.com": "/cephfs"}}, text)
	for class, want := range map[string]string{"csi-cephfs-sc": "/cephfs", "hostdir": "", "rbd": "unix:///rbd"} {
		if got := p.Endpoints[p.StorageClasses[class].Provisioner]; got != want {
			t.Errorf("class %s is at %q, want %q", class, got, want)
		}
	}
	one := good(t, Input{Endpoints: map[string]string{"a.example": "/s"}}, gp3)
	if sc, snap := one.StorageClasses["gp3"], one.SnapshotClasses["snap"]; sc.Provisioner != "a.example" || snap.Driver != "a.example" {
		t.Errorf("classes without a document: %+v, %+v; want the only driver's", sc, snap)
	}
}
