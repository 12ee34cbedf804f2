#!/bin/sh
# Makes the corpora of the readers of pgbench, redis-benchmark and sysbench with the real programs: databases.sh DIR. Each
# file shows an option that changes what the tool writes. Servers listen on a socket in a temporary directory, or on a
# free port of loopback.
set -eu
mkdir -p "$1"
out=$(realpath "$1")
work=$(mktemp -d)
pg=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
stop() {
	su nobody -s /bin/sh -c "$pg/pg_ctl -D $work/data -m immediate stop" > /dev/null 2>&1 || true
	[ -z "${redis:-}" ] || kill "$redis" || true
	rm -rf "$work"
}
trap stop EXIT
cd "$work"
chmod 777 "$work"
su nobody -s /bin/sh -c "$pg/initdb -D $work/data -A trust -U postgres > initdb.log && \
	$pg/pg_ctl -D $work/data -w -o '-k $work -h \"\"' -l $work/server.log start > /dev/null"
$pg/pgbench -h "$work" -U postgres -i -s 1 -q postgres 2> init.log
pgbench() { # NAME OPTION…: stdout and stderr in NAME.txt, logs in NAME.log
	name=$1; shift
	mkdir -p "$out/pgbench/$name"
	$pg/pgbench -h "$work" -U postgres -n -c 2 -T 2 "$@" postgres > "$out/pgbench/$name/pgbench.txt" 2> "$out/pgbench/$name/stderr" ||
		echo "pgbench $name ends with $?" >&2
	sed -i "s|$work|/data|g" "$out/pgbench/$name"/*
	for log in pgbench_log.*; do
		[ -e "$log" ] && mv "$log" "$out/pgbench/$name/pgbench_log.100"
	done
	return 0
}
rm -rf "$out/pgbench"
mkdir -p "$out/pgbench"
$pg/pgbench --version > "$out/pgbench/VERSION"
pgbench plain -R 100
pgbench connect --connect -R 50
pgbench connect-log --connect -R 50 -l
pgbench select -S -R 100 -P 1
pgbench select-log -S -R 100 -P 1 --progress-timestamp -l
pgbench aggregate -S -R 100 -l --aggregate-interval=1
pgbench aggregate-limit -S -R 100 -l --aggregate-interval=1 -L 10
pgbench aggregate-tries -S -R 100 -l --aggregate-interval=1 --max-tries=3
pgbench aggregate-detailed -S -R 100 -l --aggregate-interval=1 --max-tries=3 --failures-detailed
pgbench report-per-command -S -R 100 -r
pgbench sampling -S -R 100 -l --sampling-rate=0.5
pgbench limit -S -R 100 -L 5
pgbench two-scripts -R 100 -b tpcb-like@2 -b select-only@1
pgbench no-server -p 1

rm -rf "$out/redis-benchmark"
mkdir -p "$out/redis-benchmark"
redis-benchmark --version > "$out/redis-benchmark/VERSION"
redis-server --port 0 --unixsocket "$work/redis.sock" --save '' --daemonize no > redis.log 2>&1 &
redis=$!
sleep 1
redis_benchmark() {
	name=$1; shift
	redis-benchmark -s "$work/redis.sock" -n 2000 -c 2 "$@" > "$out/redis-benchmark/$name.txt" 2>&1 || true
	sed -i "s|$work|/data|g" "$out/redis-benchmark/$name.txt"
}
redis_benchmark plain -t set,get
redis_benchmark csv --csv -t set,get
redis_benchmark quiet -q -t set,get
redis_benchmark precision --precision 2 -t set
redis_benchmark command SET key value
redis_benchmark command-csv --csv SET key value
redis_benchmark pipeline -P 4 -q -t set

rm -rf "$out/sysbench"
mkdir -p "$out/sysbench"
sysbench --version > "$out/sysbench/VERSION"
sysbench fileio --file-total-size=1M --file-num=2 --verbosity=0 prepare > prepare.log
sysbench_fileio() {
	name=$1; shift
	sysbench fileio --file-total-size=1M --file-num=2 --file-test-mode=rndrw --rate=100 "$@" run > "$out/sysbench/$name.txt" 2>&1 || true
}
sysbench_fileio fileio --time=2
sysbench_fileio fileio-checkpoints --time=4 --report-checkpoints=2
sysbench_fileio fileio-checkpoints-histogram --time=3 --report-checkpoints=1,2 --histogram
sysbench_fileio fileio-intervals --time=3 --report-interval=1 --histogram
sysbench_fileio fileio-intervals-checkpoints --time=3 --report-interval=1 --report-checkpoints=2 --histogram
sysbench_fileio fileio-p99 --time=2 --percentile=99
sysbench_fileio fileio-p0 --time=2 --percentile=0
sysbench cpu --time=1 --rate=50 run > "$out/sysbench/cpu.txt"
sysbench memory --time=1 --memory-total-size=1M run > "$out/sysbench/memory.txt"
sed -i "s|$work|/data|g" "$out"/sysbench/*.txt
