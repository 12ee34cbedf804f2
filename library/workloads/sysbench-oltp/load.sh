# Waits until the server is ready, fills the tables, and writes all to the volume.
. /config/options.sh
waited=0
until query 'SELECT 1' >/dev/null 2>&1; do
    waited=$((waited + 1))
    if [ $waited -gt {{readyTimeout}}0 ]; then
        echo "MariaDB is not ready after {{readyTimeout}} s: see stderr of the container mariadb" >&2
        exit 1
    fi
    sleep 0.1
done
if [ ! -e /data/loaded ]; then # else the pod is a replacement
    kib=$(df -Pk /data | { read -r _; read -r _ _ _ avail _; echo "$avail"; })
    asked=$(({{volumeSize.bytes}} / 1024 - 131072)) # without the files of an empty server
    if [ "$asked" -lt "$kib" ]; then
        kib=$asked
    fi
    # A row takes 300 bytes with its share of the indexes, and 100 of the log of undo.
    if [ $(({{tables}} * {{tableSize}} * 2 / 5)) -gt "$kib" ]; then
        echo "the volume has $kib KiB free, {{tables}} tables of {{tableSize}} rows need $(({{tables}} * {{tableSize}} *
            2 / 5)): raise volumeSize, or lower tables or tableSize" >&2
        exit 1
    fi
    query 'DROP DATABASE sbtest; CREATE DATABASE sbtest'
    {{program}} "$@" --verbosity=2 prepare
    touch /data/loaded
fi
query 'FLUSH TABLES' # those of the server, too: on a full volume it could not write them, nor end
table=1
while [ $table -le {{tables}} ]; do
    query "FLUSH TABLES sbtest$table FOR EXPORT; UNLOCK TABLES" # writes its changed pages
    table=$((table + 1))
done
sync --file-system /data
