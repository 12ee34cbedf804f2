# Starts Redis with its append-only file on the volume. It listens on a socket in the pod only.
set -eu
mkdir -p /data/redis
exec {{binaries}}/redis-server --port 0 --unixsocket /socket/redis --dir /data/redis --daemonize no --save '' \
    --appendonly yes --appendfsync {{appendfsync}} {{settings}}
