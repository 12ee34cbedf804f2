#!/usr/bin/env bash
# go test FLAGS ./PACKAGES, and once more for each test that failed: on a shared
# machine a test about time may fail by its neighbours. Both outcomes are printed,
# and last the tests that passed only the second time. A test that fails twice is a
# failure, and so are more than three that need the second time. What ends without
# naming a test, or before all have run (a build, a panic, a timeout), is not run again.
set -uo pipefail
most=3
log=$(mktemp) second=$(mktemp)
trap 'rm -f "$log" "$second"' EXIT
trap 'exit 130' INT TERM # what was interrupted has not passed
go test -ldflags=-w "$@" 2>&1 | tee "$log" && exit 0
flags=()
for a in "$@"; do [[ $a == ./* ]] || flags+=("$a"); done
if grep -qE '^(panic: |fatal error: |# )|\[(build|setup) failed\]' "$log"; then
    exit 1
fi
# Of each package that failed, the names of its tests that did.
failed=$(awk '/^--- FAIL: /{n = n "|" $3} /^ok  ?\t/{n = ""} /^FAIL\t/{print $2, substr(n, 2); n = ""}' "$log")
[ -n "$failed" ] || exit 1
status=0 again=()
while read -r package tests; do
    if [ -z "$tests" ]; then
        echo "$package failed without naming a test" >&2
        status=1
        continue
    fi
    echo "=== once more: $tests of $package, which failed above" >&2
    go test -ldflags=-w "${flags[@]}" -run "^($tests)\$" "$package" </dev/null 2>&1 | tee "$second" || status=1
    for t in ${tests//|/ }; do
        ! grep -q "^ok\|^--- " "$second" || grep -qF -- "--- FAIL: $t " "$second" || again+=("$t ($package)")
    done
done <<<"$failed"
if ((${#again[@]})); then
    echo "=== passed only the second time: ${#again[@]}" >&2
    printf '    %s\n' "${again[@]}" >&2
fi
if ((${#again[@]} > most)); then
    echo "=== failed: at most $most tests may need a second time" >&2
    status=1
fi
exit $status
