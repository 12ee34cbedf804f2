# Fills the database, writes it to its files and lets the compactions end.
. /config/options.sh
case "{{load}} {{benchmarks}}" in
none*) exit ;;
*" fill"*)
    echo "{{benchmarks}} begins with an empty database: nothing is loaded"
    exit
    ;;
esac
[ ! -e /data/loaded ] || exit 0 # the pod is a replacement
kib=$(df -Pk /data | { read -r _; read -r _ _ _ avail _; echo "$avail"; })
asked=$(({{volumeSize.bytes}} / 1024))
if [ "$asked" -gt 0 ] && [ "$asked" -lt "$kib" ]; then
    kib=$asked
fi
need=$(({{num}} * ({{keySize}} + {{valueSize}}) / 1024))
[ {{compression}} = none ] || need=$((need / 2)) # db_bench's values shrink to half
if [ "$need" -gt "$kib" ]; then
    echo "the volume has $kib KiB free, {{num}} entries take $need KiB: raise volumeSize, or lower num or valueSize" >&2
    exit 1
fi
{{program}} "$@" --benchmarks={{load}},flush,waitforcompaction --threads=1 --duration=0 >/output/load.out
touch /data/loaded
