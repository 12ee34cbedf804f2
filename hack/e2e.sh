#!/usr/bin/env bash
# Run the tests with the tag e2e, which "make test" leaves out: first those of the
# built binaries, then, on the test bed, those that need a cluster. It is brought
# up and taken down, and what is left is looked for, also when something failed. One
# that is up already is used, and left up. Where it cannot run this says why, and passes.
set -euo pipefail
cd "$(dirname "$0")/.."

# tagged runs the tests with the tag of packages, by flags; twice where they fail.
tagged() {
    local flags=("$@") packages=() names
    while [[ ${flags[-1]} == ./* ]]; do
        packages+=("${flags[-1]}")
        unset 'flags[-1]'
    done
    names=$(find "${packages[@]%/...}" -name '*_test.go' -exec grep -lx '//go:build e2e' {} + | xargs sed -n 's/^func \(Test[A-Za-z0-9]*\)(.*/\1/p' | sort -u | paste -sd'|')
    hack/retest.sh "${flags[@]}" -count=1 -tags e2e -run "^($names)\$" "${packages[@]}"
}

# One package at a time: what is compiled beside a measurement is seen by it.
tagged -p 1 -timeout 30m ./test/e2e ./test/extend

skip() {
    echo "the tests on Kubernetes are skipped: $1" >&2
    exit 0
}
[ "$(id -u)" = 0 ] || skip "the test bed needs root"
unshare --net --mount true 2>/dev/null || skip "namespaces of network and mounts may not be made here"
cgroups=/sys/fs/cgroup
[ -e $cgroups/cgroup.controllers ] || cgroups=$cgroups/memory
mkdir "$cgroups/cnsbench-$$" 2>/dev/null || skip "cgroups may not be made in $cgroups"
rmdir "$cgroups/cnsbench-$$"
[ -e /dev/loop-control ] || skip "there are no loop devices"
other=$(cat /run/cnsbench-testbed/state 2>/dev/null || true)
[ ! -d "$other" ] || [ "$other" = "$(realpath -m out/testbed)" ] || skip "there is a test bed already, with its state in $other"

# What the test bed, or a driver in it, may leave on the machine.
left() {
    grep -F " $PWD/out/testbed/" /proc/self/mountinfo || true
    losetup --list --noheadings --output NAME,BACK-FILE | grep -F "$PWD/out/testbed/" || true
    ip netns list | grep '^cnsb' || true
    ip -o link show type bridge | grep br-cnsb || true
    pgrep -a -f "^$PWD/out/testbed/bin/" || true
    find /sys/fs/cgroup -maxdepth 2 -name 'cnsb[12]' || true
}
down() {
    status=$?
    make testbed-down || status=1
    if [ -n "$(left)" ]; then
        echo "left after the test bed was taken down:" >&2
        left >&2
        status=1
    fi
    exit $status
}
if out/testbed/bin/testbed status >/dev/null 2>&1; then
    make testbed-images
else
    trap down EXIT
    make testbed-up
    export CNSBENCH_TESTBED_IS_OURS=yes
fi
KUBECONFIG=$PWD/out/testbed/admin.kubeconfig
CNSBENCH_BIN=$PWD/bin
CNSBENCH_AUDIT_LOG=$PWD/out/testbed/audit.log
PATH=$PWD/out/testbed/bin:$PATH
export KUBECONFIG CNSBENCH_BIN CNSBENCH_AUDIT_LOG PATH
# One package at a time: they share two nodes. Within one, most of the time is spent waiting.
tagged -p 1 -parallel 6 -timeout 40m ./internal/engine/kubernetes/... ./internal/engine/agent ./internal/results ./test/e2e/kubernetes
