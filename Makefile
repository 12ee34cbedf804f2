# CNSBench. `make help` lists the targets.
SHELL   := /bin/bash
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
MODULE  := github.com/cnsbench/cnsbench/internal
LDFLAGS := -s -w -X $(MODULE)/version.Version=$(VERSION) -X $(MODULE)/agent/protocol.Version=$(VERSION)
TOOL    := go tool -modfile=hack/tools/go.mod
OUT     ?= out
# The same flags for build, tests and lint: each package is compiled once, whichever directory a clone is in.
export CGO_ENABLED := 0
# grpcnotrace leaves out gRPC's trace pages, whose templates would make the linker keep all exported methods.
export GOFLAGS := -trimpath -tags=grpcnotrace $(filter-out -trimpath -tags=%,$(GOFLAGS))
# What make workload-servers builds is found by its name.
export PATH := $(abspath $(OUT))/workloads:$(PATH)

.DEFAULT_GOAL := help
.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: deps
deps: ## install fio, xfsprogs and btrfs-progs if they are missing, or name them
	@hack/deps.sh

.PHONY: build
build: ## build bin/cnsbench and bin/cnsbench-agent
	@mkdir -p bin
	go build -ldflags '$(LDFLAGS)' -o bin/ ./cmd/cnsbench ./cmd/cnsbench-agent
	@ln -sf cnsbench bin/kubectl-cnsbench

.PHONY: demo
demo: deps build ## benchmark real volumes of this machine: three fio instances, a snapshot each 5 s
	@hack/demo.sh '$(OUT)'

# Packages whose tests take longest begin first, so that none is left alone at the end. Three packages and four tests of
# each run at a time, because many wait. make lint vets. Without debugging information the test programs are linked in
# less time.
LONGEST := ./test/e2e ./internal/cli ./internal/engine/local ./internal/csi/csidriver
.PHONY: test
test: deps build ## run the tests; those that need root say so and skip
	go test -vet=off -ldflags=-w -p 3 -parallel 4 -timeout 20m $(LONGEST) ./...

.PHONY: lint
lint: ## run the pinned golangci-lint, which also checks the import rules
	$(TOOL) golangci-lint run ./...

.PHONY: generate
generate: ## regenerate deepcopy, the CRD, the JSON Schema and the generated parts of docs/reference
	@hack/generate.sh

.PHONY: web
web: ## build the web interface and the script of the report from web/
	@hack/web.sh

.PHONY: test-web
test-web: deps build ## walk the pages of the web interface in Chromium, a live run included; pictures: out/web/shots
	@hack/web-test.sh '$(OUT)'

.PHONY: notebook-test
notebook-test: deps build ## run the demo, and examples/notebook on its tables (packages of PyPI in out/notebook/venv)
	@hack/notebook-test.sh

.PHONY: pictures
pictures: deps build ## run the demo and make the pictures of docs/gallery.md (quiet machine, root)
	@hack/pictures.sh

.PHONY: chart-test
chart-test: ## lint and render the Helm chart, and compare it with what install applies
	cd test/chart && go test ./...

.PHONY: verify
verify: chart-test ## fail if go.mod, generated code or formatting is out of date
	@hack/verify.sh

.PHONY: corpus
corpus: deps build workload-servers object-peers ## make the corpora of the readers anew with the real programs (hack/corpus)
	hack/corpus/fio.sh internal/workload/parser/testdata/corpus/fio
	hack/corpus/databases.sh internal/workload/parser/testdata/corpus
	hack/corpus/applications.sh internal/workload/parser/testdata/corpus '$(OUT)/workloads'
	hack/packages.sh zstd=zstd
	hack/corpus/warp.sh internal/workload/parser/testdata/corpus/warp '$(OUT)/peers/warp' bin/cnsbench

.PHONY: test-long
test-long: deps build object-servers workload-servers prometheus ## run what make test leaves out and needs no cluster: the whole demo, kill -9 at many moments, real object stores, real applications
	AWKWARD_PAIRS=all go test -count=1 -run 'TestAwkward$$' ./internal/engine/local
	@hack/tagged.sh -p 1 -timeout 40m ./test/e2e ./test/extend # one at a time: what is compiled beside a measurement is seen by it
	cd test/object && go test -count=1 -timeout 9m ./...
	@$(MAKE) --no-print-directory storage-test

