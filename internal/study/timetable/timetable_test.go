package timetable

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

func TestSlots(t *testing.T) {
	for _, tt := range []struct{ text, cron string }{
		{"Mon..Fri 10:30", "30 10 * * 1,2,3,4,5"},
		{"Sat,Sun 03:00", "0 3 * * 6,0"},
		{"daily 22:05", "5 22 * * 1,2,3,4,5,6,0"},
		{"Sun,Mon,Mon..Tue 00:00", "0 0 * * 1,2,0"},
	} {
		s, err := ParseSlot(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		if s.Cron() != tt.cron {
			t.Errorf("%s: %q, want %q", tt.text, s.Cron(), tt.cron)
		}
	}
	for _, bad := range []string{"", "10:30", "Mon", "Mon 25:00", "Fri..Mon 10:00", "mon 10:00", "Mon-Fri 10:00",
		"Mon 9"} {
		if s, err := ParseSlot(bad); err == nil {
			t.Errorf("%q was taken as %+v", bad, s)
		}
	}
}

// TestDefaultSlots: the default covers weekdays in and outside office hours, and the weekend.
func TestDefaultSlots(t *testing.T) {
	kinds := map[string]bool{}
	for _, s := range DefaultSlots() {
		for _, d := range s.Days {
			switch {
			case d == time.Saturday || d == time.Sunday:
				kinds["weekend"] = true
			case s.Hour >= 8 && s.Hour < 18:
				kinds["office"] = true
			default:
				kinds["outside"] = true
			}
		}
	}
	if len(kinds) != 3 {
		t.Errorf("covers %v", kinds)
	}
}

func task(command ...string) Task {
	return Task{Name: "Örtlich: fsync study", Slots: DefaultSlots(), Zone: "Europe/Berlin", Command: command}
}

// TestCronJobs decodes the objects with the types of client-go.
func TestCronJobs(t *testing.T) {
	j := Job{Namespace: "bench", Claim: "studies", Files: map[string]string{"s.yaml": "kind: Study\n"},
		Pod: corev1.PodSpec{Containers: []corev1.Container{{Name: "runner", Image: "i"}}}}
	var slots []string
	for i, object := range CronJobs(task("x"), j) {
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if i == 0 {
			m, ok := decoded.(*corev1.ConfigMap)
			if !ok || m.Data["s.yaml"] != "kind: Study\n" || m.Namespace != "bench" {
				t.Errorf("%+v", decoded)
			}
			continue
		}
		c, ok := decoded.(*batchv1.CronJob)
		if !ok {
			t.Fatalf("%T", decoded)
		}
		pod := c.Spec.JobTemplate.Spec.Template.Spec
		if *c.Spec.TimeZone != "Europe/Berlin" || c.Spec.ConcurrencyPolicy != batchv1.ForbidConcurrent ||
			pod.Volumes[0].PersistentVolumeClaim.ClaimName != "studies" ||
			pod.Containers[0].VolumeMounts[0].MountPath != StudyMount || len(c.Name) > 52 {
			t.Errorf("%+v", c)
		}
		slots = append(slots, c.Name+" "+c.Spec.Schedule)
	}
	want := []string{"cnsbench-rtlich--fsync-study-1 30 10 * * 2", "cnsbench-rtlich--fsync-study-2 30 2 * * 4",
		"cnsbench-rtlich--fsync-study-3 30 14 * * 6"}
	if diff := cmp.Diff(want, slots); diff != "" {
		t.Error(diff)
	}
	if len(j.Pod.Volumes) > 0 {
		t.Error("the given pod was changed")
	}
}
