#!/usr/bin/env bash
# audit.sh FOLDER: checks what the programs are made of, and writes FOLDER/cnsbench.cdx.json and
# FOLDER/cnsbench-agent.cdx.json: their modules and licences (SBOM, CycloneDX).
#
# Vulnerabilities: govulncheck with the database VULNDB (default https://vuln.go.dev). Without a network, fetch
# https://vuln.go.dev/vulndb.zip elsewhere, unpack it, and give its folder: make audit VULNDB=file:///FOLDER. A database
# that cannot be read fails the audit: nothing was checked.
set -euo pipefail
out=$(realpath -m "$1") db=${VULNDB:-https://vuln.go.dev}
cd "$(dirname "$0")/.."
mkdir -p "$out"
tool() { go tool -modfile=hack/audit/go.mod "$@"; }
failed=()
fail() { echo "audit: $*" >&2; failed+=("${*%%:*}"); }

echo "== code (gosec; the exclusions and their reasons are in .golangci.yml)"
go tool -modfile=hack/tools/go.mod golangci-lint run --timeout 20m --enable-only gosec ./... || fail "code: gosec has findings, or failed"

echo "== modules and licences"
for program in cnsbench cnsbench-agent; do
  tool cyclonedx-gomod bin -json -licenses -assert-licenses -noserial -notimestamp -version "${VERSION:-devel}" \
    -output "$out/$program.cdx.json" "bin/$program" 2>"$out/sbom.log" ||
    { cat "$out/sbom.log" >&2; fail "SBOM: $program"; continue; }
  go run ./hack/licenses "$out/$program.cdx.json" || fail "licences: $program"
done

echo "== vulnerabilities (govulncheck, $db)"
if [[ $db == file://* ]]; then
  readable() { [[ -s ${db#file://}/index/db.json ]]; }
else
  readable() { curl --fail --silent --show-error --max-time 20 --output /dev/null "$db/index/db.json"; }
fi
if ! readable; then
  fail "vulnerabilities: NOT CHECKED: $db has no database that can be read; see VULNDB in hack/audit.sh"
elif ! tool govulncheck -db "$db" ./...; then
  fail "vulnerabilities: govulncheck has findings, or failed"
fi

[[ ${#failed[@]} == 0 ]] || { echo "audit: failed: $(IFS=,; echo "${failed[*]}")" >&2; exit 1; }
echo "audit: no findings; $out has the SBOMs"
