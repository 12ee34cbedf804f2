#!/usr/bin/env bash
# Run each fuzz target for a time (30s, or the first argument), one after another, on one CPU; a second argument chooses
# targets by a regular expression. New inputs are kept in the build cache; one that fails is written to testdata/fuzz of
# its package, from where go test runs it: commit it with the change that mends it.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-30s} chosen=${2:-.}
failed=()
while IFS=: read -r file _ func; do
    name=${func#func } name=${name%%(*} package=./$(dirname "$file")
    [[ $package/$name =~ $chosen ]] || continue
    echo "== $package $name"
    go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" -parallel 1 "$package" || failed+=("$package $name")
done < <(grep -rn '^func Fuzz' --include='*_test.go' internal | sort)
[ ${#failed[@]} = 0 ] || { printf 'failed: %s\n' "${failed[@]}" >&2; exit 1; }
