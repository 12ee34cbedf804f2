# Checks what making the reads and assembling them need.
set -eu
if ! command -v {{program}} >/dev/null; then
    echo "{{program}}: not found (variable program)" >&2
    exit 127
fi
if [ {{genome}} -lt {{readLength}} ]; then
    echo "genome {{genome}} is less than readLength {{readLength}}" >&2
    exit 1
fi
