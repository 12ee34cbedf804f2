# Runs sysbench. Its --rate counts latencies from when an event was due.
. /config/options.sh
[ {{direct}} = false ] || set -- "$@" --file-extra-flags=direct
date +%s.%N >/output/sysbench.start
exec {{program}} "$@" --file-test-mode={{mode}} --file-io-mode={{ioMode}} --file-rw-ratio={{readWriteRatio}} \
    --file-fsync-freq={{fsyncFreq}} --file-fsync-all={{fsyncAll}} --file-fsync-end={{fsyncEnd}} \
    --file-fsync-mode={{fsyncMode}} --threads={{threads}} --time={{duration}} --events=0 --rate={{rate}} \
    --rand-type={{distribution}} --rand-seed={{seed}}{{INSTANCE_NUM}} --report-interval={{reportInterval}} \
    --histogram=on {{extra}} run >/output/sysbench.txt
