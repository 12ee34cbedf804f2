package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/hack/testbed/internal/image"
)

// TestRedisImage starts a server from the files of the image alone, in a chroot, and runs redis-benchmark.
func TestRedisImage(t *testing.T) {
	if _, err := os.Stat(redisServer); err != nil {
		t.Skipf("needs Redis 7 (make workload-servers): %v", err)
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root: chroot")
	}
	i, err := redisImage()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := image.Write(filepath.Join(dir, "i.tar"), RedisImage, i); err != nil {
		t.Fatal(err)
	}
	const script = `set -e
cd "$1"
mkdir layout root
tar -xf i.tar -C layout
for blob in layout/blobs/sha256/*; do
    if tar -tzf $blob >/dev/null 2>&1; then tar -xzf $blob -C root; fi
done
mkdir -p root/dev
chmod 1777 root/tmp
mknod -m 666 root/dev/null c 1 3
mknod -m 666 root/dev/urandom c 1 9
exec chroot --userspec=65532:65532 root /bin/sh -ec '
    export PATH=/usr/bin
    mkdir -p /tmp/data
    redis-server --port 0 --unixsocket /tmp/redis --dir /tmp/data --appendonly yes >/dev/null &
    server=$!
    trap "kill $server; wait" EXIT
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        if test "$(redis-cli -s /tmp/redis PING)" = PONG; then break; fi
        sleep 1
    done
    sync --file-system /tmp
    touch /tmp/loaded
    echo set,get | tr , " " | cat | grep set
    date +%s.%N
    redis-benchmark -s /tmp/redis -n 100 -t set
'`
	out, err := exec.Command("sh", "-c", script, "sh", dir).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "100 requests completed") {
		t.Errorf("%v\n%s", err, out)
	}
}
