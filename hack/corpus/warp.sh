#!/bin/sh
# Makes the corpus of the reader of warp with the real program, against the object null-server: warp.sh DIR WARP CNSBENCH.
# The server answers each request after some milliseconds, so that the files are small.
set -eu
mkdir -p "$1"
out=$(realpath "$1")
warp=$(realpath "$2")
cnsbench=$(realpath "$3")
work=$(mktemp -d)
trap 'kill $server; rm -rf "$work"' EXIT
cd "$work"
"$cnsbench" object null-server --size 1024 --delay GET=20ms --delay PUT=10ms --delay DELETE=10ms > address &
server=$!
until [ -s address ]; do sleep 0.1; done
"$warp" --version > "$out/VERSION"
run() { # NAME OPERATION SIZE OPTION…
	name=$1; operation=$2; size=$3; shift 3
	"$warp" "$operation" --host "$(sed 's|http://||' address)" --access-key a --secret-key b --duration 2s --concurrent 2 \
		--obj.size "$size" --no-color --noclear --benchdata "$name" "$@" > "$name.log" 2>&1 || cat "$name.log" >&2
	for file in "$name".*.zst; do # without the path of the machine
		zstd -dcq "$file" | sed "s|$warp|warp|g" | zstd -qf -o "$out/$file"
	done
}
run get get 1024 --objects 10 --full
run failed get 2048 --objects 10 --full
run mixed mixed 1024 --objects 20 --full
run aggregate get 1024 --objects 10
