package sidecar

import (
	"time"

	"google.golang.org/grpc/codes"
)

// Backoff is how long a caller waits before it repeats a call: Start, then twice as long each time, at most Max.
type Backoff struct{ Start, Max time.Duration }

// The defaults of the sidecars' --retry-interval-start and --retry-interval-max, and the kubelet's, which are constants
// (k8s.io/kubernetes/pkg/util/goroutinemap/exponentialbackoff).
var (
	ofSidecars = Backoff{time.Second, 5 * time.Minute}
	ofKubelet  = Backoff{500 * time.Millisecond, 2*time.Minute + 2*time.Second}
)

// callers has the backoff of who makes a call.
var callers = map[string]Backoff{
	"CreateVolume": ofSidecars, "DeleteVolume": ofSidecars,
	"ControllerPublishVolume": ofSidecars, "ControllerUnpublishVolume": ofSidecars,
	"ControllerExpandVolume": ofSidecars, "ControllerModifyVolume": ofSidecars,
	"CreateSnapshot": ofSidecars, "DeleteSnapshot": ofSidecars, "ListSnapshots": ofSidecars, "GetSnapshot": ofSidecars,
	"CreateVolumeGroupSnapshot": ofSidecars, "DeleteVolumeGroupSnapshot": ofSidecars,
	"GetVolumeGroupSnapshot": ofSidecars,
	"NodeStageVolume":        ofKubelet, "NodeUnstageVolume": ofKubelet,
	"NodePublishVolume": ofKubelet, "NodeUnpublishVolume": ofKubelet, "NodeExpandVolume": ofKubelet,
}

// BackoffOf returns the backoff of a call's caller; false: the call is not repeated.
func BackoffOf(rpc string) (Backoff, bool) {
	b, ok := callers[rpc]
	return b, ok
}

// Scaled returns a backoff with another start; the kubelet's is half of the sidecars'. 0: the default.
func (b Backoff) Scaled(start time.Duration) Backoff {
	if start <= 0 {
		return b
	}
	return Backoff{start * b.Start / ofSidecars.Start, max(b.Max, start)}
}

// Next returns the wait after one of wait.
func (b Backoff) Next(wait time.Duration) time.Duration { return min(2*wait, b.Max) }

// Pending reports whether a code leaves open whether the call has an effect, or has one later: csi-provisioner,
// csi-snapshotter, csi-attacher and csi-resizer then repeat the call under the same name. The other codes are final.
func Pending(code codes.Code) bool {
	switch code {
	case codes.Aborted, // an operation on the object is in progress
		codes.Unavailable, codes.DeadlineExceeded:
		return true
	}
	return false
}

// Hopeless reports whether repeating a removal with this answer cannot succeed.
func Hopeless(code codes.Code) bool {
	switch code {
	case codes.InvalidArgument, codes.Unimplemented, codes.Unauthenticated, codes.PermissionDenied:
		return true
	}
	return false
}
