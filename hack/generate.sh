#!/usr/bin/env bash
# Regenerates deepcopy, the CRD and its copy in the chart, the dashboards, the JSON Schema for editors, the description
# of the web interface's API, and the generated parts of docs/reference. With arguments they go there instead:
# generate.sh CRD-FOLDER DEEPCOPY-FOLDER PAGES-FOLDER GRAFANA-FOLDER OPENSEARCH-FOLDER SCHEMA-FOLDER. The third has
# copies of the pages of docs/reference.
set -euo pipefail
cd "$(dirname "$0")/.."
gen=(go tool -modfile=hack/tools/go.mod controller-gen)
"${gen[@]}" object paths=./api/... "output:object:dir=${2:-api/v1alpha1}"
"${gen[@]}" crd:maxDescLen=400 paths=./api/... "output:crd:dir=${1:-config/crd}"
if [ $# = 0 ]; then # Helm takes what lies in the chart, and follows no link out of it
    cp config/crd/cnsbench.dev_benchmarks.yaml charts/cnsbench/crds/
    go run ./hack/openapi >web/openapi.yaml
fi
go run ./hack/reference api/v1alpha1 "${3:-docs/reference}"
go run -C hack/dashboard . grafana >"$(realpath "${4:-config/grafana}")/cnsbench.json"
go run -C hack/dashboard . opensearch >"$(realpath "${5:-config/opensearch}")/cnsbench.ndjson"
go run ./hack/jsonschema -own "${1:-config/crd}/cnsbench.dev_benchmarks.yaml" >"${1:-config/crd}/benchmark.schema.json"
go run ./hack/jsonschema "${1:-config/crd}/cnsbench.dev_benchmarks.yaml" >"${6:-config/schema}/cnsbench.json"
