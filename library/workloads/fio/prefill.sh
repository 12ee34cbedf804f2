# Fills one file with incompressible data, so that reads meet blocks that exist
# and writes do not allocate. Its size is a share of what is free, and of what
# was asked for: some drivers' volumes are directories of a larger file system.
set -eu
kib=$(df -Pk /data | { read -r _; read -r _ _ _ avail _; echo "$avail"; })
size={{volumeSize}}
number=${size%%[!0-9]*}
case $size in
    *Ki) asked=$number ;;
    *Mi) asked=$((number * 1024)) ;;
    *Gi) asked=$((number * 1024 * 1024)) ;;
    *Ti) asked=$((number * 1024 * 1024 * 1024)) ;;
    *k) asked=$((number * 1000 / 1024)) ;;
    *M) asked=$((number * 1000 * 1000 / 1024)) ;;
    *G) asked=$((number * 1000 * 1000 * 1000 / 1024)) ;;
    *) asked=$((number / 1024)) ;;
esac
if [ "$asked" -gt 0 ] && [ "$asked" -lt "$kib" ]; then
    kib=$asked
fi
mib=$((kib * {{fillPercent}} / 100 / 1024))
if [ "$mib" -lt 1 ]; then
    echo "the volume has $kib KiB free: no room for a test file" >&2
    exit 1
fi
exec fio --name=prefill --filename=/data/fio.dat --size="${mib}M" --rw=write --bs=1M \
    --ioengine={{ioengine}} --iodepth=8 --direct={{direct}} --fallocate=none \
    --refill_buffers=1 --end_fsync=1 --output=/output/prefill.txt
