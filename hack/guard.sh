#!/usr/bin/env bash
# guard.sh BASE OUT: build the programs of the commit BASE in OUT/base, and compare the ceilings of bin with theirs. The
# figures of bin are added to the history in OUT/history, which is searched for changes.
set -euo pipefail
cd "$(dirname "$0")/.."
base=$(git rev-parse --verify "$1^{commit}") out=$(realpath -m "$2")
mkdir -p "$out"
trap 'git worktree remove --force "$out/base" 2>/dev/null || true' EXIT
git worktree remove --force "$out/base" 2>/dev/null || true
git worktree add --quiet --detach "$out/base" "$base"
make -C "$out/base" build
go run ./test/bench -only guard -base "$out/base/bin" -keep "$out/history" -o "$out/guard.md"
