package kubernetes

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/pods"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/podspec"
	"github.com/cnsbench/cnsbench/internal/op"
)

// TestCheckerPod checks what the pod of a check mounts, as whom it reads, and where it runs.
func TestCheckerPod(t *testing.T) {
	e := New(Options{Image: "product"})
	e.Session.RunID = "r"
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r := engine.Request{Action: "look", Name: "look-0", Kind: op.Check}
	for name, tc := range map[string]struct {
		volume   pods.Volume
		node     string
		user     int64
		readOnly bool
	}{
		"file system":     {pods.Volume{Name: "claim"}, "", podspec.User, false},
		"read-only claim": {pods.Volume{Name: "claim", ReadOnly: true}, "", podspec.User, true},
		"attached device": {pods.Volume{Name: "claim", Block: true}, "n1", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			spec := e.checkerPod(ctx, r, &tc.volume, tc.node).Spec
			c, claim := spec.Containers[0], spec.Volumes[0].PersistentVolumeClaim
			if claim.ClaimName != "claim" || claim.ReadOnly != tc.readOnly || *c.SecurityContext.RunAsUser != tc.user {
				t.Errorf("%+v, user %d", claim, *c.SecurityContext.RunAsUser)
			}
			mounted := len(c.VolumeMounts) == 1 && c.VolumeMounts[0].MountPath == c.Command[3] && c.VolumeMounts[0].ReadOnly
			device := len(c.VolumeDevices) == 1 && c.VolumeDevices[0].DevicePath == c.Command[3]
			if mounted == tc.volume.Block || device != tc.volume.Block || c.Image != "product" {
				t.Errorf("%+v", c)
			}
			if s := spec.ActiveDeadlineSeconds; s == nil || *s < 1 || *s > 61 {
				t.Errorf("deadline %v", s)
			}
			if (spec.Affinity == nil) != (tc.node == "") || spec.RestartPolicy != corev1.RestartPolicyNever {
				t.Errorf("%+v", spec)
			}
		})
	}
}

// TestCheckRefused checks that no pod is made for a volume that a check may not read.
func TestCheckRefused(t *testing.T) {
	e := New(Options{})
	e.StoreVolume(&pods.Volume{Object: engine.Object{Name: "busy", Owner: "writer-0"}})
	for target, code := range map[string]string{"busy": "FailedPrecondition", "none": "NotFound"} {
		err := e.check(t.Context(), engine.Request{Target: engine.Object{Kind: engine.VolumeObject, Name: target}},
			op.NewTrace(op.NewClock()))
		var failed *engine.Error
		if !errors.As(err, &failed) || failed.Code != code {
			t.Errorf("%s: %v, want %s", target, err, code)
		}
	}
}
