# Runs the personality on the files that were made before. Filebench ends by SIGINT, with all its processes.
{{program}} -f /output/run.f >/output/filebench.txt 2>&1 &
pid=$!
trap 'kill -INT $pid' TERM
code=0
wait $pid || code=$?
reason=$(grep -o -m 1 -E 'Unexpected Process termination.*|NO VALID RESULTS.*|Failed to .*|.*syntax error.*' \
    /output/filebench.txt) || reason="code $code"
if [ "$code" = 0 ] && grep -q 'NO VALID RESULTS' /output/filebench.txt; then
    code=1
fi
if [ "$code" != 0 ]; then
    free=$(df -Pk /data | { read -r _; read -r _ _ _ avail _; echo "$avail"; })
    echo "Filebench failed: $reason; the volume has $free KiB free" >&2
fi
exit "$code"
