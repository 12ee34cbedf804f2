# Waits until the server is ready, loads the records, and writes all to the volume.
set -eu
. /config/options.sh
need() {
    if ! command -v "$1" >/dev/null; then
        echo "$1: not found (variable $2)" >&2
        exit 127
    fi
}
need {{goYcsb}} goYcsb
if [ {{database}} = ferretdb ]; then need {{ferretdb}} ferretdb; else need {{binaries}}/initdb binaries; fi
if [ {{records}} -lt {{threads}} ] || [ {{operations}} -gt 0 ] && [ {{operations}} -lt {{threads}} ]; then
    echo "records and operations must not be fewer than threads" >&2
    exit 1
fi
waited=0
until /bin/sh /config/ping.sh >/output/ping 2>&1; do
    waited=$((waited + 1))
    if [ $waited -gt {{readyTimeout}}0 ]; then
        cat /output/ping >&2
        echo "{{database}} is not ready after {{readyTimeout}} s: see stderr of the container server" >&2
        exit 1
    fi
    sleep 0.1
done
if [ ! -e /data/loaded ]; then # else the pod is a replacement
    if [ {{database}} = postgresql ]; then
        dropdb --if-exists ycsb
        createdb ycsb
        export PGOPTIONS="-c synchronous_commit=off" # the checkpoint writes all
    fi
    {{goYcsb}} load $ycsb -p dropdata=true >/output/load.txt
    if ! grep -q '^INSERT - .*, Count: {{records}}, ' /output/load.txt; then
        echo "go-ycsb did not load {{records}} records:" >&2
        cat /output/load.txt >&2
        exit 1
    fi
    touch /data/loaded
fi
if [ {{database}} = postgresql ]; then
    psql --quiet --command="VACUUM ANALYZE" --command=CHECKPOINT ycsb
fi
sync --file-system /data
