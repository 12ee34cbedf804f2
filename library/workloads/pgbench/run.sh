# Runs pgbench. Its options -R, -L and -f have no value that means "without".
set -eu
set -- --client={{clients}} --jobs={{threads}} --time={{duration}} --protocol={{protocol}} --max-tries={{maxTries}} \
    --no-vacuum --random-seed={{seed}}{{INSTANCE_NUM}} \
    --log --log-prefix=/output/pgbench_log --progress={{progress}} --progress-timestamp
[ "{{rate}}" = 0 ] || set -- "$@" --rate={{rate}}
[ "{{latencyLimit}}" = 0 ] || set -- "$@" --latency-limit={{latencyLimit}}
if grep -q '[^[:space:]]' /config/script.sql; then
    set -- "$@" --file=/config/script.sql
else
    set -- "$@" --builtin={{script}}
fi
exec pgbench "$@" {{extra}} bench >/output/pgbench.txt
