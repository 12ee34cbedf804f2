# Runs wrk. It reports no rate by second: nginx is asked for its number of requests meanwhile.
. /config/options.sh
while kill -0 $$ 2>/dev/null; do # wrk, which replaces this shell
    count=$(curl --silent --max-time 1 "http://$address/status" | { read -r _; read -r _; read -r _ _ n; echo "$n"; }) ||
        count=-
    echo "$(date +%s.%N) ${count:--}"
    sleep 1
done >/output/wrk.served 2>/dev/null &
exec wrk --threads {{threads}} --connections {{connections}} --duration {{duration}}s --timeout {{timeout}}s --latency \
    --script /config/wrk.lua {{extra}} "http://$address/" >/output/wrk.txt
