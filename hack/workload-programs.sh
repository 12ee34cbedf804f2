#!/usr/bin/env bash
# workload-programs.sh DIRECTORY [PROGRAM…]: builds the programs of the built-in library that Debian does not have:
# etcd's benchmark and go-ycsb, at the versions in hack/workloads, and FerretDB, at that in hack/workloads/ferretdb; all,
# or those named.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?usage: workload-programs.sh DIRECTORY [PROGRAM…]}
shift

mkdir -p "$out"
out=$(realpath "$out")
export CGO_ENABLED=0
(($#)) || set -- etcd-benchmark go-ycsb ferretdb
for program in "$@"; do
  case $program in
  etcd-benchmark) go build -C hack/workloads -trimpath -o "$out/$program" go.etcd.io/etcd/v3/tools/benchmark ;;
  go-ycsb) go build -C hack/workloads -trimpath -o "$out/$program" ./go-ycsb ;;
  ferretdb) go build -C hack/workloads/ferretdb -trimpath -tags ferretdb_no_postgresql -o "$out/$program" . ;;
  *)
    echo "no program $program" >&2
    exit 1
    ;;
  esac
done
