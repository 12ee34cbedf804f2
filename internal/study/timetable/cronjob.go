package timetable

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// StudyMount is where the claim with the study's directory is mounted.
const StudyMount = "/study"

// Job is what CronJobs run.
type Job struct {
	Namespace string
	// Pod runs the command. It mounts a ConfigMap named Task.ObjectName if there are Files.
	Pod         corev1.PodSpec
	Annotations map[string]string // of the pod
	// Files of the study, by name.
	Files map[string]string
	// Claim is a PersistentVolumeClaim for the study's directory.
	Claim string
}

// CronJobs returns a ConfigMap with the files, if there are any, and a CronJob for each slot. The lock on the study's
// directory keeps one from running while another does.
func CronJobs(t Task, j Job) []runtime.Object {
	var objects []runtime.Object
	name := t.ObjectName()
	if len(j.Files) > 0 {
		objects = append(objects, &corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: j.Namespace},
			Data:       j.Files,
		})
	}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: j.Annotations}, Spec: j.withClaim()}
	for i, s := range t.Slots {
		job := &batchv1.CronJob{
			TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "CronJob"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: j.Namespace},
			Spec: batchv1.CronJobSpec{
				Schedule:          s.Cron(),
				ConcurrencyPolicy: batchv1.ForbidConcurrent,
				// An occasion that is missed is not run at another hour.
				StartingDeadlineSeconds: new(int64(600)),
				JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
					BackoffLimit: new(int32(0)), // the next occasion finishes it
					Template:     template,
				}},
			},
		}
		if len(t.Slots) > 1 {
			job.Name = fmt.Sprintf("%s-%d", name, i+1)
		}
		if t.Zone != "" {
			job.Spec.TimeZone = &t.Zone
		}
		objects = append(objects, job)
	}
	return objects
}

// withClaim is the pod with the study's directory, in which its command runs.
func (j *Job) withClaim() corev1.PodSpec {
	pod := *j.Pod.DeepCopy()
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "study", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: j.Claim}}})
	c := &pod.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "study", MountPath: StudyMount})
	c.WorkingDir = StudyMount
	return pod
}
