package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/hack/testbed/internal/image"
)

// TestApplications runs each application in a chroot with the files of its image alone, as the image's user, and looks
// for a text in its output.
func TestApplications(t *testing.T) {
	const wait = `i=0; until %s; do i=$((i+1)); [ $i -lt 300 ]; sleep 0.1; done; `
	tests := map[string]struct{ script, want string }{
		"postgresql": {`
    export LC_ALL=C PATH=/usr/lib/postgresql/15/bin:/usr/bin HOME=/tmp PGHOST=/tmp PGUSER=postgres
    initdb --pgdata=/tmp/data --username=postgres --auth=trust --locale=C --no-sync >/dev/null
    postgres -D /tmp/data -c listen_addresses= -c unix_socket_directories=/tmp &
    server=$!
    trap "kill $server; wait" EXIT
    ` + strings.ReplaceAll(wait, "%s", "pg_isready --quiet") + `
    createdb bench
    pgbench --initialize --quiet --scale=1 bench
    pgbench --transactions=10 bench`, "number of transactions actually processed: 10/10"},
		"ycsb": {`
    export LC_ALL=C PATH=/usr/lib/postgresql/15/bin:/usr/bin HOME=/tmp PGHOST=/tmp PGUSER=postgres
    initdb --pgdata=/tmp/data --username=postgres --auth=trust --locale=C --no-sync >/dev/null
    postgres -D /tmp/data -c listen_addresses= -c unix_socket_directories=/tmp &
    server=$!
    mkdir /tmp/ferretdb
    ferretdb -sqlite-url file:/tmp/ferretdb/ -socket /tmp/ferretdb.sock &
    trap "kill $server $!; wait" EXIT
    ` + strings.ReplaceAll(wait, "%s", "pg_isready --quiet") + `
    ` + strings.ReplaceAll(wait, "%s", "ferretdb -ping -socket /tmp/ferretdb.sock") + `
    createdb ycsb
    psql --quiet --command=CHECKPOINT ycsb
    sync --file-system /tmp
    go-ycsb load pg -p pg.host= -p pg.user=postgres -p pg.db=ycsb -p recordcount=10 | grep "^INSERT .*Count: 10,"
    go-ycsb load mongodb -p mongodb.url=mongodb://%2Ftmp%2Fferretdb.sock/ycsb -p recordcount=10`, "Count: 10,"},
		"redis": {`
    mkdir -p /tmp/data
    redis-server --port 0 --unixsocket /tmp/redis --dir /tmp/data --appendonly yes >/dev/null &
    server=$!
    trap "kill $server; wait" EXIT
    ` + strings.ReplaceAll(wait, "%s", `test "$(redis-cli -s /tmp/redis PING)" = PONG`) + `
    sync --file-system /tmp
    echo set,get | tr , " " | cat | grep set
    date +%s.%N
    redis-benchmark -s /tmp/redis -n 100 -t set`, "100 requests completed"},
		"etcd": {`
    cd /tmp
    etcd --data-dir /tmp/data --listen-client-urls unix://etcd:0 --advertise-client-urls unix://etcd:0 \
        --listen-peer-urls unix://peer:0 --initial-advertise-peer-urls unix://peer:0 \
        --initial-cluster default=unix://peer:0 >/dev/null 2>&1 &
    server=$!
    trap "kill $server; wait" EXIT
    ` + strings.ReplaceAll(wait, "%s", `curl --silent --unix-socket etcd:0 http://etcd/health | grep -q true`) + `
    sync --file-system /tmp
    date +%s.%N
    etcd-benchmark --endpoints=unix://etcd:0 put --total=100`, "Requests/sec:"},
		"mariadb": {`
    PATH=/usr/bin:/usr/sbin
    mariadb-install-db --no-defaults --basedir=/usr --datadir=/tmp/data --skip-test-db --force \
        --auth-root-authentication-method=socket
    echo "CREATE DATABASE sbtest;
CREATE USER sbtest@localhost;
GRANT ALL ON sbtest.* TO sbtest@localhost;" >/tmp/init.sql
    mariadbd --no-defaults --basedir=/usr --datadir=/tmp/data --socket=/tmp/mariadb --skip-networking \
        --init-file=/tmp/init.sql >/tmp/log 2>&1 &
    server=$!
    trap "kill $server; wait; cat /tmp/log" EXIT
    ` + strings.ReplaceAll(wait, "%s", `mariadb --no-defaults --socket=/tmp/mariadb --user=sbtest --execute="SELECT 1" sbtest`) + `
    set -- oltp_read_write --mysql-socket=/tmp/mariadb --table-size=100
    sysbench "$@" prepare
    df -Pk /tmp; sync --file-system /tmp; date +%s.%N
    sysbench "$@" --time=1 run`, "transactions:"},
		"megahit": {`cd /tmp
    df -Pk .
    awk 'BEGIN { x = 1; for (i = 0; i < 5000; i++) { x = x * 16807 % 2147483647; g = g substr("ACGT", x % 4 + 1, 1) }
        for (n = 0; n < 2000; n++) print ">" n "\n" substr(g, n * 2 + 1, 100) }' >reads.fa
    sync reads.fa
    megahit --read reads.fa --k-list 21,29 --num-cpu-threads 1 --memory 1e8 2>&1`, "ALL DONE."},
		"nginx": {`
    cd /tmp
    echo 'daemon off; pid /tmp/pid; error_log stderr; events {}
    http { access_log off; client_body_temp_path /tmp/1; proxy_temp_path /tmp/2; fastcgi_temp_path /tmp/3;
    uwsgi_temp_path /tmp/4; scgi_temp_path /tmp/5; server { listen 127.9.8.7:27081; root /tmp; } }' >/tmp/conf
    nginx -p /tmp -c /tmp/conf &
    server=$!
    trap "kill $server; wait" EXIT
    ` + strings.ReplaceAll(wait, "%s", `curl --silent --fail http://127.9.8.7:27081/conf`) + `
    echo x | cksum; sync --file-system /tmp; date +%s.%N
    wrk --threads 1 --connections 1 --duration 1s http://127.9.8.7:27081/conf`, "Requests/sec:"},
		"rocksdb": {`date +%s.%N; df -Pk /tmp; sleep 0.01; touch /tmp/x
db_bench --db=/tmp/db --benchmarks=fillseq,readrandom --num=1000`, "(1000 of 1000 found)"},
		"sysbench": {`mkdir /tmp/x; cd /tmp/x; date +%s.%N; df -Pk .
sysbench fileio --file-num=2 --file-total-size=1M prepare; sync test_file.0; touch y
sysbench fileio --file-num=2 --file-total-size=1M --file-test-mode=rndrd --time=1 run`, "total number of events:"},
	}
	for name, a := range applications {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt, ok := tests[name]
			if !ok {
				t.Fatal("it has no test")
			}
			a.inImage(t, tt.script, tt.want)
		})
	}
}

func (a *application) inImage(t *testing.T, script, want string) {
	t.Helper()
	if !a.installed() {
		t.Skipf("%s is missing (make workload-servers)", a.program)
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root: chroot")
	}
	i, err := a.make()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := image.Write(filepath.Join(dir, "i.tar"), a.image, i); err != nil {
		t.Fatal(err)
	}
	const unpack = `set -e
cd "$1"
mkdir layout root
tar -xf i.tar -C layout
for blob in layout/blobs/sha256/*; do
    if tar -tzf $blob >/dev/null 2>&1; then tar -xzf $blob -C root; fi
done
mkdir -p root/dev/shm root/proc
chmod 1777 root/tmp root/dev/shm
mknod -m 666 root/dev/null c 1 3
mknod -m 666 root/dev/urandom c 1 9
exec chroot --userspec=65532:65532 root /bin/sh -ec "PATH=/usr/bin
$2"
`
	out, err := exec.Command("sh", "-c", unpack, "sh", dir, script).CombinedOutput()
	if err != nil || !strings.Contains(string(out), want) {
		t.Errorf("%v\n%s", err, out)
	}
}
