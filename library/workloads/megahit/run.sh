# Assembles the reads once. MEGAHIT writes its log to stderr, with --verbose that of its stages too.
. /config/options.sh
rm -rf /data/assembly # of a pod that this one replaces
{{program}} --verbose --read /data/reads.fa --out-dir /data/assembly --k-list {{kList}} --min-count {{minCount}} \
    --num-cpu-threads {{threads}} --memory {{memory.bytes}} {{extra}} 2>/output/megahit.log &
pid=$!
trap 'kill $pid' TERM
code=0
wait $pid || code=$?
if [ $code != 0 ]; then # MEGAHIT does not name a full volume as the reason
    reason=$(grep -o -m 1 -E 'FATAL.*|^[A-Za-z]+Error: .*|option .* not recognized|Exit code .*' /output/megahit.log) ||
        reason="code $code"
    free=$(df -Pk /data | { read -r _; read -r _ _ _ avail _; echo "$avail"; })
    echo "MEGAHIT failed: $reason; the volume has $free KiB free" >&2
fi
exit $code
