package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/hack/testbed/internal/image"
)

// TestRocksDBImage runs db_bench from the files of the image alone, in a chroot.
func TestRocksDBImage(t *testing.T) {
	inImage(t, dbBench, RocksDBImage, rocksDBImage, `date +%s.%N; df -Pk /tmp; sleep 0.01; touch /tmp/x
db_bench --db=/tmp/db --benchmarks=fillseq,readrandom --num=1000`, "(1000 of 1000 found)")
}

// inImage runs a script of sh in a chroot with the files of an image alone, as its user, and looks for a text in its
// output. It skips the test without the program.
func inImage(t *testing.T, program, name string, made func() (image.Image, error), script, want string) {
	t.Helper()
	if _, err := os.Stat(program); err != nil {
		t.Skipf("needs %s (make workload-servers): %v", program, err)
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root: chroot")
	}
	i, err := made()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := image.Write(filepath.Join(dir, "i.tar"), name, i); err != nil {
		t.Fatal(err)
	}
	const unpack = `set -e
cd "$1"
mkdir layout root
tar -xf i.tar -C layout
for blob in layout/blobs/sha256/*; do
    if tar -tzf $blob >/dev/null 2>&1; then tar -xzf $blob -C root; fi
done
mkdir -p root/dev root/proc
chmod 1777 root/tmp
mknod -m 666 root/dev/null c 1 3
mknod -m 666 root/dev/urandom c 1 9
exec chroot --userspec=65532:65532 root /bin/sh -ec "PATH=/usr/bin; $2"
`
	out, err := exec.Command("sh", "-c", unpack, "sh", dir, script).CombinedOutput()
	if err != nil || !strings.Contains(string(out), want) {
		t.Errorf("%v\n%s", err, out)
	}
}
