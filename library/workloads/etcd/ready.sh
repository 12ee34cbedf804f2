# Waits until the server has a leader, and writes all to the volume.
set -eu
for program in {{binaries}}/etcd {{benchmark}} curl; do
    if ! command -v "$program" >/dev/null; then
        echo "$program: not found (variables binaries, benchmark)" >&2
        exit 127
    fi
done
waited=0
until curl --silent --unix-socket /socket/etcd:0 http://etcd/health | grep -q '"health":"true"'; do
    waited=$((waited + 1))
    if [ $waited -gt {{readyTimeout}}0 ]; then
        echo "etcd is not ready after {{readyTimeout}} s: see stderr of the container etcd" >&2
        exit 1
    fi
    sleep 0.1
done
sync --file-system /data
