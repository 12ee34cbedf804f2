# Fills one file with incompressible data, so that reads meet blocks that exist
# and writes do not allocate. Its size is a share of what is free, and of what
# was asked for: some drivers' volumes are directories of a larger file system.
set -eu
kib=$(df -Pk /data | { read -r _; read -r _ _ _ avail _; echo "$avail"; })
asked=$(({{volumeSize.bytes}} / 1024))
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
