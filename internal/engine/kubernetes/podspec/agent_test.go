package podspec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestDeliverAndWrap(t *testing.T) {
	for _, d := range []Delivery{DeliverInit, DeliverImage, DeliverBaked} {
		spec := corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "own"}},
			Containers: []corev1.Container{{Name: "main", Command: []string{"fio"}, Args: []string{"job"}},
				{Name: "plain"}},
		}
		d.Wrap(&spec.Containers[0], []string{"CNSBENCH_AGENT_RUNNER=tls:h:1"}, "secret")
		d.Deliver(&spec, "img", []string{"main"})
		want := []string{d.agentPath(), "wrap", "--log-dir", "none", "--", "fio", "job"}
		if diff := cmp.Diff(want, spec.Containers[0].Command); diff != "" {
			t.Errorf("%s: %s", d, diff)
		}
		if got := len(spec.InitContainers); (got == 2) != (d == DeliverInit) {
			t.Errorf("%s: %d init containers", d, got)
		}
		if got := len(spec.Volumes); (got == 1) != (d != DeliverBaked) {
			t.Errorf("%s: %d volumes", d, got)
		}
		if len(spec.Containers[1].VolumeMounts) > 0 || len(spec.Containers[1].Command) > 0 {
			t.Errorf("%s: the container that is not wrapped was changed: %+v", d, spec.Containers[1])
		}
		env := spec.Containers[0].Env
		if env[0].Value != "tls:h:1" || env[1].ValueFrom.SecretKeyRef.Name != "secret" ||
			env[1].ValueFrom.SecretKeyRef.Key != "main" {
			t.Errorf("%s: environment %+v", d, env)
		}
	}
}

// TestFor: pods of the product's image have the agent, those of which one wrapped container has another image do not.
func TestFor(t *testing.T) {
	spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "img"}, {Name: "b", Image: "fio"}}}
	for _, c := range []struct {
		wrapped []string
		want    Delivery
	}{{[]string{"a"}, DeliverBaked}, {[]string{"a", "b"}, DeliverImage}, {nil, DeliverBaked}} {
		if got := DeliverImage.For(&spec, "img", c.wrapped); got != c.want {
			t.Errorf("%v: got %s, want %s", c.wrapped, got, c.want)
		}
	}
}
