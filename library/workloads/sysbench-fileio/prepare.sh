# Makes the files and writes them to the volume.
. /config/options.sh
[ ! -e /data/prepared ] || exit 0 # the pod is a replacement
kib=$(df -Pk /data | { read -r _; read -r _ _ _ avail _; echo "$avail"; })
asked=$(({{volumeSize.bytes}} / 1024))
if [ "$asked" -gt 0 ] && [ "$asked" -lt "$kib" ]; then
    kib=$asked
fi
if [ $(({{totalSize.bytes}} / 1024)) -gt "$kib" ]; then
    echo "the volume has $kib KiB free, totalSize is {{totalSize}}: raise volumeSize, or lower totalSize" >&2
    exit 1
fi
if [ $(({{totalSize.bytes}} / {{numFiles}})) -lt {{blockSize.bytes}} ]; then
    echo "totalSize {{totalSize}} is less than a block of {{blockSize}} for each of {{numFiles}} files" >&2
    exit 1
fi
{{program}} "$@" --verbosity=2 prepare
sync test_file.*
touch /data/prepared
