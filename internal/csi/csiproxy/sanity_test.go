package csiproxy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver"
	"github.com/cnsbench/cnsbench/internal/csi/csiproxy"
)

const sanityEnv = "CSIPROXY_TEST_SANITY"

// TestSanity checks that the conformance suite runs the same number of specs with the same results through a proxy as
// without one.
func TestSanity(t *testing.T) {
	dir := shortDir(t)
	socket := filepath.Join(dir, "csi.sock")
	startDriver(t, socket, csidriver.Options{})
	direct := sane(t, socket)
	p, _ := startProxy(t, csiproxy.Options{TakeOver: socket})
	waitFor(t, "the take-over", func() bool { return exists(socket + ".cnsbench-upstream") })
	var w watcher
	w.follow(t, serveRecords(t, p))
	if proxied := sane(t, socket); proxied != direct {
		t.Errorf("through the proxy: %s; without: %s", proxied, direct)
	}
	waitFor(t, "the records of all calls", func() bool { return len(w.of("", true)) == len(w.of("", false)) })
	if n := len(w.of("", true)); n < 300 || len(w.lacks()) > 0 {
		t.Errorf("%d calls were recorded, gaps: %v", n, w.lacks())
	}
}

// sane runs the suite in a separate process, as Ginkgo requires.
func sane(t *testing.T, socket string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestSanityChild$", "-test.v")
	cmd.Env = append(os.Environ(), sanityEnv+"="+socket)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("csi-sanity: %v\n%s", err, out)
	}
	ran := regexp.MustCompile(`Ran [1-9]\d* of \d+ Specs`).Find(out)
	result := regexp.MustCompile(`\d+ Passed.*\d+ Skipped`).Find(out)
	if ran == nil || result == nil {
		t.Fatalf("csi-sanity ran nothing:\n%s", out)
	}
	return string(ran) + ": " + regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(string(result), "")
}

// TestSanityChild runs the suite in a separate process for TestSanity.
func TestSanityChild(t *testing.T) {
	socket := os.Getenv(sanityEnv)
	if socket == "" {
		t.Skip("run by TestSanity")
	}
	config := sanity.NewTestConfig()
	config.Address = "unix://" + socket
	config.TargetPath, config.StagingPath = filepath.Join(t.TempDir(), "target"), filepath.Join(t.TempDir(), "staging")
	config.TestVolumeSize, config.TestVolumeExpandSize = 32<<20, 64<<20
	config.TestVolumeMutableParameters = map[string]string{"iops": "1000"}
	config.IdempotentCount = 3
	sanity.Test(t, config)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