.PHONY: hostile
HOSTILE ?= 200
hostile: export CNSBENCH_HOSTILE := $(HOSTILE)
hostile: export CNSBENCH_SEED := $(SEED)
hostile: deps build ## try every command that takes a bundle with HOSTILE=200 (or all) bundles of somebody else (each week)
	go test -count=1 -timeout 60m -run '^TestHostileBundles$$' ./test/e2e

.PHONY: test-entries
test-entries: export CNSBENCH_ENTRIES := all
test-entries: deps build workload-servers ## run all applications of the library, here and on the test bed (each week; CI runs four)
	go test -count=1 -v -timeout 30m -tags e2e,grpcnotrace -run '^TestEntry|^TestExamples$$|^TestPaperSuites$$|^Test(BuiltIn|Broken)Entries' ./test/e2e
	@hack/e2e.sh '^TestApplications$$'

.PHONY: measurements
MEASUREMENTS := TestCauses TestNoCause TestCanaryFreeze TestSnapshotInterference TestTenantsRank TestProfile \
  TestOpenSearchIsKilled TestRemoteWriteOutage TestCollectorIsAway
space := $(subst ,, )
measurements: deps build ## inject causes, freezes, limits and outages, and check what is found (an hour; quiet; root)
	go test -count=1 -v -timeout 90m -tags e2e,measurement,grpcnotrace -run '$(subst $(space),|,$(MEASUREMENTS))' ./test/e2e

# With the race detector tests run several times slower.
.PHONY: chaos chaos-cluster race
KILLS ?= 200
chaos: export CNSBENCH_KILLS := $(KILLS)
chaos: export CNSBENCH_SEED := $(SEED)
chaos: deps build object-servers ## kill -9 of runners, agents, drivers, the results service, studies, the manager: KILLS=200, SEED repeats (each week)
	CNSBENCH_BIN='$(abspath bin)' go test -count=1 -v -timeout 3h -parallel 3 -tags e2e,grpcnotrace -run '^TestChaos$$' ./test/e2e

chaos-cluster: KILLS = 40
chaos-cluster: export CNSBENCH_KILLS = $(KILLS)
chaos-cluster: export CNSBENCH_SEED = $(SEED)
chaos-cluster: export CNSBENCH_ENTRIES := all
chaos-cluster: deps build testbed ## kill parts of the test bed's Kubernetes and of runs on it: KILLS=40, SEED repeats (each week)
	@hack/e2e.sh '^Test(Chaos|NothingIsLeft)$$'

RACE ?= ./...
race: export CGO_ENABLED := 1
race: deps ## run the tests of RACE (all packages) with the race detector; needs a C compiler (each week)
	@hack/packages.sh gcc=gcc /usr/include/stdlib.h=libc6-dev
	go test -race -vet=off -p 2 -parallel 4 -timeout 60m $(RACE)

.PHONY: audit
audit: export VERSION := $(VERSION)
audit: build ## check code (gosec), licences and vulnerabilities of the modules, write SBOMs: out/audit (VULNDB: a local database)
	@hack/audit.sh '$(OUT)/audit'

.PHONY: fuzz
FUZZTIME ?= 30s
fuzz: ## run each fuzz target for FUZZTIME (30s); TARGETS=regexp chooses some (each week, with 5m)
	@hack/fuzz.sh '$(FUZZTIME)' '$(TARGETS)'

.PHONY: e2e
e2e: deps build object-servers workload-servers prometheus ## bring a Kubernetes up on this machine, run all that needs one, take it down
	@hack/e2e.sh

.PHONY: stat-peers kube-peers
kube-peers: ## build what bench kube-peers compares with: kube-burner (minutes when cold)
	@hack/kube-peers.sh '$(OUT)/peers'

stat-peers: ## install what bench stat-peers compares with: apache-otava (Python), benchstat (Go)
	@hack/stat-peers.sh '$(OUT)/peers'

.PHONY: object-servers object-peers object-test
object-servers: ## install the servers that tests of object storage meet: Swift, Keystone, RADOS gateway of Debian, versitygw (minutes when cold)
	@hack/object-servers.sh '$(OUT)/servers'

object-peers: ## install what bench object-peers compares with: wrk of Debian, warp (minutes when cold)
	@hack/object-peers.sh '$(OUT)/peers'

object-test: object-servers ## test object storage against real servers, and our clients against SDKs
	go test -count=1 -timeout 9m ./internal/object/...
	cd test/object && go test -count=1 -timeout 9m ./...

