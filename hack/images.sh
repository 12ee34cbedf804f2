#!/usr/bin/env bash
# images.sh DIRECTORY VERSION [NAME…]: makes the images of library/images/packages, those of NAMEs or all, for the
# architectures of ARCHS (amd64 arm64), without a container engine and without running a program of them: packages of
# Debian, and programs of Go modules. MIRROR is of the packages; SNAPSHOT, as 20261101T000000Z, takes them of that day
# from snapshot.debian.org. The image's layers are the same where the packages are.
set -euo pipefail
cd "$(dirname "$0")/.."
usage='usage: images.sh DIRECTORY VERSION [NAME…]'
out=${1:?$usage} version=${2:?$usage}
shift 2
mirror=${MIRROR:-http://deb.debian.org}
if [ -n "${SNAPSHOT:-}" ]; then
  archive=http://snapshot.debian.org/archive
  debian=$archive/debian/$SNAPSHOT security=$archive/debian-security/$SNAPSHOT
else
  debian="$mirror/debian" security="$mirror/debian-security"
fi
hack/packages.sh mmdebstrap=mmdebstrap
mkdir -p "$out"
out=$(realpath "$out")
made=0
while read -r image packages; do
  [[ -n $image && $image != \#* ]] || continue
  name=${image%%:*}
  (($# == 0)) || [[ " $* " == *" $name "* ]] || continue
  [[ $image == *:* ]] || image=$image:$version
  made=$((made + 1))
  for arch in ${ARCHS:-amd64 arm64}; do
    dir=$out/$name/$arch include=() programs=()
    for p in $packages; do
      if [[ $p == *@ ]]; then programs+=("${p%@}"); else include+=("$p"); fi
    done
    rm -rf "$dir"
    mkdir -p "$dir/bin"
    if ((${#programs[@]})); then
      GOARCH=$arch GOOS=linux hack/workload-programs.sh "$dir/bin" "${programs[@]}"
    fi
    log=$out/$name/$arch.log
    if ! mmdebstrap --variant=extract --architectures="$arch" --include="$(IFS=,; echo "${include[*]}")" \
      --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr --aptopt='Acquire::Check-Valid-Until "false"' \
      bookworm "$dir/root.tar" \
      "deb $debian bookworm main" "deb $debian bookworm-updates main" "deb $security bookworm-security main" \
      >"$log" 2>&1; then
      tail -n 5 "$log" >&2
      echo "cannot get the packages of $image for $arch: see $log" >&2
      exit 1
    fi
  done
  "$out/../testbed/bin/testbed" image "$out/$name.tar" "docker.io/cnsbench/$image" "$out/$name"
  rm -rf "${out:?}/$name"
done <library/images/packages
((made > 0)) || {
  echo "no image $* in library/images/packages" >&2
  exit 1
}
