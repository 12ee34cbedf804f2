#!/usr/bin/env bash
# install.sh VERSION FOLDER: unpacks a release of CNSBench into a folder, after its checksum was checked.
# CNSBENCH_RELEASES is where releases are (default the project's on GitHub).
set -euo pipefail
version=$1 folder=$2
case $(uname -m) in
x86_64) arch=amd64 ;;
aarch64) arch=arm64 ;;
*) echo "there is no release for $(uname -m): want x86_64 or aarch64" >&2; exit 1 ;;
esac
from=${CNSBENCH_RELEASES:-https://github.com/cnsbench/cnsbench/releases/download}/$version
archive=cnsbench-$version-linux-$arch.tar.gz
mkdir -p "$folder"
cd "$folder"
curl --fail --silent --show-error --location --remote-name-all "$from/$archive" "$from/SHA256SUMS"
sha256sum --check --ignore-missing --strict SHA256SUMS
tar -xzf "$archive" --strip-components=1
