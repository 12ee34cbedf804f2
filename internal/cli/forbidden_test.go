package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/test/apitest"
)

// TestForbidden: what the user may not read is unknown. No command fails for it without naming it, and none takes it for
// empty.
func TestForbidden(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bench.yaml")
	if err := os.WriteFile(file, []byte(`apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: forbidden}
spec:
  runtime: 5s
  actions:
    - {name: vol, rateName: r, createObjSpec: {volume: {storageClass: standard, size: 64Mi}}}
    - {name: snap, rateName: r, snapshotSpec: {actionName: vol, snapshotClass: snaps}}
  rates: [{name: r, constantRateSpec: {interval: 1s}}]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	commands := map[string]struct {
		args []string
		code int // without a right that it needs
	}{
		"init":      {[]string{"init", "--yes", "--storage-class", "standard", "-"}, exitOK},
		"init any":  {[]string{"init", "--yes", "-"}, exitUsage},
		"validate":  {[]string{"validate", file}, exitOK},
		"render":    {[]string{"validate", "--render", file}, exitOK},
		"dry run":   {[]string{"run", "--dry-run", file}, exitOK},
		"scorecard": {[]string{"scorecard", "--dry-run"}, exitUsage},
		"study":     {[]string{"study", "run", "--dry-run", file}, exitOK},
		"cleanup":   {[]string{"cleanup", "--run", "abc"}, exitFailed},
	}
	for name, c := range commands {
		for _, resource := range []string{"", "storageclasses", "volumesnapshotclasses", "volumeattributesclasses", "nodes",
			"configmaps", "pods", "persistentvolumes", "persistentvolumeclaims", "leases", "csidrivers",
			"volumesnapshotcontents", "volumesnapshots"} {
			t.Run(name+" without "+resource, func(t *testing.T) {
				server := apitest.Start(t)
				server.Add(t, "/apis/storage.k8s.io/v1/storageclasses/standard", `{"provisioner":"driver.example.io"}`)
				server.Add(t, "/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses/snaps",
					`{"driver":"driver.example.io","deletionPolicy":"Delete"}`)
				server.Forbidden = resource
				code, out, errs := call(append(c.args, "--engine", "kubernetes", "--kubeconfig", server.Kubeconfig)...)
				t.Logf("exit %d\n%s\n%s", code, out, errs)
				if code != exitOK && (code != c.code || resource == "" || !namesRight(out+errs, resource)) {
					t.Errorf("exit %d, which does not name %q", code, resource)
				}
				if name == "validate" && strings.HasSuffix(resource, "classes") && resource != "volumeattributesclasses" &&
					!namesRight(errs, resource) {
					t.Error("it does not say what it could not check")
				}
				for _, untrue := range []string{"no StorageClass", "not found", "there are no"} {
					if strings.Contains(out+errs, untrue) {
						t.Errorf("it takes what it may not read for empty: %q", untrue)
					}
				}
			})
		}
	}
}

// namesRight says whether a text names a resource, also as a kind.
func namesRight(text, resource string) bool {
	return strings.Contains(strings.ToLower(text), strings.TrimSuffix(strings.TrimSuffix(resource, "es"), "s"))
}