.PHONY: workload-servers
workload-servers: ## install the applications of the built-in library that tests run (PostgreSQL 15, MariaDB 10.11, Redis 7, db_bench, sysbench, nginx, wrk, MEGAHIT, etcd and its benchmark, go-ycsb, FerretDB); no service is started
	@hack/packages.sh /usr/lib/postgresql/15/bin/postgres=postgresql-15 redis-server=redis-server \
	  redis-benchmark=redis-tools db_bench=rocksdb-tools sysbench=sysbench etcd=etcd-server curl=curl \
	  mariadbd=mariadb-server-core mariadb=mariadb-client-core nginx=nginx wrk=wrk megahit=megahit
	@hack/workload-programs.sh '$(OUT)/workloads'

.PHONY: opensearch
opensearch: ## fetch OpenSearch for the tests of outputs: one node as a Java program (Maven; needs a JDK of version 17)
	@hack/packages.sh mvn=maven javac=default-jdk-headless
	mvn -q -B -f test/opensearch package dependency:copy-dependencies -DbuildDirectory='$(abspath $(OUT))/opensearch' \
	  -DoutputDirectory='$(abspath $(OUT))/opensearch/lib'

.PHONY: collector
collector: ## build an OpenTelemetry collector for the tests of outputs (Go modules, at the versions in hack/collector)
	@mkdir -p '$(OUT)/collector'
	go build -C hack/collector -o '$(abspath $(OUT))/collector/collector' .

.PHONY: prometheus
prometheus: ## install Prometheus (Debian) for the tests of metrics and triggers; no service is started
	@hack/packages.sh prometheus=prometheus

.PHONY: bench
bench: deps build ## measure what docs/benchmarks.md states (more than an hour)
	go run ./test/bench

bench-%: deps build
	go run ./test/bench -only '$*'

.PHONY: guard
BASE ?= HEAD^
guard: deps build ## compare what the runner can do and costs with that of the commit BASE (HEAD^), by cnsbench compare (each week; quiet)
	@hack/guard.sh '$(BASE)' '$(OUT)/guard'

TESTBED := $(OUT)/testbed/bin/testbed
export TESTBED_DIR = $(OUT)/testbed

.PHONY: testbed testbed-up testbed-down testbed-status testbed-images testbed-test
testbed:
	@mkdir -p $(dir $(TESTBED))
	@echo 'module testbed.invalid // keeps ./... out of the files of containers' >$(OUT)/testbed/go.mod
	@go build -C hack/testbed -buildvcs=false -o $(abspath $(TESTBED)) .

testbed-up: deps build testbed ## bring up a real Kubernetes of two nodes here (ARGS="--kcm-qps 20 …"; docs/how-to/testbed.md)
	@$(TESTBED) up $(ARGS)

testbed-down: testbed ## take it down and undo everything (TESTBED_KEEP_AUDIT_LOG=1 keeps the audit log)
	@$(TESTBED) down

testbed-status: testbed ## list its parts and nodes
	@$(TESTBED) status

testbed-images: build testbed ## give its nodes images of the binaries of now, touching nothing else
	@$(TESTBED) images

testbed-test: object-servers ## test the test bed's own programs
	cd hack/testbed && go vet ./... && go test ./...
	cd hack/testbed/build/cosi && go vet ./... && go test ./...

# A real Ceph and GlusterFS, each in a network namespace of its own, with a test driver in front: docs/how-to/ceph.md.
# Two clusters need two directories (CEPH_DIR, GLUSTER_DIR) of at most 70 characters.
export CEPH_DIR ?= $(abspath $(OUT))/ceph
STORAGE_BIN := $(abspath $(OUT))/storage
STORAGE_GO := -C test/storagedriver -tags pacific,grpcnotrace
LIBDIR := /usr/lib/$(shell uname -m)-linux-gnu

.PHONY: ceph-driver ceph-up ceph-down ceph-status ceph-test
ceph-driver:
	@hack/packages.sh ceph=ceph-common ceph-mon=ceph-mon ceph-mgr=ceph-mgr ceph-osd=ceph-osd ceph-mds=ceph-mds \
	  ceph-fuse=ceph-fuse /usr/share/ceph/mgr/volumes=ceph-mgr-modules-core qemu-storage-daemon=qemu-system-common \
	  $(LIBDIR)/qemu/block-rbd.so=qemu-block-extra mkfs.xfs=xfsprogs fio=fio gcc=gcc /usr/include/stdlib.h=libc6-dev \
	  /usr/include/rados/librados.h=librados-dev /usr/include/rbd/librbd.h=librbd-dev
	@mkdir -p '$(STORAGE_BIN)'
	CGO_ENABLED=1 go build $(STORAGE_GO) -o '$(STORAGE_BIN)/' ./cmd/cephdriver ./cmd/cephcounters

