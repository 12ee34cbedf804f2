# Adds a section for each stream to the job file.
set -eu
cp /config/fio.job /output/mix.job
streams="{{streams}}"
IFS=,
for stream in $streams; do
    IFS=' '
    set -- $stream
    if [ $# != 4 ]; then
        echo "invalid stream \"$*\": want NAME RW BS SHARE, such as log write 16k 20 (variable streams)" >&2
        exit 1
    fi
    printf '\n[%s]\nrw=%s\nbs=%s\nflow=%s\n' "$@" >>/output/mix.job
done
