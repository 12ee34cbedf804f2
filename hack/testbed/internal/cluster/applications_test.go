package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/hack/testbed/internal/image"
)

// TestPostgreSQLImage starts a server from the files of the image alone, in a chroot, and runs pgbench.
func TestPostgreSQLImage(t *testing.T) {
	a := applications["postgresql"]
	if !a.installed() {
		t.Skipf("needs PostgreSQL 15 (make workload-servers): %s is missing", a.program)
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root: chroot")
	}
	i, err := a.make()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	tar := filepath.Join(dir, "i.tar")
	if _, err := image.Write(tar, a.image, i); err != nil {
		t.Fatal(err)
	}
	const script = `set -e
cd "$1"
mkdir layout root
tar -xf i.tar -C layout
for blob in layout/blobs/sha256/*; do
    if tar -tzf $blob >/dev/null 2>&1; then tar -xzf $blob -C root; fi
done
mkdir -p root/dev root/dev/shm
chmod 1777 root/tmp root/dev/shm
mknod -m 666 root/dev/null c 1 3
mknod -m 666 root/dev/urandom c 1 9
exec chroot --userspec=65532:65532 root /bin/sh -ec '
    export LC_ALL=C PATH=/usr/lib/postgresql/15/bin:/usr/bin HOME=/tmp PGHOST=/tmp PGUSER=postgres
    initdb --pgdata=/tmp/data --username=postgres --auth=trust --locale=C --no-sync >/dev/null
    postgres -D /tmp/data -c listen_addresses= -c unix_socket_directories=/tmp &
    server=$!
    trap "kill $server; wait" EXIT
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
        if pg_isready --quiet; then break; fi
        sleep 1
    done
    createdb bench
    pgbench --initialize --quiet --scale=1 bench
    pgbench --transactions=10 bench
'`
	out, err := exec.Command("sh", "-c", script, "sh", dir).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "number of transactions actually processed: 10/10") {
		t.Errorf("%v\n%s", err, out)
	}
}
