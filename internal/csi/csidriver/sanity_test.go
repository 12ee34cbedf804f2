package csidriver

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
)

// The variables hold the socket, backend and access type for the process that runs the conformance suite. Ginkgo runs
// one suite per process.
const (
	sanitySocketEnv  = "CSIDRIVER_TEST_SANITY_SOCKET"
	sanityBackendEnv = "CSIDRIVER_TEST_SANITY_BACKEND"
	sanityAccessEnv  = "CSIDRIVER_TEST_SANITY_ACCESS"
)

// TestSanity checks every backend with csi-sanity.
func TestSanity(t *testing.T) {
	for _, tt := range []struct{ backend, access string }{
		{"null", "mount"}, {"null", "block"}, {"hostdir", "mount"}, {"loopfile", "mount"}, {"loopfile",
			"block"}, {"btrfs", "mount"},
	} {
		t.Run(tt.backend+"/"+tt.access, func(t *testing.T) {
			t.Parallel()
			p := start(t, Options{Backend: tt.backend, PoolSize: 4 * gib})
			cmd := exec.Command(os.Args[0], "-test.run=^TestSanityChild$", "-test.v")
			cmd.Env = append(os.Environ(), sanitySocketEnv+"="+p.config.Socket, sanityBackendEnv+"="+tt.backend,
				sanityAccessEnv+"="+tt.access)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("csi-sanity: %v\n%s", err, out)
			}
			ran := regexp.MustCompile(`Ran (\d+) of \d+ Specs`).FindSubmatch(out)
			if ran == nil || bytes.Equal(ran[1], []byte("0")) {
				t.Fatalf("csi-sanity ran nothing:\n%s", out)
			}
			t.Logf("%s", ran[0])
			if lists := leftIn(p); lists != 0 {
				t.Errorf("csi-sanity left %d volumes and snapshots", lists)
			}
		})
	}
}

// leftIn returns the number of objects in the driver's lists.
func leftIn(p *process) int {
	p.t.Helper()
	vols := ok(p.ListVolumes(p.t.Context(), &csi.ListVolumesRequest{}))(p.t)
	snaps := ok(p.ListSnapshots(p.t.Context(), &csi.ListSnapshotsRequest{}))(p.t)
	return len(vols.GetEntries()) + len(snaps.GetEntries())
}

// TestSanityChild runs the suite in a separate process for TestSanity.
func TestSanityChild(t *testing.T) {
	socket := os.Getenv(sanitySocketEnv)
	if socket == "" {
		t.Skip("run by TestSanity")
	}
	config := sanity.NewTestConfig()
	config.Address = "unix://" + socket
	config.TargetPath, config.StagingPath = filepath.Join(t.TempDir(), "target"), filepath.Join(t.TempDir(), "staging")
	config.TestVolumeSize, config.TestVolumeExpandSize = 32*mib, 64*mib
	config.TestVolumeAccessType = os.Getenv(sanityAccessEnv)
	config.IdempotentCount = 3
	switch os.Getenv(sanityBackendEnv) {
	case "null":
		config.TestVolumeMutableParameters = map[string]string{"iops": "1000"}
	case "loopfile":
		config.TestVolumeMutableParameters = map[string]string{"readAheadKiB": "64"}
	}
	sanity.Test(t, config)
}
