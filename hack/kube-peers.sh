#!/usr/bin/env bash
# Builds kube-burner, which the bench kube-peers compares with, from the source of its module: its replace lines do not
# reach a module that depends on it. Minutes when cold.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?usage: kube-peers.sh DIRECTORY}
version=v2.7.3

mkdir -p "$out"
out=$(realpath "$out")
[[ $(cat "$out/kube-burner.version" 2>/dev/null) != "$version" || ! -x $out/kube-burner ]] || exit 0
src=$(mktemp -d)
trap 'chmod -R u+w "$src"; rm -rf "$src"' EXIT
dir=$(go mod download -json "github.com/kube-burner/kube-burner/v2@$version" | sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p')
cp -r "$dir/." "$src"
chmod -R u+w "$src"
go build -C "$src" -o "$out/kube-burner" ./cmd/kube-burner
echo "$version" >"$out/kube-burner.version"
