#!/bin/sh
# Makes the corpora of the readers of wrk, etcd's benchmark, go-ycsb, db_bench and MEGAHIT with the real programs:
# applications.sh DIR PROGRAMS [TOOL…]. PROGRAMS is the folder of etcd-benchmark and go-ycsb. Each folder has the outputs
# of one run, named as the library's entries name them, and shows an option, or an end, that changes what the tool
# writes. Servers listen on sockets in a temporary directory, or on an address of loopback.
set -eu
mkdir -p "$1"
out=$(realpath "$1")
programs=$(realpath "$2")
library=$(realpath "$(dirname "$0")/../../library/workloads")
shift 2
[ $# -gt 0 ] || set -- wrk etcd ycsb db_bench megahit
before= # of a command: what ends it early
work=$(mktemp -d)
pg=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
server=
stop() {
	[ -z "$server" ] || kill "$server" 2> /dev/null || true
	[ ! -e "$work/postgres" ] || postgres stop -m immediate || true
	rm -rf "$work"
}
trap stop EXIT
cd "$work"
chmod 777 "$work"

# run NAME FILE COMMAND…: stdout in FILE of the folder NAME of the tool's corpus, stderr in stderr unless it is empty.
run() {
	dir=$out/$tool/$1 file=$2; shift 2
	mkdir -p "$dir"
	"$@" >> "$dir/$file" 2> "$dir/stderr" || echo "$tool ${dir##*/} ends with $?" >&2
	[ -s "$dir/stderr" ] || rm "$dir/stderr"
}
# later SECONDS COMMAND…: runs a command after some seconds.
later() {
	sleep "$1"
	shift
	"$@"
}

wrk_corpus() {
	address=127.7.7.7:8085
	wrk -v 2>&1 | sed -n '1s/ Copyright.*//p' > "$out/wrk/VERSION"
	mkdir files
	for n in 0 1 2 3; do head -c 20000 /dev/zero > files/$n; done
	head -c 400000 /dev/zero > files/large
	# Some hundred answers a second: the log of the answers stays small.
	cat > nginx.conf <<-END
		daemon off;
		master_process off;
		pid $work/pid;
		error_log stderr crit;
		events { worker_connections 100; }
		http {
		    log_format served \$msec;
		    access_log $work/served served;
		    limit_req_zone \$binary_remote_addr zone=all:32k rate=300r/s;
		    server {
		        listen $address;
		        root $work/files;
		        location / { limit_req zone=all burst=100; }
		        location /large { limit_rate 300k; }
		    }
		}
	END
	serve() {
		nginx -p "$work" -c "$work/nginx.conf" &
		server=$!
		until curl -s -o /dev/null "http://$address/0"; do sleep 0.1; done
	}
	wrk_run() { # NAME CONNECTIONS FILES OPTION…
		name=$1 connections=$2
		sed -e "s/{{seed}}{{INSTANCE_NUM}}/1/; s/{{files}}/$3/; s/{{connections}}/$2/; s|/output/|$work/|" \
			"$library/nginx-wrk/wrk.lua" > wrk.lua
		shift 3
		rm -f wrk.latency
		sleep 0.2
		: > served
		run "$name" wrk.txt $before wrk --connections "$connections" --duration 2s "$@"
		cp served "$out/wrk/$name/wrk.served"
		[ ! -e wrk.latency ] || mv wrk.latency "$out/wrk/$name/wrk.latency"
	}
	url=http://$address/
	serve
	wrk_run closed 4 4 --threads 2 --latency --script wrk.lua $url
	wrk_run one 1 4 --threads 1 --latency --script wrk.lua $url
	wrk_run no-latency 4 4 --threads 2 --script wrk.lua $url
	wrk_run no-script 4 4 --threads 2 --latency $url/0
	wrk_run missing 4 5 --threads 2 --latency --script wrk.lua $url
	echo 'wrk.path = "/large"' | cat wrk.lua - | sed 's/^function request/function unused/' > large.lua
	wrk_run slow 4 4 --threads 1 --latency --script large.lua $url
	later 0.5 kill -STOP $server &
	later 2.2 kill -CONT $server &
	wrk_run timeout 4 4 --threads 2 --timeout 1s --latency --script wrk.lua --duration 4s $url
	before="timeout -s KILL 1" wrk_run killed 4 4 --threads 2 --latency --script wrk.lua $url
	later 1 kill -KILL $server &
	wrk_run server-killed 4 4 --threads 2 --latency --script wrk.lua $url
	server=
	wrk_run no-server 4 4 --threads 2 --latency --script wrk.lua $url
}

etcd_corpus() {
	etcd --version > "$out/etcd/VERSION"
	go version -m "$programs/etcd-benchmark" | awk '$2 == "go.etcd.io/etcd/v3" {print "benchmark", $3}' >> "$out/etcd/VERSION"
	serve() { # OPTION…
		rm -rf data
		etcd --data-dir data --logger zap --log-level error --listen-client-urls unix://etcd:0 \
			--advertise-client-urls unix://etcd:0 --listen-peer-urls unix://peer:0 \
			--initial-advertise-peer-urls unix://peer:0 --initial-cluster default=unix://peer:0 "$@" 2> etcd.log &
		server=$!
		until curl -s --unix-socket etcd:0 http://etcd/health | grep -q '"health":"true"'; do sleep 0.1; done
	}
	counts() {
		curl -sf --unix-socket etcd:0 http://etcd/metrics |
			grep -E '^(# TYPE )?etcd_disk_(wal_fsync|backend_commit)_duration_seconds' > "$1"
	}
	put() { # NAME OPTION…
		name=$1; shift
		run "$name" etcd.txt $before "$programs/etcd-benchmark" --endpoints=unix://etcd:0 --clients=8 --conns=2 put \
			--key-space-size=10000 --val-size=256 "$@"
		rm -f "$out/etcd/$name/stderr" # the bar of its progress
	}
	etcd_run() { # NAME OPTION…
		mkdir -p "$out/etcd/$1"
		counts "$out/etcd/$1/before.prom"
		put "$@"
		echo "cnsbench: put ended at $(date +%s.%N)" >> "$out/etcd/$1/etcd.txt"
		counts "$out/etcd/$1/after.prom"
	}
	serve
	etcd_run one --total=400 --sample --precise
	mkdir -p "$out/etcd/rounds"
	counts "$out/etcd/rounds/before.prom"
	for round in 1 2 3; do
		put rounds --total=300 --sample --precise
		echo "cnsbench: put ended at $(date +%s.%N)" >> "$out/etcd/rounds/etcd.txt"
	done
	counts "$out/etcd/rounds/after.prom"
	etcd_run rate --total=400 --rate=100 --sample --precise
	put plain --total=200
	put sample --total=200 --sample
	put precise --total=200 --precise
	before="timeout -s KILL 1" etcd_run killed --total=400 --rate=100 --sample --precise
	kill $server
	wait $server || true
	serve --quota-backend-bytes 200000
	etcd_run quota --total=1000 --sample --precise --sequential-keys
	etcd_run full --total=100 --sample --precise
	put plain-failed --total=100
	kill $server
	wait $server || true
	server=
}

postgres() { su nobody -s /bin/sh -c "$pg/pg_ctl -D $work/postgres -w $* > /dev/null 2>&1"; }

ycsb_corpus() {
	go version -m "$programs/go-ycsb" | awk '$2 ~ "/go-ycsb$" && $1 == "dep" {print $2, $3}' > "$out/ycsb/VERSION"
	export PGHOST="$work"
	su nobody -s /bin/sh -c "$pg/initdb -D $work/postgres -A trust -U postgres > initdb.log"
	printf "listen_addresses = ''\nunix_socket_directories = '%s'\n" "$work" >> postgres/postgresql.conf
	postgres start -l "$work/server.log"
	"$pg/createdb" -U postgres ycsb
	ycsb() { # NAME COMMAND PROPERTY…
		name=$1 command=$2
		shift 2
		for property; do set -- "$@" -p "$property"; shift; done
		run "$name" ycsb.txt $before "$programs/go-ycsb" "$command" pg -p pg.host= -p pg.user=postgres -p pg.db=ycsb \
			-p recordcount=500 -p fieldlength=20 -p threadcount=4 -p operationcount=0 -p maxexecutiontime=2 -p target=400 \
			-p measurement.interval=1 -p scanproportion=0 -p insertproportion=0 -p updateproportion=0.5 \
			-p readproportion=0.5 -p requestdistribution=zipfian -p maxscanlength=10 "$@"
	}
	ycsb load load dropdata=true operationcount=500
	ycsb a run
	ycsb c run readproportion=1 updateproportion=0
	ycsb d run readproportion=0.95 updateproportion=0 insertproportion=0.05 requestdistribution=latest
	ycsb e run readproportion=0 updateproportion=0 scanproportion=0.95 insertproportion=0.05
	ycsb f run updateproportion=0 readmodifywriteproportion=0.5
	ycsb operations run operationcount=300
	ycsb interval run measurement.interval=10
	ycsb table run outputstyle=table
	ycsb json run outputstyle=json
	ycsb csv run measurementtype=csv target=20
	ycsb verbose run verbose=true target=20
	later 1.2 postgres stop -m immediate &
	later 2.2 postgres start -l "$work/server.log" &
	ycsb failed run maxexecutiontime=4
	until "$pg/psql" -U postgres -qc 'SELECT 1' > ready 2>&1; do sleep 0.1; done
	before="timeout -s KILL 1.3" ycsb killed run
	postgres stop -m immediate
	ycsb no-server run
}

db_bench_corpus() {
	db_bench --version > "$out/db_bench/VERSION"
	db() { # NAME BENCHMARKS EXISTING OPTION…: as the library's entry, one process
		name=$1 benchmarks=$2 existing=$3
		shift 3
		base=${benchmarks%%[[,]*}
		mkdir -p "$out/db_bench/$name"
		(
			dir=$out/db_bench/$name
			until [ -s "$dir/$base.csv" ] || [ -e "$dir/over" ] || ! kill -0 $$; do sleep 0.01; done
			date +%s.%N > "$dir/$base.start"
		) &
		stamp=$!
		[ ! -e "$out/db_bench/$name/stderr" ] || mv "$out/db_bench/$name/stderr" earlier
		run "$name" "$base.txt" $before db_bench --db="$work/db" --num=2000 --key_size=16 --value_size=100 --cache_size=1048576 \
			--compression_type=snappy --seed=1 --progress_reports=false --threads=2 --report_interval_seconds=1 \
			--benchmarks="$benchmarks" --use_existing_db="$existing" --report_file="$out/db_bench/$name/$base.csv" "$@"
		touch "$out/db_bench/$name/over"
		wait $stamp
		rm "$out/db_bench/$name/over"
		[ ! -e earlier ] || cat earlier "$out/db_bench/$name/stderr" > both
		[ ! -e earlier ] || mv both "$out/db_bench/$name/stderr"
		rm -f earlier
		sed -i '/^CPU:/s/:.*/:        2 * CPU/; /^CPUCache:/d' "$out/db_bench/$name/stderr"
	}
	all="--histogram=true --statistics=true"
	db several fillrandom false $all
	db one readwhilewriting true $all --duration=2 --benchmark_write_rate_limit=20000
	db several readrandomwriterandom true $all --duration=2
	db several seekrandom true $all --duration=2
	db sequential readseq true $all
	db rate overwrite true $all --duration=3 --benchmark_write_rate_limit=100000
	db rate readrandom true $all --duration=3 --benchmark_read_rate_limit=3000
	db merge mergerandom true $all --merge_operator=put
	db plain readrandom true --duration=2
	db histogram overwrite true --histogram=true
	db statistics overwrite true --statistics=true
	db in-one-process fillseq,readrandom,deleterandom false --histogram=true
	db repeated 'overwrite[X3]' true --histogram=true
	db interval overwrite true --stats_interval_seconds=1 --duration=3 --benchmark_write_rate_limit=100000
	db reports overwrite,stats,levelstats true
	db empty fillrandom false $all --num=0 --writes=1000
	db empty readmissing true $all --duration=2
	db unknown fillbogus true
	before="timeout -s KILL 1.5" db killed overwrite true $all --duration=3 --benchmark_write_rate_limit=100000
}

megahit_corpus() {
	megahit --version > "$out/megahit/VERSION"
	awk -v seed=42 -v genome=20000 -v reads=4000 -v length_=100 -v errors=20 -f "$library/megahit/reads.awk" > reads.fa
	assemble() { # NAME OPTION…
		name=$1
		shift
		rm -rf assembly
		run "$name" stdout $before megahit --read reads.fa --out-dir assembly --num-cpu-threads 2 --memory 100000000 "$@"
		mv "$out/megahit/$name/stderr" "$out/megahit/$name/megahit.log"
		[ -s "$out/megahit/$name/stdout" ] || rm "$out/megahit/$name/stdout"
	}
	assemble whole --verbose --k-list 21,29,39
	assemble one-k --verbose --k-list 21
	assemble quiet --k-list 21,29
	assemble no-mercy --verbose --k-list 21,29 --no-mercy
	assemble no-local --verbose --k-list 21,29 --no-local
	assemble unknown-option --verbose --bogus
	assemble no-reads --verbose --k-list 21 --min-contig-len 100 --read missing.fa
	before="timeout -s KILL 0.3" assemble killed --verbose --k-list 21,29,39
	(
		trap '' XFSZ # a file that is too large is an error, as on a full volume
		ulimit -f 400
		assemble full --verbose --k-list 21,29
	)
}

for tool; do
	rm -rf "${out:?}/$tool"
	mkdir -p "$out/$tool"
	"${tool}_corpus"
	find "$out/$tool" -type f -exec sed -i "s|$programs/||g; s|$work|/data|g; s|$out/$tool|/output|g" {} +
done
