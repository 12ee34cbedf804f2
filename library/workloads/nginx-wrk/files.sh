# Makes the files that are served, of random bytes that the seed determines.
set -eu
[ ! -e /data/prepared ] || exit 0 # the pod is a replacement
kib=$(df -Pk /data | { read -r _; read -r _ _ _ avail _; echo "$avail"; })
asked=$(({{volumeSize.bytes}} / 1024))
if [ "$asked" -gt 0 ] && [ "$asked" -lt "$kib" ]; then
    kib=$asked
fi
if [ $(({{files}} * (({{fileSize.bytes}} + 4095) / 4096) * 4)) -gt "$kib" ]; then
    echo "the volume has $kib KiB free, {{files}} files of {{fileSize}} need more: raise volumeSize, or lower files" >&2
    exit 1
fi
block={{fileSize.bytes}}
if [ $block -gt 1048576 ]; then
    block=1048576
    if [ $(({{fileSize.bytes}} % block)) != 0 ]; then
        echo "fileSize {{fileSize}} is above 1Mi, and no multiple of it" >&2
        exit 1
    fi
fi
umask 022 # the server's workers read them as another user, where the server is started by root
mkdir -p /data/files
fio --name=files --rw=write --bs=$block --nrfiles={{files}} --filesize={{fileSize.bytes}} \
    --size=$(({{files}} * {{fileSize.bytes}})) --directory=/data/files --filename_format='$filenum' \
    --file_service_type=sequential --openfiles=64 --refill_buffers --randseed={{seed}} --end_fsync=1 \
    --output=/output/fio.txt
touch /data/prepared
