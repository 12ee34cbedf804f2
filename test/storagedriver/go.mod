module github.com/cnsbench/cnsbench/test/storagedriver

go 1.26.0

require (
	github.com/ceph/go-ceph v0.35.0
	github.com/cnsbench/cnsbench v0.0.0
	github.com/container-storage-interface/spec v1.13.0
	golang.org/x/sync v0.24.0
	golang.org/x/sys v0.49.0
	google.golang.org/grpc v1.85.0
	google.golang.org/protobuf v1.36.12
	sigs.k8s.io/yaml v1.6.0
)

require (
	github.com/moby/sys/mountinfo v0.7.3 // indirect
	go.yaml.in/yaml/v2 v2.4.4 // indirect
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/text v0.42.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1 // indirect
)

replace github.com/cnsbench/cnsbench => ../..
