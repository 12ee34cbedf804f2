package storagedriver_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"sigs.k8s.io/yaml"
)

// sanityEnv holds the class for the process that runs the conformance suite. Ginkgo runs one suite per process.
const sanityEnv = "STORAGEDRIVER_TEST_SANITY"

// TestCephSanity checks the drivers with csi-sanity, with secrets.
func TestCephSanity(t *testing.T) {
	c := cephUp(t)
	t.Run("classes", func(t *testing.T) {
		for _, name := range []string{"cephfs-r1", "rbd-r1", "rbd-r1/block"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				runSanity(t, name)
			})
		}
	})
	nothingLeft(t, c)
}

func runSanity(t *testing.T, name string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestSanityChild$", "-test.v")
	cmd.Env = append(os.Environ(), sanityEnv+"="+name)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("csi-sanity: %v\n%s", err, out)
	}
	ran := regexp.MustCompile(`Ran (\d+) of \d+ Specs in .*`).FindSubmatch(out)
	if ran == nil || bytes.Equal(ran[1], []byte("0")) {
		t.Fatalf("csi-sanity ran nothing:\n%s", out)
	}
	t.Logf("%s", ran[0])
}

// TestSanityChild runs the suite in a separate process.
func TestSanityChild(t *testing.T) {
	name := os.Getenv(sanityEnv)
	if name == "" {
		t.Skip("run by the tests of each cluster")
	}
	d := driverOf(t, name)
	config := sanity.NewTestConfig()
	config.Address = "unix://" + d.socket
	// As the sidecars do: the suite itself repeats nothing, and a clone of CephFS takes its time.
	config.DialOptions = []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(repeatAborted)}
	config.ControllerDialOptions = config.DialOptions
	config.TargetPath, config.StagingPath = filepath.Join(t.TempDir(), "target"), filepath.Join(t.TempDir(), "staging")
	config.TestVolumeSize, config.TestVolumeExpandSize = 64*mib, 128*mib
	config.TestVolumeAccessType = map[bool]string{false: "mount", true: "block"}[d.block]
	config.TestVolumeParameters, config.TestSnapshotParameters = d.class.own(), d.snapshots.own()
	config.SecretsFile = secretsFile(t, d.secrets)
	config.IdempotentCount = 2
	sanity.Test(t, config)
}

func repeatAborted(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker,
	opts ...grpc.CallOption) error {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		err := call(ctx, method, req, reply, conn, opts...)
		if status.Code(err) != codes.Aborted || time.Now().After(deadline) {
			return err
		}
	}
}

// secretsFile writes the secret for every call for which the suite knows one.
func secretsFile(t *testing.T, secret map[string]string) string {
	t.Helper()
	text, err := yaml.Marshal(map[string]map[string]string{
		"CreateVolumeSecret": secret, "DeleteVolumeSecret": secret, "ControllerExpandVolumeSecret": secret,
		"ControllerValidateVolumeCapabilitiesSecret": secret, "NodeStageVolumeSecret": secret,
		"CreateSnapshotSecret": secret, "DeleteSnapshotSecret": secret,
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "secrets.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
