#!/usr/bin/env bash
# go test FLAGS ./PACKAGES, and once more for each test that failed: on a shared
# machine a test about time may fail by its neighbours. Both outcomes are printed;
# a test that fails twice is a failure. What ends without naming a test, or before
# all have run (a build, a panic, a timeout), is not tried again.
set -uo pipefail
log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'exit 130' INT TERM # what was interrupted has not passed
go test "$@" 2>&1 | tee "$log" && exit 0
flags=()
for a in "$@"; do [[ $a == ./* ]] || flags+=("$a"); done
if grep -qE '^(panic: |fatal error: |# )|\[(build|setup) failed\]' "$log"; then
    exit 1
fi
# Of each package that failed, the names of its tests that did.
failed=$(awk '/^--- FAIL: /{n = n "|" $3} /^ok  ?\t/{n = ""} /^FAIL\t/{print $2, substr(n, 2); n = ""}' "$log")
status=0
while read -r package tests; do
    if [ -z "$tests" ]; then
        echo "$package failed without naming a test" >&2
        exit 1
    fi
    echo "=== once more: $tests of $package, which failed above" >&2
    if go test "${flags[@]}" -run "^($tests)\$" "$package" </dev/null; then
        echo "=== passed the second time, alone: $tests" >&2
    else
        status=1
    fi
done <<<"$failed"
[ -n "$failed" ] && exit $status
exit 1
