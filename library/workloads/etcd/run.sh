# Runs etcd's benchmark of puts, and again until the duration is over. The server's own histograms are taken before the
# first round and after the last.
set -euf
cd /socket
# counts writes the server's metrics to a file.
counts() {
    curl --silent --show-error --fail --unix-socket /socket/etcd:0 http://etcd/metrics |
        grep -E '^(# TYPE )?etcd_disk_(wal_fsync|backend_commit)_duration_seconds' >"$1"
}
counts /output/before.prom
set -- --total={{total}} --rate={{rate}} --key-size={{keySize}} --val-size={{valSize}} \
    --key-space-size={{keySpaceSize}} --sequential-keys={{sequentialKeys}} --sample --precise {{extra}}
end=$(($(date +%s) + {{duration}}))
while :; do
    {{benchmark}} --endpoints=unix://etcd:0 --clients={{clients}} --conns={{conns}} put "$@" >/output/round
    cat /output/round >>/output/etcd.txt
    echo "cnsbench: put ended at $(date +%s.%N)" >>/output/etcd.txt # the report does not say when
    if ! grep -q '^Summary:' /output/round; then
        echo "no put succeeded:" >&2
        cat /output/round >&2
        counts /output/after.prom
        exit 1
    fi
    [ "$(date +%s)" -lt $end ] || break
done
counts /output/after.prom # once: a file that is kept may only grow
