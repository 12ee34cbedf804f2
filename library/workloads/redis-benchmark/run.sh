# Runs redis-benchmark once for each test, and again until the duration is over.
set -euf
exec >/output/redis-benchmark.txt
set -- -s /socket/redis -c {{clients}} -n {{requests}} -d {{dataSize}} -P {{pipeline}} --threads {{threads}} {{extra}}
[ {{keyspace}} = 0 ] || set -- "$@" -r {{keyspace}}
# run runs one test; the line tells the parser when.
run() {
    test=$1
    shift
    echo "cnsbench: $test, {{threads}} threads, at $(date +%s.%N)"
    redis-benchmark "$@"
}
end=$(($(date +%s) + {{duration}}))
while :; do
    if grep -q '[^[:space:]]' /config/command; then
        run command "$@" $(cat /config/command)
    else
        for test in $(echo {{tests}} | tr , ' '); do
            run "$test" "$@" -t "$test"
        done
    fi
    [ "$(date +%s)" -lt $end ] || break
done
