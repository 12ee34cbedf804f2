# Waits until the server is ready, fills the tables, and writes all to the volume.
set -eu
waited=0
until pg_isready --quiet; do
    waited=$((waited + 1))
    if [ $waited -gt {{readyTimeout}}0 ]; then
        echo "PostgreSQL is not ready after {{readyTimeout}} s: see stderr of the container postgres" >&2
        exit 1
    fi
    sleep 0.1
done
if [ "$(psql --no-align --tuples-only --command="SELECT 1 FROM pg_database WHERE datname = 'bench'" postgres)" != 1 ]; then
    createdb bench
    pgbench --initialize --quiet --scale={{scale}} {{initialize}} bench
fi
psql --quiet --command=CHECKPOINT bench
