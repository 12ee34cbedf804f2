#!/usr/bin/env bash
# workload-programs.sh DIRECTORY: builds the programs of the built-in library that Debian does not have: etcd's
# benchmark, at the version in hack/workloads.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?usage: workload-programs.sh DIRECTORY}

mkdir -p "$out"
CGO_ENABLED=0 go build -C hack/workloads -trimpath -o "$(realpath "$out")/etcd-benchmark" go.etcd.io/etcd/v3/tools/benchmark
