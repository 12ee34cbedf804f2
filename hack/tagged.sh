#!/usr/bin/env bash
# go test FLAGS ./PACKAGES, only those tests that have the tag e2e, which "make test"
# leaves out; twice where they fail.
set -euo pipefail
packages=()
for a in "$@"; do [[ $a != ./* ]] || packages+=("${a%/...}"); done
names=$(find "${packages[@]}" -name '*_test.go' -exec grep -lx '//go:build e2e' {} + | xargs sed -n 's/^func \(Test[A-Za-z0-9]*\)(.*/\1/p' | sort -u | paste -sd'|')
exec hack/retest.sh -count=1 -tags e2e,grpcnotrace -run "^($names)\$" "$@"
