//go:build e2e

package server

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	authentication "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// TestKubernetesOfACluster checks authentication and authorization with tokens and roles of a real API server.
func TestKubernetesOfACluster(t *testing.T) {
	path := os.Getenv("KUBECONFIG")
	if path == "" {
		t.Skip("KUBECONFIG is not set: no cluster to ask")
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { utilnet.CloseIdleConnectionsFor(client.Transport) })
	set, err := kubernetes.NewForConfigAndClient(config, client)
	if err != nil {
		t.Fatal(err)
	}
	ctx, ns := t.Context(), fmt.Sprintf("results-test-%d", os.Getpid())
	if _, err := set.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if err := set.CoreV1().Namespaces().Delete(ctx, ns, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "runner"}}
	if _, err := set.CoreV1().ServiceAccounts(ns).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	role := &rbac.Role{ObjectMeta: metav1.ObjectMeta{Name: "pusher"}, Rules: []rbac.PolicyRule{
		{APIGroups: []string{"cnsbench.dev"}, Resources: []string{"benchmarks/results"},
			Verbs: []string{"get", "create", "update"}}}}
	if _, err := set.RbacV1().Roles(ns).Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbac.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "pusher"},
		RoleRef:  rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "Role", Name: "pusher"},
		Subjects: []rbac.Subject{{Kind: "ServiceAccount", Name: "runner", Namespace: ns}}}
	if _, err := set.RbacV1().RoleBindings(ns).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token := func(audiences ...string) string {
		t.Helper()
		r, err := set.CoreV1().ServiceAccounts(ns).CreateToken(ctx, "runner", &authentication.TokenRequest{Spec: authentication.TokenRequestSpec{Audiences: audiences}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return r.Status.Token
	}
	k := NewKubernetes(set.AuthenticationV1().TokenReviews(), set.AuthorizationV1().SubjectAccessReviews())
	for _, tt := range []struct{ name, token, verb, namespace, denied string }{
		{"its audience", token(Audience), "update", ns, ""},
		{"the API server's", token(), "get", ns, "token not accepted"},
		{"another audience", token("other"), "get", ns, "token not accepted"},
		{"another verb", token(Audience), "delete", ns,
			"runner may not delete benchmarks.cnsbench.dev/results in namespace " + ns},
		{"another namespace", token(Audience), "get", "default", "may not get"},
		{"nonsense", "nonsense", "get", ns, "token not accepted"},
	} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://results/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+tt.token)
		// The authorizer sees a new role after a short delay.
		for end := time.Now().Add(5 * time.Second); ; time.Sleep(100 * time.Millisecond) {
			clear(k.rights.entries)
			var who Caller
			if who, err = k.Identify(req); err == nil {
				err = who.Allow(ctx, tt.verb, tt.namespace)
			}
			if err == nil || tt.denied != "" || time.Now().After(end) {
				break
			}
		}
		if (err == nil) != (tt.denied == "") || err != nil && !strings.Contains(err.Error(), tt.denied) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.denied)
		}
	}
}
