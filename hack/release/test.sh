#!/usr/bin/env bash
# test.sh FOLDER: installs the packages of a release in fresh roots, runs what they bring, and removes them; checks the
# checksums, the manifests and the templates for CI. Needs root (chroot), and the network for a minimal Debian.
set -euo pipefail
release=$(realpath "$1")
cd "$(dirname "$0")/../.."
tool() { go tool -modfile=hack/release/go.mod "$@"; }
arch=$(go env GOARCH)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
hack/packages.sh /usr/sbin/debootstrap=debootstrap rpm=rpm ruby=ruby

# inside CHROOT COMMAND…: runs a command in a root, with a /proc that is gone at its end.
inside() {
  local root=$1
  shift
  mkdir -p "$root/proc"
  unshare --pid --fork --mount-proc="$root/proc" chroot "$root" "$@"
}
# works CHROOT: the programs, the manual and the examples are where they belong, and a run gives a report.
works() {
  inside "$1" cnsbench --version
  inside "$1" kubectl-cnsbench --version
  [[ -s $1/usr/share/man/man1/cnsbench-run.1.gz && -s $1/usr/share/bash-completion/completions/cnsbench ]]
  inside "$1" cnsbench run /usr/share/doc/cnsbench/examples/null-poisson.yaml --out /tmp/bundle >"$1/tmp/out"
  grep -q complete "$1/tmp/out"
  [[ -s $1/tmp/bundle/report.html ]]
}
# gone CHROOT: nothing of the package is left.
gone() { [[ -z $(find "$1/usr" -name '*cnsbench*' -print -quit) ]]; }

(cd "$release" && sha256sum --check --strict --quiet SHA256SUMS)

debootstrap --variant=minbase --include=ca-certificates bookworm "$tmp/debian" >"$tmp/log" ||
  { tail "$tmp/log"; exit 1; }
cp "$release"/cnsbench-*-linux-"$arch".deb "$tmp/debian/tmp/cnsbench.deb"
# Minimal images leave out documentation, and with it the examples.
rm -f "$tmp"/debian/etc/dpkg/dpkg.cfg.d/*
chroot "$tmp/debian" dpkg --install /tmp/cnsbench.deb
works "$tmp/debian"
chroot "$tmp/debian" dpkg --remove cnsbench
gone "$tmp/debian"

mkdir -p "$tmp/rpm/tmp" "$tmp/rpm/dev"
mknod -m 666 "$tmp/rpm/dev/null" c 1 3
rpm --root "$tmp/rpm" --initdb
rpm --root "$tmp/rpm" --install --nodeps --ignorearch "$release"/cnsbench-*-linux-"$arch".rpm
works "$tmp/rpm"
rpm --root "$tmp/rpm" --erase cnsbench
gone "$tmp/rpm"

mkdir "$tmp/releases"
version=$(basename "$release"/cnsbench-*-linux-"$arch".tar.gz "-linux-$arch.tar.gz")
version=${version#cnsbench-}
ln -s "$release" "$tmp/releases/$version"
CNSBENCH_RELEASES=file://$tmp/releases ci/install.sh "$version" "$tmp/installed"
"$tmp/installed/cnsbench" --version

tool validate-krew-manifest -manifest "$release/cnsbench.yaml" -skip-install
ruby -c "$release/cnsbench.rb"
tool actionlint ci/github-workflow.yml
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install --quiet check-jsonschema
"$tmp/venv/bin/check-jsonschema" --builtin-schema vendor.github-actions action.yml
"$tmp/venv/bin/check-jsonschema" --builtin-schema vendor.github-workflows ci/github-workflow.yml
"$tmp/venv/bin/check-jsonschema" --builtin-schema vendor.gitlab-ci ci/gitlab.yml
echo "release: all is well"
