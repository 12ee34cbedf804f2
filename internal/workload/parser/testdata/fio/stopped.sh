#!/bin/sh
# Records what fio writes when its processes are stopped (SIGSTOP) for a while: stopped, with a rate of 200 reads and 100
# writes per second, and stopped-busy, without one. truth has the times of SIGSTOP and SIGCONT, in ns since the epoch.
#   internal/workload/parser/testdata/fio/stopped.sh
set -eu
cd "$(dirname "$0")"
data=$(mktemp)
trap 'rm -f "$data"' EXIT

record() { # directory, seconds of the stop, options of fio
    dir=$1 long=$2
    shift 2
    mkdir -p "$dir"
    cat > "$dir/fio.job" <<JOB
[stopped]
filename=$data
size=16m
rw=randrw
bs=4k
time_based=1
runtime=9s
randseed=1
lat_percentiles=1
clat_percentiles=1
write_hist_log=$dir/h
log_hist_msec=1000
log_unix_epoch=1
$(printf '%s\n' "$@")
JOB
    fio --output-format=json+ --output="$dir/fio.json" "$dir/fio.job" &
    fio=$!
    sleep 4
    all="$fio $(pgrep -P "$fio")" # with the processes of its jobs
    kill -STOP $all && date +%s%N > "$dir/truth"
    sleep "$long"
    date +%s%N >> "$dir/truth" && kill -CONT $all
    wait "$fio"
    sed -i "s,$data,/data/fio.dat,g" "$dir/fio.json"
    rm "$dir/fio.job"
}
record stopped 4 ioengine=psync rwmixread=67 rate_iops=200,100
record stopped-busy 2 ioengine=libaio iodepth=16 direct=1 rwmixread=70
