#!/usr/bin/env bash
# Fails when something that is derived from the sources is out of date.
set -euo pipefail
cd "$(dirname "$0")/.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail=0
say() { echo "verify: $*" >&2; fail=1; }

unformatted=$(gofmt -l $(git ls-files '*.go'))
[[ -z $unformatted ]] || say "not formatted (gofmt -w): $unformatted"
go mod tidy -diff >"$tmp/tidy" || { cat "$tmp/tidy"; say "go.mod or go.sum is out of date (go mod tidy)"; }
mkdir "$tmp/crd" "$tmp/object" "$tmp/grafana" "$tmp/opensearch" "$tmp/schema"
cp -r docs/reference "$tmp/reference"
hack/generate.sh "$tmp/crd" "$tmp/object" "$tmp/reference" "$tmp/grafana" "$tmp/opensearch" "$tmp/schema"
for f in "$tmp"/crd/*; do
  diff -u "config/crd/${f##*/}" "$f" || say "config/crd is out of date (make generate)"
done
for d in grafana opensearch; do
  diff -ur "config/$d" "$tmp/$d" || say "the dashboard for $d is out of date (make generate)"
done
diff -u config/schema/cnsbench.json "$tmp/schema/cnsbench.json" || say "the JSON Schema is out of date (make generate)"
diff -ur docs/reference "$tmp/reference" || say "docs/reference is out of date (make generate)"
sed -n '/^```mermaid$/,/^```$/p' docs/design/architecture.md >"$tmp/rooms"
diff -u "$tmp/rooms" <(hack/rooms.sh --mermaid) || say "the picture of the rooms is out of date (hack/rooms.sh --mermaid)"
# References between the files of a package run downwards.
go run ./hack/arrows -most 10 ./internal/... >"$tmp/arrows" ||
  say "too many references between files run back up (go run ./hack/arrows -v PACKAGE)"
diff -u api/v1alpha1/zz_generated.deepcopy.go "$tmp/object/zz_generated.deepcopy.go" || say "deepcopy is out of date (make generate)"
go run ./hack/openapi >"$tmp/openapi.yaml"
diff -u web/openapi.yaml "$tmp/openapi.yaml" || say "web/openapi.yaml is out of date (make generate web)"
mkdir "$tmp/web" "$tmp/script"
hack/web.sh "$tmp/script" "$tmp/web"
diff -u internal/report/html/report.js "$tmp/script/report.js" && diff -ur internal/web/assets "$tmp/web" ||
  say "what is built from web/ is out of date (make web)"
[[ $fail == 0 ]] && echo "verify: all is up to date"
exit $fail
