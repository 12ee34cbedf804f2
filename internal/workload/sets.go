package workload

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxReplicas bounds the pods of one set.
const maxReplicas = 256

// podIndex is the label that a StatefulSet's pods have.
const podIndex = "apps.kubernetes.io/pod-index"

// podOf returns the pod of a controller's template. Our annotations are on the controller;
// those of the template stay with the pod.
func podOf(key, kind string, meta metav1.ObjectMeta, t corev1.PodTemplateSpec) template {
	annotations := maps.Clone(t.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, meta.Annotations)
	labels := maps.Clone(t.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, meta.Labels)
	return template{key, kind, metav1.ObjectMeta{Name: meta.Name, Labels: labels, Annotations: t.Annotations}, t.Spec,
		annotations}
}

// statefulSet makes the pods of a StatefulSet and their claims with the names of its
// controller. They are made at once, as with policy Parallel, and not replaced.
func (r *renderer) statefulSet(key string, set *appsv1.StatefulSet) error {
	if set.Name == "" {
		return &Error{Part: key, Message: "the StatefulSet has no name"}
	}
	all := podOf(key, "StatefulSet", set.ObjectMeta, set.Spec.Template)
	replicas := valueOrOne(set.Spec.Replicas)
	if err := r.inParallel(&all, set, replicas); err != nil {
		return err
	}
	first := int32(0)
	if set.Spec.Ordinals != nil {
		first = set.Spec.Ordinals.Start
	}
	for i := range replicas {
		one := all
		one.spec = *all.spec.DeepCopy()
		one.meta.Name = fmt.Sprintf("%s-%d", set.Name, first+i)
		one.meta.Labels = maps.Clone(all.meta.Labels)
		one.meta.Labels[podIndex] = fmt.Sprint(first + i)
		if set.Spec.ServiceName != "" && r.cluster() {
			one.spec.Hostname, one.spec.Subdomain = one.meta.Name, set.Spec.ServiceName
		}
		for _, c := range set.Spec.VolumeClaimTemplates {
			if err := r.replicaClaim(&one, *c.DeepCopy()); err != nil {
				return err
			}
		}
		r.pods = append(r.pods, one)
	}
	return nil
}

// replicaClaim adds the claim of one pod of a set.
func (r *renderer) replicaClaim(t *template, c corev1.PersistentVolumeClaim) error {
	volume := c.Name
	if volume == "" {
		return &Error{Part: t.part, Message: "a claim of the StatefulSet has no name"}
	}
	c.Name = volume + "-" + t.meta.Name
	t.spec.Volumes = slices.DeleteFunc(t.spec.Volumes, func(v corev1.Volume) bool { return v.Name == volume })
	t.spec.Volumes = append(t.spec.Volumes, corev1.Volume{Name: volume,
		VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.Name}}})
	return r.claim(t.part, c, volume)
}

// inParallel rejects a set whose pods cannot all run at once.
func (r *renderer) inParallel(t *template, set *appsv1.StatefulSet, replicas int32) error {
	const parallel = "podManagementPolicy: Parallel"
	switch {
	case replicas < 1 || replicas > maxReplicas:
		return &Error{Part: t.part, Message: fmt.Sprintf("StatefulSet %q has %d pods", set.Name, replicas),
			Hint: fmt.Sprintf("1 to %d; the action's count makes more instances", maxReplicas)}
	case replicas == 1 || set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement:
		return nil
	case t.waits():
		return &Error{Part: t.part,
			Message: fmt.Sprintf("StatefulSet %q has %d pods that wait at the barrier, and podManagementPolicy OrderedReady: "+
				"the second is only made when the first is ready, but the first waits for all of them, so that they would wait for ever", set.Name, replicas), Hint: parallel}
	}
	return r.unsupported(t.part, "a StatefulSet of more than one pod with podManagementPolicy OrderedReady",
		parallel+", or give the action a count instead")
}
