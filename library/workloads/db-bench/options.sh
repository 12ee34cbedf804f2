# Sets the options that loading and measuring share.
set -eu
if ! command -v {{program}} >/dev/null; then
    echo "{{program}}: not found (variable program)" >&2
    exit 127
fi
db=/data/db
# RocksDB's limiter aborts if one request takes more than a tenth of a second.
least=$((10 * ({{keySize}} + {{valueSize}})))
if [ {{writeRate}} -gt 0 ] && [ {{writeRate}} -lt $least ]; then
    echo "writeRate {{writeRate}} is too low: want 0, or at least $least: ten entries per second" >&2
    exit 1
fi
if [ {{readRate}} -gt 0 ] && [ {{readRate}} -lt 2560 ]; then
    echo "readRate {{readRate}} is too low: want 0, or at least 2560, the least of db_bench" >&2
    exit 1
fi
set -- --db=$db --num={{num}} --key_size={{keySize}} --value_size={{valueSize}} --cache_size={{cacheSize.bytes}} \
    --write_buffer_size={{writeBuffer.bytes}} --compression_type={{compression}} --seed={{seed}}{{INSTANCE_NUM}} \
    --progress_reports=false --use_direct_reads={{useDirectIO}} \
    --use_direct_io_for_flush_and_compaction={{useDirectIO}} {{extra}}
