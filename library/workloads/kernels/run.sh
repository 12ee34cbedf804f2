# Runs the streams of the chosen kernels together.
set -eu
set --
for stream in $(sh /config/streams.sh); do
    set -- "$@" "--section=$stream"
done
exec fio --output-format=json+ --output=/output/kernels.json "$@" /config/kernels.job
