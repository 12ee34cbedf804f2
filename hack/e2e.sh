#!/usr/bin/env bash
# Run the tests that need a cluster, on the test bed. It is brought up and taken
# down, and what is left is looked for, also when something failed. One that is up
# already is used, and left up. Where it cannot run this says why, and skips; where
# the variable CI is set it fails. With an argument, only those tests of test/e2e/kubernetes run that it matches.
set -euo pipefail
cd "$(dirname "$0")/.."

skip() {
    if [ -n "${CI:-}" ]; then
        echo "the tests on Kubernetes cannot run: $1; unset CI to skip them" >&2
        exit 1
    fi
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
# Of another test bed without processes, make testbed-up undoes what is left.
if [ -n "$other" ] && [ "$other" != "$(realpath -m out/testbed)" ] && pgrep -f "^$other/bin/" >/dev/null; then
    skip "there is a test bed already, with its state in $other;
take it down with: TESTBED_DIR=$other $other/bin/testbed down"
fi

# What the test bed, or a driver in it, may leave on the machine.
left() {
    grep -F " $PWD/out/testbed/" /proc/self/mountinfo || true
    losetup --list --noheadings --output NAME,BACK-FILE | grep -F "$PWD/out/testbed/" || true
    ip netns list | grep '^cnsb' || true
    ip -o link show type bridge | grep br-cnsb || true
    pgrep -a -f "^$PWD/out/testbed/bin/" || true
    find /sys/fs/cgroup -maxdepth 2 -name 'cnsb[12]' || true
}
# What a test bed changes of the machine beside its own folders.
machine() {
    head /proc/sys/vm/overcommit_memory /proc/sys/kernel/panic /proc/sys/kernel/panic_on_oops
    findmnt --noheadings --output TARGET /run/netns || true
    ls -d /var/lib/kubelet /var/lib/cni /var/log/containers /var/log/pods /opt/containerd /opt/cni \
        /etc/cni 2>/dev/null || true
}
down() {
    status=$?
    make testbed-down || status=1
    if ! diff <(echo "$before") <(machine) >&2; then
        echo "the machine is not as before the test bed: < before, > after" >&2
        status=1
    fi
    if [ -n "$(left)" ]; then
        echo "left after the test bed was taken down:" >&2
        left >&2
        status=1
    fi
    exit $status
}
ours=
if out/testbed/bin/testbed status >/dev/null 2>&1; then
    make testbed-images
else
    before=$(machine)
    trap down EXIT
    make testbed-up
    ours=yes
fi
KUBECONFIG=$PWD/out/testbed/admin.kubeconfig
CNSBENCH_BIN=$PWD/bin
CNSBENCH_AUDIT_LOG=$PWD/out/testbed/audit.log
PATH=$PWD/out/testbed/bin:$PATH
export KUBECONFIG CNSBENCH_BIN CNSBENCH_AUDIT_LOG PATH
if [ -n "${1:-}" ]; then
    CNSBENCH_TESTBED_IS_OURS=$ours go test -count=1 -v -timeout 3h -tags e2e,grpcnotrace -run "$1" ./test/e2e/kubernetes
    exit
fi
# One package at a time: they share two nodes. Within one, most of the time is spent waiting.
hack/tagged.sh -p 1 -parallel 4 -timeout 40m ./internal/engine/kubernetes/... ./internal/agent ./internal/bundle/server ./test/e2e/kubernetes
CNSBENCH_TESTBED_IS_OURS=$ours go test -count=1 -tags e2e,grpcnotrace -run '^TestNothingIsLeft$' ./test/e2e/kubernetes
