package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// TestScaleBenchmark checks that scale.yaml is a valid Benchmark in each size, with the numbers of that size.
func TestScaleBenchmark(t *testing.T) {
	sizes := append(scaleGrid(&env{}), smallScale,
		scaleSize{nodes: 1000, instances: 1000, volumes: 10_000, perSecond: 100, inFlight: 200, length: 5 * time.Minute})
	for _, size := range sizes {
		var set []string
		for _, flag := range size.flags() {
			if flag != "--set" {
				set = append(set, flag)
			}
		}
		p, problems := plan.Load(t.Context(), plan.Input{
			Files: []plan.File{{Name: "scale.yaml", Data: []byte(scaleBenchmark)}}, Set: set,
			Capabilities: kubernetes.Capabilities(), Seed: 1})
		if len(problems) > 0 {
			t.Fatalf("%v: %v", size, problems)
		}
		made := map[string]int{}
		for _, a := range p.Actions {
			made[a.Name] = a.Count
		}
		if made["pods"] != size.instances || made["volumes"] != size.volumes-size.instances || p.Runtime != size.length {
			t.Errorf("%v: %v for %v", size, made, p.Runtime)
		}
		if size.inFlight >= size.instances {
			t.Errorf("%v: a pod that is being moved would be chosen again", size)
		}
	}
}

// TestAttachments checks that a pod waits for the attachment to its own node, whatever the order of events.
func TestAttachments(t *testing.T) {
	volume := "pv"
	attachment := func(node string, attached bool) *storagev1.VolumeAttachment {
		return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: storagev1.VolumeAttachmentSpec{
			NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
			Status: storagev1.VolumeAttachmentStatus{Attached: attached}}
	}
	synctest.Test(t, func(t *testing.T) {
		a := attachments{node: map[string]string{}, changed: map[string]chan struct{}{}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		a.see(attachment("one", true), false)
		if err := a.wait(ctx, volume, "one"); err != nil {
			t.Errorf("attached, but %v", err)
		}
		done := make(chan error)
		go func() { done <- a.wait(ctx, volume, "two") }()
		for _, seen := range []struct {
			node           string
			attached, gone bool
		}{{"two", false, false}, {"two", true, false}, {"one", true, true}} {
			a.see(attachment(seen.node, seen.attached), seen.gone)
			synctest.Wait()
		}
		if err := <-done; err != nil {
			t.Errorf("attached to two, but %v", err)
		}
		a.see(attachment("two", true), true)
		if err := a.wait(ctx, volume, "two"); err == nil {
			t.Error("a detached volume counts as attached")
		}
	})
}

// TestConsumed checks the CPUs of components, and of what is none, between two readings.
func TestConsumed(t *testing.T) {
	at := time.Unix(1000, 0)
	var all []reading
	for i := range 11 {
		second := time.Duration(i) * time.Second
		all = append(all, reading{at: at.Add(second), busy: second * 3 / 2, nice: second / 4, of: map[string]usage{
			"etcd": {cpu: second / 2, rss: int64(i)}, "gone": {cpu: max(0, 5*time.Second-second)}}})
	}
	got := consumed(all, at.Add(2*time.Second), at.Add(8*time.Second+100*time.Millisecond))
	if got.cores["etcd"] != 0.5 || got.rss["etcd"] != 8 || got.busy != 1.5 || got.nice != 0.25 ||
		got.cores[restComponent] != 1 {
		t.Errorf("%+v", got)
	}
	if _, ok := got.cores["gone"]; ok {
		t.Error("a component that ended has a share")
	}
}

// TestComponentOf checks that each part of the driver null has a component of its own, and others do not.
func TestComponentOf(t *testing.T) {
	for part, want := range map[string]string{"apiserver": "kube-apiserver", "csi-attacher-null": "csi-attacher",
		"driver-null": "driver null", "csi-attacher-loopfile": otherParts, "kubelet-node1": otherParts} {
		if got := componentOf(part); got != want {
			t.Errorf("%s: %q, want %q", part, got, want)
		}
	}
	if strings.HasPrefix("node1", fakeNodePrefix) || !isFakeNode(fakeNodePrefix+"0001") {
		t.Error("fake nodes are not told from others")
	}
}

// TestFakePodUnseen checks that the end of a pod that was not seen before, as after a gap of the watch, is no failure.
func TestFakePodUnseen(t *testing.T) {
	f := &fakePods{pods: map[types.UID]*fakePod{}}
	now := metav1.Now()
	f.see(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod", UID: "u", DeletionTimestamp: &now},
		Spec: corev1.PodSpec{NodeName: fakeNodePrefix + "0001"}}, true)
	if len(f.pods) != 0 {
		t.Errorf("%d pods are remembered", len(f.pods))
	}
}
