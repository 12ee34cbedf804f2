#!/bin/sh
# The parser of this entry: called with the name of dd.txt, it prints metrics as
# docs/format/parser.md says. A line of dd.txt is such as
#   write 1760000000.123456789 33554432 bytes (34 MB, 32 MiB) copied, 0.0421 s, 797 MB/s
set -eu
lines=$(sed -n 's/^\(read\|write\) \([0-9.]*\) \([0-9]*\) bytes.* copied, \([0-9]*\)\.\{0,1\}\([0-9]*\) s, .*/\1 \2 \3 \4 \5/p' "$1")
[ "$(sed -n '$p' "$1")" = end ] || echo '{"warning": "dd.txt has no end: figures are of a part of the run"}'
bytes_read=0 bytes_write=0 us_read=0 us_write=0
while read -r did began bytes whole part; do
	part=$(printf %.6s "${part}000000")
	us=$((whole * 1000000 + ${part#"${part%%[!0]*}"} + 0))
	[ "$us" -gt 0 ] || continue
	echo "{\"metric\": \"$did.bandwidth\", \"unit\": \"B/s\", \"better\": \"higher\", \"value\": $((bytes * 1000000 / us)), \"time\": $began}"
	eval "bytes_$did=\$((bytes_$did + bytes)) us_$did=\$((us_$did + us))"
done <<END
$lines
END
for did in read write; do
	eval "bytes=\$bytes_$did us=\$us_$did"
	[ "$us" -gt 0 ] || continue
	echo "{\"metric\": \"$did.bytes\", \"unit\": \"B\", \"value\": $bytes}"
	echo "{\"metric\": \"$did.bandwidth\", \"unit\": \"B/s\", \"better\": \"higher\", \"value\": $((bytes * 1000000 / us))}"
done
