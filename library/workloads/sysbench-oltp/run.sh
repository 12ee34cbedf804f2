# Runs sysbench. Its --rate counts latencies from when sysbench queued a transaction.
. /config/options.sh
date +%s.%N >/output/sysbench.start
exec {{program}} "$@" --time={{duration}} --events=0 --rate={{rate}} --rand-type={{distribution}} \
    --db-ps-mode={{preparedStatements}} --percentile={{percentile}} --report-interval={{reportInterval}} \
    --histogram=on {{extra}} run >/output/sysbench.txt
