package metrics

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLimitingFlags(t *testing.T) {
	got := limitingFlags([]string{"/csi-provisioner", "--kube-api-qps=5", "--kube-api-burst", "10", "-timeout=15s",
		"--leader-election", "--csi-address=/s"})
	if diff := cmp.Diff(map[string]string{"kube-api-qps": "5", "kube-api-burst": "10", "timeout": "15s"},
		got); diff != "" {
		t.Error(diff)
	}
}
