#!/usr/bin/env bash
# Installs what the bench object-peers compares with: wrk of Debian's package,
# and warp, built at the version in hack/peers. The bench says which of them it
# found, and which it did not.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?usage: object-peers.sh DIRECTORY}

hack/packages.sh wrk=wrk
mkdir -p "$out"
go build -C hack/peers -o "$(realpath "$out")/" github.com/minio/warp
