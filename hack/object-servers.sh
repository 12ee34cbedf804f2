#!/usr/bin/env bash
# Installs the servers that the tests of object storage meet, where it may:
# OpenStack Swift, Keystone and a RADOS gateway of Debian's packages (no service
# of theirs is started), and versitygw, built at the version in hack/servers. An ordinary user
# is told the packages; the tests that need them then skip, and say so.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?usage: object-servers.sh DIRECTORY}

hack/packages.sh swift-proxy-server=swift-proxy swift-account-server=swift-account swift-container-server=swift-container \
  swift-object-server=swift-object memcached=memcached keystone-manage=python3-keystone \
  /usr/lib/python3/dist-packages/keystonemiddleware=python3-keystonemiddleware \
  ceph=ceph-common ceph-mon=ceph-mon ceph-osd=ceph-osd radosgw=radosgw
mkdir -p "$out"
go build -C hack/servers -o "$(realpath "$out")/" github.com/versity/versitygw/cmd/versitygw
