#!/usr/bin/env bash
# depguard.sh CONFIG: fails when the import rules in CONFIG allow a module that go.mod does not require directly, or a
# package of ours that is not there, or are for a folder that is not.
set -euo pipefail
config=${1:?usage: depguard.sh CONFIG}
direct=$(go list -m -f '{{if not .Indirect}}{{.Path}}{{end}}' all)
own=$(go list -m)
status=0
say() { echo "$config: $*" >&2; status=1; }

# known says whether an entry names a required module, a package of one, or a prefix of one.
known() {
  local entry=$1 m
  for m in $direct; do
    [[ $m == "$entry" || $entry == "$m"/* || $m == "${entry%/}"/* ]] && return
  done
  return 1
}

while read -r entry; do
  entry=${entry%\$}
  case $entry in
    "$own" | "$own"/*) [[ -d .${entry#"$own"} ]] || say "allows $entry, which is not there" ;;
    *) known "${entry%/}" || say "allows $entry, which go.mod does not require" ;;
  esac
done < <(grep -oE '^ +- [a-z0-9.-]+\.[a-z]+/[^ ]+' "$config" | sed 's/^ *- //' | sort -u)

while read -r pattern; do
  folder=${pattern#\*\*/} folder=${folder%/\*.go}
  [[ -d ${folder%/\*\*} ]] || say "has rules for $folder, which is not there"
done < <(grep -oE '"\*\*/[^"]+"' "$config" | tr -d '"' | sort -u)
exit $status
