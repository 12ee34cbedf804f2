# Fills one file with incompressible data, so that reads meet blocks that exist
# and writes do not allocate. Its size is what fits, not what was asked for.
set -eu
kib=$(df -Pk /data | { read -r _; read -r _ _ _ avail _; echo "$avail"; })
mib=$((kib * {{fillPercent}} / 100 / 1024))
if [ "$mib" -lt 1 ]; then
    echo "the volume has $kib KiB free: no room for a test file" >&2
    exit 1
fi
exec fio --name=prefill --filename=/data/fio.dat --size="${mib}M" --rw=write --bs=1M \
    --ioengine={{ioengine}} --iodepth=8 --direct={{direct}} --fallocate=none \
    --refill_buffers=1 --end_fsync=1
