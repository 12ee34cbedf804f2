#!/usr/bin/env bash
# workload-programs.sh DIRECTORY: builds the programs of the built-in library that Debian does not have: etcd's
# benchmark and go-ycsb, at the versions in hack/workloads, and FerretDB, at that in hack/workloads/ferretdb.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?usage: workload-programs.sh DIRECTORY}

mkdir -p "$out"
out=$(realpath "$out")
export CGO_ENABLED=0
go build -C hack/workloads -trimpath -o "$out/etcd-benchmark" go.etcd.io/etcd/v3/tools/benchmark
go build -C hack/workloads -trimpath -o "$out/go-ycsb" ./go-ycsb
go build -C hack/workloads/ferretdb -trimpath -tags ferretdb_no_postgresql -o "$out/ferretdb" .
