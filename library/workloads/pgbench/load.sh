# Waits until the server is ready, fills the tables, and writes all to the volume.
set -eu
if ! command -v initdb >/dev/null; then
    echo "initdb: not found in {{binaries}} (variable binaries)" >&2
    exit 127
fi
waited=0
until pg_isready --quiet; do
    waited=$((waited + 1))
    if [ $waited -gt {{readyTimeout}}0 ]; then
        echo "PostgreSQL is not ready after {{readyTimeout}} s: see stderr of the container postgres" >&2
        exit 1
    fi
    sleep 0.1
done
if [ ! -e /data/loaded ]; then # else the pod is a replacement
    dropdb --if-exists bench
    createdb bench
    pgbench --initialize --quiet --scale={{scale}} {{initialize}} bench
    touch /data/loaded
fi
psql --quiet --command=CHECKPOINT bench
