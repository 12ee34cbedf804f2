# The client. The barrier has opened when it begins. A line of /output/rounds.csv is a round: its begin and its end in
# seconds since 1970, then what redis-benchmark --csv prints of it (requests per second and latencies in ms). The last
# line is "end", so that the parser knows whether it has all of it.
set -eu
stop=$(($(date +%s) + {{duration}}))
while [ "$(date +%s)" -lt "$stop" ]; do
    began=$(date +%s.%N)
    round=$(redis-benchmark -s /socket/redis --csv -t set -r 100000 -d 1024 -n {{requests}} -c {{clients}} | grep '^"SET"')
    echo "$began,$(date +%s.%N),$round" >>/output/rounds.csv
done
echo end >>/output/rounds.csv