ceph-up: ceph-driver ## bring up a real Ceph of three OSDs here, and a CSI driver like ceph-csi (CEPH_DIR; docs/how-to/ceph.md)
	@hack/storage/ceph.sh up '$(CEPH_DIR)' '$(STORAGE_BIN)'

ceph-down: ## take it down and undo everything
	@hack/storage/ceph.sh down '$(CEPH_DIR)' '$(STORAGE_BIN)'

ceph-status: ## print its health; fails unless all parts run
	@hack/storage/ceph.sh status '$(CEPH_DIR)' '$(STORAGE_BIN)'

ceph-test: ## test the driver on a Ceph that is up (those that need one skip otherwise)
	STORAGE_BIN='$(STORAGE_BIN)' go test $(STORAGE_GO) -count=1 -v -parallel 4 -timeout 20m .

.PHONY: storage-test
storage-test: ## bring up a Ceph and a GlusterFS of its own, test the drivers, take both down (three minutes; test-long does)
	@hack/storage/test.sh '$(OUT)/storage-test' '$(STORAGE_BIN)'

export GLUSTER_DIR ?= $(abspath $(OUT))/gluster

.PHONY: gluster-driver gluster-up gluster-down gluster-status
gluster-driver:
	@hack/packages.sh glusterd=glusterfs-server glusterfs=glusterfs-client fio=fio
	@mkdir -p '$(STORAGE_BIN)'
	go build $(STORAGE_GO) -o '$(STORAGE_BIN)/' ./cmd/glusterdriver

gluster-up: gluster-driver ## bring up a real GlusterFS of three volumes here, and a CSI driver (GLUSTER_DIR; docs/how-to/ceph.md)
	@hack/storage/gluster.sh up '$(GLUSTER_DIR)' '$(STORAGE_BIN)'

gluster-down: ## take it down and undo everything
	@hack/storage/gluster.sh down '$(GLUSTER_DIR)' '$(STORAGE_BIN)'

gluster-status: ## print its state; fails unless all parts run
	@hack/storage/gluster.sh status '$(GLUSTER_DIR)' '$(STORAGE_BIN)'

.PHONY: images push
IMAGES ?= workload-tools
images: testbed ## make the images of IMAGES and cnsbench without a container engine: out/images (docs/how-to/images.md)
	@for arch in amd64 arm64; do mkdir -p $(OUT)/images/$$arch && \
	  GOARCH=$$arch go build -ldflags '$(LDFLAGS)' -o $(OUT)/images/$$arch/ ./cmd/cnsbench ./cmd/cnsbench-agent || exit 1; done
	@$(TESTBED) product-image $(OUT)/images/cnsbench.tar docker.io/cnsbench/cnsbench:$(VERSION) \
	  amd64=$(OUT)/images/amd64 arm64=$(OUT)/images/arm64
	@hack/images.sh $(OUT)/images $(VERSION) $(IMAGES)

push: images ## push the images to REGISTRY=registry.example.com, and print their digests (docs/how-to/images.md)
	@[ -n '$(REGISTRY)' ] || { echo 'REGISTRY is not set: make push REGISTRY=registry.example.com' >&2; exit 1; }
	@$(TESTBED) push '$(REGISTRY)' $(patsubst %,$(OUT)/images/%.tar,cnsbench $(IMAGES))

.PHONY: man
man: ## write the manual pages of the commands: out/man/man1
	@go run -ldflags '$(LDFLAGS)' ./hack/man $(OUT)/man/man1

.PHONY: release release-test
ARCHS ?= amd64 arm64
release: export LDFLAGS := $(LDFLAGS)
release: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
release: ## make what a release has: archives, deb and rpm of the programs, checksums, manifests of krew and Homebrew
	@hack/release/release.sh '$(VERSION)' '$(OUT)/release' $(ARCHS)

release-test: release ## install the packages in fresh roots, try them, check the manifests and the CI templates
	@hack/release/test.sh '$(OUT)/release'

.PHONY: clean
clean: ## remove what was built; takes a test bed down first
	@if [ -e $(OUT)/testbed/proc ]; then $(MAKE) testbed-down; fi
	rm -rf bin $(OUT)
