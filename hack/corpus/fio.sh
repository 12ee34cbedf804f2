#!/bin/sh
# Makes the corpus of the reader of fio with the real program: fio.sh DIR. Each file shows one option that changes what
# fio writes. The I/O engines need no disk (null, and files of a few KiB in a temporary directory).
set -eu
mkdir -p "$1"
out=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fio --version > "$out/VERSION"

null="--ioengine=null --size=1m --time_based --runtime=1 --bs=4k"
json="--output-format=json"
run() { # NAME OPTION…: one run, its output in NAME
	name=$1; shift
	fio "$@" > "$out/$name" 2>&1 || echo "$name: fio ends with $?" >&2
}
run plain.json $json $null --rw=randrw --rate_iops=300,100 --name=job
run plus.json --output-format=json+ $null --rw=randread --rate_iops=200 --name=job
run fdatasync.json $json --ioengine=sync --rw=write --bs=2300 --size=64k --fdatasync=1 --name=etcd
run lat.json $json $null --rw=randread --rate_iops=200 --lat_percentiles=1 --clat_percentiles=0 --slat_percentiles=1 \
	--ioengine=libaio --iodepth=4 --name=job
run percentiles-off.json $json $null --rw=randread --rate_iops=200 --clat_percentiles=0 --name=job
run other-percentiles.json $json $null --rw=randread --rate_iops=200 --percentile_list=90:99.999 --name=job
run gtod.json $json $null --rw=randread --rate_iops=200 --gtod_reduce=1 --name=job
run mixed.json $json $null --rw=randrw --rate_iops=200,100 --unified_rw_reporting=1 --name=job
run mixed-both.json $json $null --rw=randrw --rate_iops=200,100 --unified_rw_reporting=both --name=job
run jobs.json $json $null --rw=randread --rate_iops=200 --numjobs=3 --name=job
run jobs-plus.json --output-format=json+ $null --rw=randread --rate_iops=200 --numjobs=3 --name=job
run group.json $json $null --rw=randread --rate_iops=200 --numjobs=3 --group_reporting --name=job
run two-names.json $json $null --rate_iops=200 --name=a --rw=randread --name=b --rw=randwrite --bs=8k
run in-turn.json $json $null --rate_iops=200 --name=a --rw=randread --name=b --stonewall --rw=randread
run status.json $json $null --rate_iops=200 --runtime=3 --status-interval=1 --name=a --rw=randread --name=b --rw=randwrite
run errors.json $json --filename=/dev/full --ioengine=psync --rw=write --bs=4k --size=64k --continue_on_error=all --name=job
run failed.json $json --filename=/dev/full --ioengine=psync --rw=write --bs=4k --size=64k --name=job
run steady.json $json $null --rw=randread --rate_iops=200 --runtime=2 --ss=iops:50% --ss_dur=1 --name=job
run trim.json $json $null --rw=randtrim --rate_iops=,,200 --name=job
run prio.json $json $null --rw=randread --rate_iops=200 --ioengine=libaio --cmdprio_percentage=50 --cmdprio=0 --name=job
run normal.txt $null --rw=randrw --rate_iops=300,100 --name=job
run normal-async.txt $null --rw=randread --rate_iops=200 --ioengine=libaio --iodepth=4 --size=64k --name=job
run normal-jobs.txt $null --rw=randread --rate_iops=200 --numjobs=2 --name=job
run normal-group.txt $null --rw=randwrite --rate_iops=200 --numjobs=2 --group_reporting --name=job
run normal-sync.txt --ioengine=sync --rw=write --bs=2300 --size=64k --fdatasync=1 --name=etcd
run normal-errors.txt --filename=/dev/full --ioengine=psync --rw=write --bs=4k --size=64k --name=job
run normal-mixed.txt $null --rw=randrw --rate_iops=200,100 --unified_rw_reporting=1 --name=job
run normal-fast.txt $null --rw=randread --bs=1m --size=1g --runtime=1 --name=job
run normal-status.txt $null --rw=randread --rate_iops=200 --runtime=2 --status-interval=1 --name=job
run terse.txt --output-format=terse $null --rw=randread --rate_iops=200 --name=job
run both-formats.txt --output-format=normal,json $null --rw=randread --rate_iops=200 --name=job
(set -x; fio $json $null --rw=randread --rate_iops=200 --name=job) > "$out/set-x.json" 2>&1
for n in 100 300; do
	fio $json $null --rw=randwrite --rate_iops=$n --name=run
done > "$out/two-reports.json"
{ echo '['; fio $json $null --rw=randwrite --rate_iops=100 --name=run; echo ','
	fio $json $null --rw=randwrite --rate_iops=100 --name=run; echo ']'; } > "$out/array.json"
{ echo '{"level":"info","msg":"starting fio"}'; fio $json $null --rw=randread --rate_iops=200 --name=job; } > "$out/logged.json"
printf '[global]\nioengine=null\nsize=1m\ntime_based\nruntime=1\nrw=randread\nrate_iops=200\n[job]\nbs=4k\n' > job.fio
fio --server=127.0.0.1,8766 > server.log 2>&1 &
server=$!
trap 'kill $server; rm -rf "$work"' EXIT
sleep 1
run client.json $json --client=127.0.0.1,8766 job.fio
run client.txt --client=127.0.0.1,8766 job.fio
iconv -t UTF-16 "$out/plain.json" > "$out/utf16.json"
gzip -nc "$out/plain.json" > "$out/plain.json.gz"
sed 's/^/2026-11-29T06:32:44.123456789Z /' "$out/plain.json" > "$out/timestamps.json"
# No path of the machine remains.
sed -i "s|$work|/data|g" "$out"/*.json "$out"/*.txt
