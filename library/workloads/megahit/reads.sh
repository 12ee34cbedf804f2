# Makes the reads and writes them to the volume.
. /config/options.sh
[ ! -e /data/prepared ] || exit 0 # the pod is a replacement
kib=$(df -Pk /data | { read -r _; read -r _ _ _ avail _; echo "$avail"; })
asked=$(({{volumeSize.bytes}} / 1024))
if [ "$asked" -gt 0 ] && [ "$asked" -lt "$kib" ]; then
    kib=$asked
fi
reads=$(({{genome}} * {{coverage}} / {{readLength}}))
need=$((reads * ({{readLength}} + 12) / 1024 * 3))
if [ $need -gt "$kib" ]; then
    echo "the volume has $kib KiB free, the reads and their assembly take $need KiB:" \
        "raise volumeSize, or lower genome or coverage" >&2
    exit 1
fi
awk -v seed={{seed}} -v genome={{genome}} -v reads=$reads -v length_={{readLength}} -v errors={{errorPercent}} \
    -f /config/reads.awk >/data/reads.fa
sync /data/reads.fa
touch /data/prepared
