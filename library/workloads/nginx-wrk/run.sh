# Runs wrk.
. /config/options.sh
exec wrk --threads {{threads}} --connections {{connections}} --duration {{duration}}s --timeout {{timeout}}s --latency \
    --script /config/wrk.lua {{extra}} "http://$address/" >/output/wrk.txt
