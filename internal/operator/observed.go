package operator

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/operator/runnerstatus"
	"github.com/cnsbench/cnsbench/internal/runner/runnerpod"
)

// observed is the state of a Benchmark and its runner on which a decision is based.
type observed struct {
	now           time.Time
	benchmark     *v1alpha1.Benchmark
	closing       bool // the namespace is being deleted: no object can be created in it
	runner        work
	cleanup       work
	progress      *runnerstatus.Progress // nil: unknown
	progressError error                  // error of reading the progress
	queue         queued
}

// work is a Job with its pod.
type work struct {
	job *batchv1.Job
	pod *corev1.Pod
	// trouble is the newest warning Event about the Job or its pod. It is empty once the pod's container has started.
	trouble string
}

// foreign is the error about an object that has the expected name but does not belong to the Benchmark.
type foreign struct {
	kind string
	key  types.NamespacedName
}

func (f *foreign) Error() string {
	return fmt.Sprintf("%s %s exists and does not belong to this Benchmark: delete it, or give the Benchmark another name",
		f.kind, f.key)
}

// state returns the state of the runner's container in a pod. It is zero if the pod or the container does not exist.
func state(p *corev1.Pod) corev1.ContainerState {
	if p != nil {
		for _, c := range p.Status.ContainerStatuses {
			if c.Name == runnerpod.Container {
				return c.State
			}
		}
	}
	return corev1.ContainerState{}
}

func started(p *corev1.Pod) bool {
	s := state(p)
	return s.Running != nil || s.Terminated != nil
}

func runs(p *corev1.Pod) bool { return state(p).Running != nil }

// finished returns the condition with which a Job has ended, or nil if the Job has not ended.
func finished(j *batchv1.Job) *batchv1.JobCondition {
	if j == nil {
		return nil
	}
	for i, c := range j.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return &j.Status.Conditions[i]
		}
	}
	return nil
}

// ending reports whether the runner's container in a pod has terminated, so that the Job finishes soon.
func ending(p *corev1.Pod) bool { return state(p).Terminated != nil }
