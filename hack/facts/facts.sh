#!/usr/bin/env bash
# facts.sh CNSBENCH OUT [BLOCKS]: varies one recorded fact at a time, and prints for each which facts `cnsbench
# reproduce` names and which figures changed. It needs root: it makes a loop device of its own for the storage
# directory, so that it can change the device's I/O scheduler and the mount's options, and removes it at the end.
set -euo pipefail
cnsbench=$(realpath "${1:?usage: facts.sh CNSBENCH OUT [BLOCKS]}") out=$(realpath -m "${2:?}") blocks=${3:-6}
here=$(dirname "$(realpath "$0")")
work=$(mktemp -d)
device=
cleanup() {
  mountpoint -q "$work/disk" && umount "$work/disk"
  [[ -n $device ]] && losetup -d "$device"
  rm -rf "$work"
}
trap cleanup EXIT

mkdir -p "$out" "$work/disk"
truncate -s 6G "$work/image"
mkfs.ext4 -q "$work/image"
device=$(losetup --find --show --direct-io=on "$work/image")
mount -o noatime "$device" "$work/disk"
scheduler() { echo "$1" > "/sys/block/${device#/dev/}/queue/scheduler"; }

# class FSTYPE EXPANSION INJECT: the StorageClass.
class() {
  cat <<END
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: loopfile}
provisioner: loopfile.csi.cnsbench.dev
allowVolumeExpansion: $2
parameters: {csi.storage.k8s.io/fstype: $1, driver.cnsbench.dev/inject: '$3'}
END
}

free='{rpcs: {CreateVolume: {delay: 0s}}}'
limited='{rpcs: {CreateVolume: {delay: 300ms}}}'
variants=(base nothing filesystem delay scheduler mount unused)

# run VARIANT BLOCK: one run in which one fact is another, or none.
run() {
  local fs=ext4 expansion=true inject=$free bundle=$out/$1-$2
  scheduler none
  mount -o remount,async "$work/disk"
  case $1 in
    filesystem) fs=xfs ;;
    delay) inject=$limited ;;
    scheduler) scheduler bfq ;;
    mount) mount -o remount,sync "$work/disk" ;;
    unused) expansion=false ;;
  esac
  class "$fs" "$expansion" "$inject" > "$work/class.yaml"
  "$cnsbench" run "$here/benchmark.yaml" "$work/class.yaml" --storage-dir "$work/disk" --out "$bundle" \
    > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }
}

for ((block = 1; block <= blocks; block++)); do
  for variant in $(printf '%s\n' "${variants[@]}" | shuf --random-source=<(yes "$block")); do
    run "$variant" "$block"
  done
done

base=()
for ((block = 1; block <= blocks; block++)); do base+=("$out/base-$block"); done
for variant in "${variants[@]:1}"; do
  with=()
  for ((block = 1; block <= blocks; block++)); do with+=(--with "$out/$variant-$block"); done
  echo "== $variant"
  "$cnsbench" reproduce "${base[@]}" "${with[@]}" | tee "$out/$variant.txt"
done
