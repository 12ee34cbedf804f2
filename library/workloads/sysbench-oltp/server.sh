# Starts MariaDB on the volume. It listens on a socket in the pod only. The user sbtest has rights to its database, and
# may flush tables; the administrator can log in as the user of the server only.
set -eu
data=/data/mariadb
set -- --no-defaults --basedir={{basedir}} --user="$(id -u)" # without --user root is refused (engine local)
if [ ! -e $data ]; then
    rm -rf $data.new # half made by a pod that was killed
    mariadb-install-db "$@" --datadir=$data.new --skip-test-db --force \
        --auth-root-authentication-method=socket >/output/install.txt 2>&1 ||
        { cat /output/install.txt >&2; exit 1; }
    mv $data.new $data
fi
exec mariadbd "$@" --datadir=$data --socket=/socket/mariadb --skip-networking --skip-name-resolve \
    --init-file=/config/init.sql --innodb-buffer-pool-size={{bufferPool.bytes}} \
    --innodb-flush-log-at-trx-commit={{flushLogAtTrxCommit}} --max-connections=$(({{threads}} + 10)) {{settings}}
