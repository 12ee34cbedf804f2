package awkwarddriver_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"

	"github.com/cnsbench/cnsbench/test/awkwarddriver"
)

// The variables hold the access type and the switches for the process that runs the conformance suite. Ginkgo runs one
// suite per process.
const (
	sanityAccessEnv = "AWKWARDDRIVER_TEST_SANITY_ACCESS"
	sanityFlagsEnv  = "AWKWARDDRIVER_TEST_SANITY_FLAGS"
)

// TestSanity checks the driver with csi-sanity, with all switches off and with those that CSI allows.
func TestSanity(t *testing.T) {
	for _, tt := range []struct{ name, access, flags string }{
		{"mount", "mount", ""}, {"block", "block", ""},
		{"less offered", "mount", "-no-list-snapshots -no-list-volumes -no-node-expansion -no-stage -no-attach -no-block " +
			"-no-groups -long-ids"},
		{"mounted", "mount", "-mounts -round-up=1Mi"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(tt.flags, "-mounts") && os.Geteuid() != 0 {
				t.Skip("bind mounts need root")
			}
			cmd := exec.Command(os.Args[0], "-test.run=^TestSanityChild$", "-test.v")
			cmd.Env = append(os.Environ(), sanityAccessEnv+"="+tt.access, sanityFlagsEnv+"="+tt.flags)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("csi-sanity: %v\n%s", err, out)
			}
			ran := regexp.MustCompile(`Ran (\d+) of \d+ Specs`).FindSubmatch(out)
			if ran == nil || bytes.Equal(ran[1], []byte("0")) {
				t.Fatalf("csi-sanity ran nothing:\n%s", out)
			}
			t.Logf("%s", ran[0])
		})
	}
}

// TestSanityChild runs the suite in a separate process for TestSanity.
func TestSanityChild(t *testing.T) {
	access := os.Getenv(sanityAccessEnv)
	if access == "" {
		t.Skip("run by TestSanity")
	}
	d := serve(t, awkwarddriver.Config{}, strings.Fields(os.Getenv(sanityFlagsEnv))...)
	config := sanity.NewTestConfig()
	config.Address = "unix://" + d.socket
	config.TargetPath, config.StagingPath = filepath.Join(t.TempDir(), "target"), filepath.Join(t.TempDir(), "staging")
	config.TestVolumeSize, config.TestVolumeExpandSize = 32<<20, 64<<20
	config.TestVolumeAccessType = access
	config.TestVolumeMutableParameters = map[string]string{"iops": "1000"}
	config.IdempotentCount = 3
	sanity.Test(t, config)
	d.nothingLeft(t)
}
