# Waits until the server is ready, sets the keys, and writes all to the volume.
set -eu
for program in redis-server redis-cli redis-benchmark; do
    if [ ! -x "{{binaries}}/$program" ]; then
        echo "$program: not found in {{binaries}} (variable binaries)" >&2
        exit 127
    fi
done
waited=0
until [ "$(redis-cli -s /socket/redis PING 2>/dev/null)" = PONG ]; do
    waited=$((waited + 1))
    if [ $waited -gt {{readyTimeout}}0 ]; then
        echo "Redis is not ready after {{readyTimeout}} s: see stdout of the container redis" >&2
        exit 1
    fi
    sleep 0.1
done
if [ ! -e /data/loaded ]; then # else the pod is a replacement
    key=0
    while [ $key -lt {{keyspace}} ]; do # in parts: a script is one write to the append-only file
        set -- "$(redis-cli -s /socket/redis --eval /config/fill.lua , $key {{keyspace}} {{dataSize}} 2>&1)"
        case $1 in
            '' | *[!0-9]*) echo "Redis does not take the keys: $1" >&2; exit 1 ;;
        esac
        key=$1
    done
    touch /data/loaded
fi
sync --file-system /data
