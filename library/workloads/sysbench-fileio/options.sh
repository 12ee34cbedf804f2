# Sets the options that preparing and measuring share.
set -eu
if ! command -v {{program}} >/dev/null; then
    echo "{{program}}: not found (variable program)" >&2
    exit 127
fi
mkdir -p /data/sysbench
cd /data/sysbench
set -- fileio --file-num={{numFiles}} --file-total-size={{totalSize.bytes}} --file-block-size={{blockSize.bytes}}
