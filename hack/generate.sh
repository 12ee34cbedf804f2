#!/usr/bin/env bash
# Regenerates deepcopy and the CRD. With an argument the CRD goes there instead.
set -euo pipefail
cd "$(dirname "$0")/.."
gen=(go tool -modfile=hack/tools/go.mod controller-gen)
"${gen[@]}" object paths=./api/... "output:object:dir=${2:-api/v1alpha1}"
"${gen[@]}" crd:maxDescLen=400 paths=./api/... "output:crd:dir=${1:-config/crd}"
