package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// TestScheduleCronJob decodes what study schedule prints for a cluster, and checks that its command is add-occasion
// with the files in the ConfigMap.
func TestScheduleCronJob(t *testing.T) {
	file := filepath.Join(t.TempDir(), "volumes.yaml")
	if err := os.WriteFile(file, []byte(volumes), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	code := Main([]string{"study", "schedule", file, "--claim", "studies", "-n", "bench", "--study",
		"/mnt/s", "--factor", "spec.actions.v.createObjSpec.count=1,2", "--occasions", "4", "--at", "daily 03:30",
		"--exclude-date", "2026-12-24", "--service-account", "runner", "--time-zone", "Europe/Berlin"},
		strings.NewReader(""), &out, &errs)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	var files *corev1.ConfigMap
	var job *batchv1.CronJob
	for _, text := range strings.Split(out.String(), "---\n")[1:] {
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(text), nil, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		switch o := object.(type) {
		case *corev1.ConfigMap:
			files = o
		case *batchv1.CronJob:
			job = o
		}
	}
	if files == nil || job == nil || files.Data["volumes.yaml"] != volumes {
		t.Fatalf("not a ConfigMap and a CronJob:\n%s", &out)
	}
	pod := job.Spec.JobTemplate.Spec.Template.Spec
	args := pod.Containers[0].Args
	for _, want := range []string{"/study/s", "/etc/cnsbench/volumes.yaml", "--namespace=bench", "--occasions=4",
		"--factor=spec.actions.v.createObjSpec.count=1,2", "--up-to=4", "--exclude-date=2026-12-24", "--runner=local",
		"--time-zone=Europe/Berlin"} {
		if !slices.Contains(args, want) {
			t.Errorf("no %s among %q", want, args)
		}
	}
	if !slices.Equal(args[:2], []string{"study", "add-occasion"}) || pod.ServiceAccountName != "runner" ||
		job.Spec.Schedule != "30 3 * * 1,2,3,4,5,6,0" || *job.Spec.TimeZone != "Europe/Berlin" || job.Namespace != "bench" {
		t.Errorf("%+v", job)
	}
	for _, own := range []string{"--claim=studies", "--at=daily 03:30"} {
		if slices.Contains(args, own) {
			t.Errorf("%s of schedule is passed on: %q", own, args)
		}
	}
}

// TestZone: a zone that depends on the machine is no zone of a study.
func TestZone(t *testing.T) {
	for name, want := range map[string]bool{"UTC": true, "Europe/Berlin": true, "Local": false, "Foo/Bar": false} {
		if _, err := parseZone(name); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestScheduleOut: a directory that is not there is named before anything is written.
func TestScheduleOut(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "units")
	code, out, errs := cnsbench(t, "", "study", "schedule", filepath.Join(keptRuns, "study.yaml"), "--out", missing)
	if code != exitUsage || out != "" ||
		!strings.Contains(errs, "--out "+missing+" is no directory: create it first, mkdir -p") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
}
