# Fills the file that the log is replayed on with incompressible data, so that reads meet blocks that exist and writes
# do not allocate.
set -eu
size=$(cat /log/size)
kib=$(df -Pk /data | { read -r _; read -r _ _ _ avail _; echo "$avail"; })
asked=$(({{volumeSize.bytes}} / 1024))
if [ "$asked" -gt 0 ] && [ "$asked" -lt "$kib" ]; then # some drivers' volumes are directories of a larger file system
    kib=$asked
fi
if [ $((size / 1024)) -gt "$kib" ]; then
    echo "the operations span $((size / 1024)) KiB, the volume has $kib KiB free: raise volumeSize" >&2
    exit 1
fi
exec fio --name=fill --filename=/data/file "--size=$size" --rw=write --bs=1M --direct={{direct}} --fallocate=none \
    --refill_buffers=1 --end_fsync=1 --output=/output/fill.txt
