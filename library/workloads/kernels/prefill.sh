# Fills one file for each kernel with incompressible data, so that reads meet blocks that exist and writes do not
# allocate.
set -eu
for kernel in $(echo '{{kernels}}' | tr ',' ' '); do
    kib=$(df -Pk /data | { read -r _; read -r _ _ _ avail _; echo "$avail"; })
    if [ "$(({{fileSize.bytes}} / 1024))" -gt "$kib" ]; then
        echo "the volume has $kib KiB free, fileSize is {{fileSize}} for each kernel:" \
            "raise volumeSize, or lower fileSize" >&2
        exit 1
    fi
    fio --name=prefill --filename="/data/$kernel" --size={{fileSize.bytes}} --rw=write --bs=1M \
        --ioengine={{ioengine}} --iodepth=8 --direct={{direct}} --fallocate=none \
        --refill_buffers=1 --end_fsync=1 --output=/output/prefill.txt
done
