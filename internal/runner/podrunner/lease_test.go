package podrunner

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/cnsbench/cnsbench/internal/cluster"
)

func leaseOf(name string, labels map[string]string) *coordinationv1.Lease {
	life, now := int32(30), metav1.NewMicroTime(time.Unix(0, 0)) // renewed by a clock that is far off
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "n", Labels: labels},
		Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: &life, RenewTime: &now}}
}

// A runner goes on as long as its Lease is renewed, and ends within its duration
// afterwards.
func TestRunnerEndsWhenItsLeaseIsNotRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := &cluster.Cluster{Namespace: "n", Set: fake.NewClientset(leaseOf("l", nil),
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "l"}})}
		var said strings.Builder
		f := WatchLease(t.Context(), on, "l", &said)
		f.Running.Store(false) // it would signal this process
		for i := range 30 {
			time.Sleep(5 * time.Second)
			if f.Expired.Err() != nil {
				t.Fatalf("it ended after %d renewals: %s", i, said.String())
			}
			now, _ := metav1.NewMicroTime(time.Unix(int64(i), 0)).MarshalJSON()
			if err := renewLease(t.Context(), on, "l", now); err != nil {
				t.Fatal(err)
			}
		}
		renewed := time.Now()
		<-f.Expired.Done()
		if took := time.Since(renewed); took < 30*time.Second || took > 35*time.Second {
			t.Errorf("it ended %v after the last renewal", took)
		}
		if !strings.Contains(said.String(), "n/l was not renewed for 30s") {
			t.Errorf("it says %q", said.String())
		}
		if err := f.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left, _ := renewedNames(t, on); left != 0 {
			t.Error("its Lease is left")
		}
		if list, err := on.Set.RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{}); err != nil ||
			len(list.Items) > 0 {
			t.Errorf("its ClusterRole is left: %v, %v", list, err)
		}
	})
}

func renewedNames(t *testing.T, on *cluster.Cluster) (int, error) {
	list, err := on.Set.CoordinationV1().Leases("n").List(t.Context(), metav1.ListOptions{})
	return len(list.Items), err
}

// A clean-up refuses a run that goes on, and ends the runner of one whose command
// is gone, with all that was made for it.
func TestCleanupEndsRunners(t *testing.T) {
	mine, ofRun := map[string]string{Label: "r"}, map[string]string{"cnsbench.dev/run": "r"}
	for name, tt := range map[string]struct{ renewed, want string }{
		"its command lives": {"cnsb-r-runner", "interrupt that command"},
		"its runner lives":  {"cnsbench-driver", "end it first"},
		"nobody lives":      {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				meta := metav1.ObjectMeta{Name: "cnsb-r-runner", Namespace: "n", Labels: mine}
				other := metav1.ObjectMeta{Name: "other", Namespace: "n"}
				on := &cluster.Cluster{Namespace: "n", Set: fake.NewClientset(
					leaseOf("cnsb-r-runner", mine), leaseOf("cnsbench-driver", ofRun),
					&corev1.Pod{ObjectMeta: meta}, &corev1.ConfigMap{ObjectMeta: meta}, &corev1.Secret{ObjectMeta: meta},
					&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: meta.Name, Labels: mine}},
					&corev1.Pod{ObjectMeta: other}, &corev1.ConfigMap{ObjectMeta: other})}
				if tt.renewed != "" {
					time.AfterFunc(4*time.Second, func() {
						now, _ := metav1.NowMicro().MarshalJSON()
						_ = renewLease(t.Context(), on, tt.renewed, now)
						time.AfterFunc(renewWindow, func() {
							_ = renewLease(t.Context(), on, tt.renewed, []byte(`"2001-01-01T00:00:00.000000Z"`))
						})
					})
				}
				err := Owner{Run: "r"}.Stop(t.Context(), on, new(strings.Builder))
				if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want %q", err, tt.want)
				}
				pods, _ := on.Set.CoreV1().Pods("n").List(t.Context(), metav1.ListOptions{})
				configs, _ := on.Set.CoreV1().ConfigMaps("n").List(t.Context(), metav1.ListOptions{})
				bound, _ := on.Set.RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{})
				if len(bound.Items) != 1-count01(tt.want == "") {
					t.Errorf("%d ClusterRoleBindings are left", len(bound.Items))
				}
				ended := tt.renewed != "cnsb-r-runner"
				if len(pods.Items) != 2-count01(ended) || len(configs.Items) != 2-count01(tt.want == "") {
					t.Errorf("%d pods, %d ConfigMaps are left", len(pods.Items), len(configs.Items))
				}
			})
		})
	}
}

func count01(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
