#!/usr/bin/env bash
# packages.sh PROGRAM=PACKAGE…: installs the packages of the programs (or files)
# that are missing, as root on Debian, and fails if they cannot be installed. For an
# ordinary user it names them, and fails where the variable CI is set. No service is
# started.
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin DEBIAN_FRONTEND=noninteractive
# find_missing sets missing to the packages of what is not there.
find_missing() {
  missing=()
  local pair
  for pair in "$@"; do
    [[ -e ${pair%%=*} ]] || command -v "${pair%%=*}" >/dev/null || missing+=("${pair#*=}")
  done
}
find_missing "$@"
((${#missing[@]})) || exit 0
if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
  echo "missing on this machine: ${missing[*]}. Install with: sudo apt-get install --no-install-recommends ${missing[*]}" >&2
  [[ -z ${CI:-} ]] || exit 1
  exit 0
fi
echo "installing ${missing[*]} (apt-get)"
policy=/usr/sbin/policy-rc.d log=$(mktemp) ours=
if [[ ! -e $policy ]]; then # 101: no service may be started
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod +x "$policy"
  ours=yes
fi
trap '[[ -z $ours ]] || rm -f "$policy"' EXIT
if ! (apt-get update && apt-get install -y --no-install-recommends "${missing[@]}") >"$log" 2>&1; then
  tail -n 5 "$log" >&2
  echo "cannot install ${missing[*]}: see $log" >&2
  exit 1
fi
find_missing "$@"
if ((${#missing[@]})); then
  echo "apt-get installed ${missing[*]} without what is needed of them: see $log" >&2
  exit 1
fi
rm -f "$log"
