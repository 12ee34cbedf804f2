# Starts the server with its data on the volume. It listens on a socket in the pod only.
set -eu
if [ {{database}} = ferretdb ]; then
    mkdir -p /data/ferretdb
    rm -f /socket/ferretdb.sock
    exec {{ferretdb}} -sqlite-url 'file:/data/ferretdb/?{{settings}}' -socket /socket/ferretdb.sock
fi
data=/data/postgres
if [ "$(id -u)" = 0 ]; then # engine local: PostgreSQL refuses to run as root
    user=$(id -u nobody)
    as="unshare --user --map-user=$user --map-group=$user --"
else
    as=
fi
if [ ! -e $data/PG_VERSION ]; then
    rm -rf $data.new # half made by a pod that was killed
    $as initdb --pgdata=$data.new --username=postgres --auth=trust --no-instructions --locale=C \
        --encoding=UTF8 >/output/initdb.txt
    mv $data.new $data
fi
# A pod that was killed leaves the server's process ID, which in this pod may be that of another process. No other
# server has the volume: a replacement starts when the pod before it is gone.
rm -f $data/postmaster.pid /socket/.s.PGSQL*
# go-ycsb has up to two connections for each thread.
exec $as postgres -D $data -c listen_addresses= -c unix_socket_directories=/socket \
    -c shared_buffers={{sharedBuffers}} -c max_connections=$((2 * {{threads}} + 10)) {{settings}}
