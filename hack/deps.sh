#!/usr/bin/env bash
# Installs the programs that the local engine calls, where it may; else names
# the packages that bring them. Never fails for what an ordinary user can do
# without.
set -euo pipefail

declare -A package=([fio]=fio [mkfs.xfs]=xfsprogs [mkfs.btrfs]=btrfs-progs [mkfs.ext4]=e2fsprogs [tmux]=tmux
  [bindfs]=bindfs) # bindfs: the FUSE file system of tests
export PATH=$PATH:/usr/sbin:/sbin
missing=()
for program in "${!package[@]}"; do
  command -v "$program" >/dev/null || missing+=("${package[$program]}")
done
((${#missing[@]})) || exit 0

if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
  echo "installing ${missing[*]} (apt-get)"
  log=$(mktemp)
  export DEBIAN_FRONTEND=noninteractive
  if (apt-get update && apt-get install -y --no-install-recommends "${missing[@]}") >"$log" 2>&1; then
    rm -f "$log"
    exit 0
  fi
  tail -n 5 "$log" >&2
  echo "could not install ${missing[*]}; see $log" >&2
  exit 1
fi
echo "missing on this machine: ${missing[*]}. Install with: sudo apt-get install ${missing[*]}" >&2
if ! command -v fio >/dev/null; then
  echo "fio is the demo's workload: without it nothing can be measured" >&2
  exit 1
fi
echo "going on without: the backends that need them will say so" >&2
