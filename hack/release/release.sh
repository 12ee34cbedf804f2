#!/usr/bin/env bash
# release.sh VERSION FOLDER ARCH…: makes what a release has, for Linux: an archive, a deb and an rpm of each
# architecture, their checksums, a manifest for krew and a formula for Homebrew. The variable LDFLAGS is passed to the
# linker. An architecture is one of Go's: amd64, arm64. Times in archives and packages are SOURCE_DATE_EPOCH, so that the
# same sources make the same files.
#
# SIGN=1 signs SHA256SUMS with cosign, keyless: the identity is that of the job or person who signs. UNTRIED: it needs
# cosign, an OIDC provider and the public services of Sigstore. To verify:
#   cosign verify-blob --bundle SHA256SUMS.sigstore.json --certificate-identity IDENTITY \
#     --certificate-oidc-issuer ISSUER SHA256SUMS
set -euo pipefail
version=$1 out=$(realpath -m "$2")
shift 2
cd "$(dirname "$0")/../.."
tool() { go tool -modfile=hack/release/go.mod "$@"; }
# A build without a tag, whose version is that of a commit, is older than any release.
plain=${version#v}
[[ $plain =~ ^[0-9]+(\.[0-9]+){2} ]] || plain=0.0.0~$plain

rm -rf "$out"
mkdir -p "$out/files/completion"
go run -ldflags "$LDFLAGS" ./hack/man "$out/files/man1"
gzip -9n "$out"/files/man1/*.1
for shell in bash zsh fish; do
  go run ./cmd/cnsbench completion "$shell" >"$out/files/completion/$shell"
done
for arch in "$@"; do
  name=cnsbench-$version-linux-$arch
  mkdir "$out/$name"
  GOOS=linux GOARCH=$arch CGO_ENABLED=0 go build -trimpath -ldflags "$LDFLAGS" -o "$out/$name/" \
    ./cmd/cnsbench ./cmd/cnsbench-agent
  cp -r README.md LICENSE examples "$out/files/man1" "$out/files/completion" "$out/$name/"
  tar -C "$out" --sort=name --mtime="@${SOURCE_DATE_EPOCH:-0}" --owner=0 --group=0 --numeric-owner --mode=go-w \
    -cf - "$name" | gzip -9n >"$out/$name.tar.gz"
  for kind in deb rpm; do
    BUILT=$out/$name FILES=$out/files ARCH=$arch PACKAGE_VERSION=$plain tool nfpm package \
      --config hack/release/nfpm.yaml --packager "$kind" --target "$out/$name.$kind"
  done
  rm -r "${out:?}/$name"
done
rm -r "$out/files"
cd "$out"
sha256sum ./*.tar.gz ./*.deb ./*.rpm | sed 's# \./# #' >SHA256SUMS
if [[ -n ${SIGN:-} ]]; then
  cosign sign-blob --yes --bundle SHA256SUMS.sigstore.json SHA256SUMS
fi
sum() { sed -n "s/  cnsbench-.*-linux-$1.tar.gz$//p" SHA256SUMS; }
for template in "$OLDPWD"/hack/release/{cnsbench.yaml,cnsbench.rb}; do
  sed -e "s/@VERSION@/v${plain//\~/-}/g; s/@TAG@/$version/g; s/@AMD64@/$(sum amd64)/; s/@ARM64@/$(sum arm64)/" \
    "$template" >"${template##*/}"
done
ls -1 "$out"
