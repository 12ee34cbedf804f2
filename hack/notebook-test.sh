#!/usr/bin/env bash
# Runs the blocks of docs/how-to/notebook.md: the demo, its export, the packages of PyPI in a virtual environment, and
# the notebook, whose cells must not fail and must leave all its figures.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=out/notebook # as the page has it
rm -rf "$dir/run" "$dir"/*.parquet "$dir/figures"
mkdir -p "$dir"
awk '/^<!-- test: notebook -->$/ {marked = 1; next} /^```sh$/ && marked {block = 1; next}
  /^```$/ {block = marked = 0} block' docs/how-to/notebook.md >"$dir/commands.sh"
grep -q 'run.py' "$dir/commands.sh" ||
  { echo "docs/how-to/notebook.md has no block that runs the notebook" >&2; exit 1; }
bash -euo pipefail "$dir/commands.sh"
for name in stalls iops distribution; do
  grep -q '<svg' "$dir/figures/$name.svg" || { echo "$name.svg is no SVG" >&2; exit 1; }
  [[ $(head -c 5 "$dir/figures/$name.pdf") == %PDF- ]] || { echo "$name.pdf is no PDF" >&2; exit 1; }
done
