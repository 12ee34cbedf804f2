# Waits until the server answers. Without an end it would wait for as long as the action's timeout allows.
set -eu
end=$(($(date +%s) + {{readyTimeout}}))
until [ "$(redis-cli -s /socket/redis PING 2>/dev/null)" = PONG ]; do
    if [ "$(date +%s)" -ge "$end" ]; then
        echo "the server did not answer within {{readyTimeout}} s" >&2
        exit 1
    fi
    sleep 0.1
done
