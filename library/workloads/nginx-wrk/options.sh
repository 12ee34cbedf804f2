# Sets the address of the server: one of this machine's own that no other instance has, because engine local has one
# network for all.
set -eu
for program in nginx wrk curl; do
    if ! command -v $program >/dev/null; then
        echo "$program: not found in $PATH" >&2
        exit 127
    fi
done
number=$(echo "$RUN_ID $ACTION_NAME" | cksum)
number=$((${number%% *} + INSTANCE_NUM))
address=127.$((number / 65024 % 254 + 1)).$((number / 254 % 256)).$((number % 254 + 1)):{{port}}
ulimit -n "$(ulimit -H -n)"
