#!/usr/bin/env bash
# Prints which rooms of internal import which, from go list: "FROM TO" a line, or with
# --mermaid the picture of docs/design/architecture.md. Fails where rooms import each
# other in a circle. A room is a folder of internal; engines are rooms of their own.
set -euo pipefail
cd "$(dirname "$0")/.."
module=$(go list -m)
edges=$(go list -f '{{$p := .ImportPath}}{{range .Imports}}{{$p}} {{.}}{{"\n"}}{{end}}' ./internal/... |
    awk -v root="$module/internal/" '
        function room(p,    s) {
            split(substr(p, length(root) + 1), s, "/")
            return s[1] == "engine" && s[2] != "" ? "engine/" s[2] : s[1]
        }
        index($1, root) == 1 && index($2, root) == 1 {
            a = room($1); b = room($2)
            if (a != b) print a, b
        }' | sort -u)
if ! loop=$(tsort <<<"$edges" 2>&1 >/dev/null) || [ -n "$loop" ]; then
    echo "rooms import each other in a circle:" >&2
    echo "$loop" >&2
    exit 1
fi
if [ "${1:-}" != --mermaid ]; then
    echo "$edges"
    exit
fi
# A leaf imports no room, or only such that import none; arrows to leaves are left out.
leaves=" $(awk '
    { from[$1]; to[$2]; edge[NR] = $0 }
    END {
        for (i in edge) { split(edge[i], e, " "); if (e[2] in from) above[e[1]] }
        for (r in to) if (!(r in above)) print r
    }' <<<"$edges" | sort | tr '\n' ' ')"
echo '```mermaid'
echo 'flowchart TD'
echo "    leaves[\"leaves:${leaves% }\"]"
while read -r a b; do
    [[ $leaves == *" $a "* || $leaves == *" $b "* ]] || echo "    ${a//\//_}[\"$a\"] --> ${b//\//_}[\"$b\"]"
done <<<"$edges"
echo '```'
