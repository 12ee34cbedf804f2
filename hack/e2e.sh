#!/usr/bin/env bash
# Bring the test bed up, run on it what needs a cluster, take it down: also when
# something failed. A test bed that is up already is used, and left up.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "$(id -u)" != 0 ]; then
    echo "the tests on Kubernetes are skipped: the test bed needs root" >&2
    exit 0
fi
if out/testbed/bin/testbed status >/dev/null 2>&1; then
    make testbed-images
else
    trap 'make testbed-down' EXIT
    make testbed-up
fi
KUBECONFIG=$PWD/out/testbed/admin.kubeconfig
CNSBENCH_BIN=$PWD/bin
CNSBENCH_AUDIT_LOG=$PWD/out/testbed/audit.log
PATH=$PWD/out/testbed/bin:$PATH
export KUBECONFIG CNSBENCH_BIN CNSBENCH_AUDIT_LOG PATH
# One package at a time: they share two nodes. Within one, most of the time is spent waiting.
go test -p 1 -parallel 6 -timeout 40m -count=1 -tags e2e ./internal/engine/kubernetes/... ./internal/engine/agent ./internal/results ./test/e2e/kubernetes
