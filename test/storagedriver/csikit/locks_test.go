package csikit

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestLocksRefuse(t *testing.T) {
	var l Locks
	release, err := l.Volume("a")
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Volume("a")
	const want = "an operation with the given Volume ID a already exists" // the words of ceph-csi
	if status.Code(err) != codes.Aborted || status.Convert(err).Message() != want {
		t.Errorf("%v, want ABORTED: %s", err, want)
	}
	if _, err := l.Volume("b"); err != nil {
		t.Errorf("another volume: %v", err)
	}
	release()
	if _, err := l.Volume("a"); err != nil {
		t.Errorf("after release: %v", err)
	}
}
