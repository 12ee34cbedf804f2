#!/usr/bin/env bash
# test.sh OUT BIN: brings a Ceph and a GlusterFS up in OUT, tests the drivers and the product on them, leaves volumes
# mounted, takes both down, and looks for what is left. Where they cannot run this says why, and skips; where the
# variable CI is set it fails.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$(realpath -m "${1:?usage: test.sh OUT BIN}") bin=$(realpath -m "${2:?usage: test.sh OUT BIN}")

skip() {
  if [[ -n ${CI:-} ]]; then
    echo "the tests on Ceph and GlusterFS cannot run: $1; unset CI to skip them" >&2
    exit 1
  fi
  echo "the tests on Ceph and GlusterFS are skipped: $1" >&2
  exit 0
}
[[ $(id -u) == 0 ]] || skip "they need root"
unshare --net true 2>/dev/null || skip "network namespaces may not be made here"
[[ -e /dev/loop-control ]] || skip "there are no loop devices"
[[ -e /dev/fuse ]] || skip "there is no FUSE"
free=$(df --output=avail -k "$(dirname "$out")" | tail -n 1)
((free > 8 * 1024 * 1024)) || skip "less than 8 GiB are free for $out"

make ceph-driver gluster-driver

export STORAGE_BIN=$bin CEPH_DIR=$out/ceph GLUSTER_DIR=$out/gluster
stay=$(mktemp -d)
left() {
  findmnt --noheadings --list --output TARGET,SOURCE | grep -F -e "$out/" -e "$stay/" || true
  losetup --list --noheadings --output NAME,BACK-FILE | grep -F "$out/" || true
  pgrep -a -f -- "$out/" | grep -v "test.sh" || true
  find "$out" -mindepth 2 -maxdepth 2 ! -name log ! -name truth
}
down() {
  local status=$?
  hack/storage/ceph.sh down "$CEPH_DIR" "$bin" || status=1
  hack/storage/gluster.sh down "$GLUSTER_DIR" "$bin" || status=1
  if [[ -n $(left) ]]; then
    echo "left after both were taken down:" >&2
    left >&2
    status=1
  fi
  rm -rf --one-file-system "$stay"
  exit "$status"
}
mkdir -p "$out"
trap down EXIT
hack/storage/gluster.sh up "$GLUSTER_DIR" "$bin" & # much of both is waiting
gluster=$!
hack/storage/ceph.sh up "$CEPH_DIR" "$bin"
wait "$gluster"
test=(go test -C test/storagedriver -tags pacific,grpcnotrace -count=1)
CGO_ENABLED=1 "${test[@]}" ./ceph ./csikit
"${test[@]}" -v -parallel 4 -timeout 10m . | tee "$out/test.log" | grep -E '^ *(---|ok|FAIL|panic|[a-z_]+\.go:)'
go test -tags e2e,grpcnotrace -count=1 -v -timeout 15m -run '^TestCeph' ./test/e2e | tee "$out/product.log" |
  grep -E '^ *(---|ok|FAIL|panic|[a-z_]+\.go:)'
STORAGEDRIVER_TEST_STAY=$stay "${test[@]}" -run '^TestStay$' .
