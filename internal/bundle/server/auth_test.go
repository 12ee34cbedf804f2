package server

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reviews imitates the review APIs of an API server; auth_cluster_test.go uses a real one.
type reviews struct {
	down     bool
	unaware  bool     // the API server does not support audiences
	audience []string // audiences of the token "good"; none: that of the API server
	verbs    []string // verbs that the token's user may use in namespace team
	asked    int
}

type tokenReviews struct{ *reviews }

func (r tokenReviews) Create(_ context.Context, q *authentication.TokenReview,
	_ metav1.CreateOptions) (*authentication.TokenReview, error) {
	r.asked++
	if r.down {
		return nil, errors.New("connection refused")
	}
	q.Status.Authenticated = q.Spec.Token == "good" && slices.Equal(q.Spec.Audiences, r.audience)
	if !r.unaware {
		q.Status.Audiences = q.Spec.Audiences
	}
	q.Status.User = authentication.UserInfo{Username: "runner", Groups: []string{"g"},
		Extra: map[string]authentication.ExtraValue{"k": {"v"}}}
	return q, nil
}

type accessReviews struct{ *reviews }

func (r accessReviews) Create(_ context.Context, q *authorization.SubjectAccessReview,
	_ metav1.CreateOptions) (*authorization.SubjectAccessReview, error) {
	a := q.Spec.ResourceAttributes
	q.Status.Allowed = q.Spec.User == "runner" && slices.Equal(q.Spec.Groups, []string{"g"}) &&
		q.Spec.Extra["k"][0] == "v" && a.Namespace == "team" &&
		a.Group == "cnsbench.dev" && a.Resource == "benchmarks" && a.Subresource == "results" &&
		slices.Contains(r.verbs, a.Verb)
	return q, nil
}

func TestKubernetesDecides(t *testing.T) {
	r := &reviews{audience: []string{Audience}, verbs: []string{"get", "create"}}
	k := NewKubernetes(tokenReviews{r}, accessReviews{r})
	now := time.Unix(0, 0)
	k.setClock(func() time.Time { return now })
	h := (&Handler{Store: emptyStore(t), Auth: k}).Serve()
	status := func(method, target, token string) int {
		t.Helper()
		req := httptest.NewRequestWithContext(t.Context(), method, target, nil)
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		return w.Code
	}
	const file = "/files/log.jsonl?offset=0"
	for _, tt := range []struct {
		name, method, target, token string
		want                        int
	}{
		{"health needs none", "GET", "/healthz", "", 200},
		{"no token", "GET", "/v1/runs/team/r1", "", 401},
		{"an unknown one", "GET", "/v1/runs/team/r1", "bad", 401},
		{"may read", "GET", "/v1/runs/team/r1", "good", 404},
		{"not elsewhere", "GET", "/v1/runs/other/r1", "good", 403},
		{"may not list", "GET", "/v1/runs?namespace=team", "good", 403},
		{"nor all", "GET", "/v1/runs", "good", 403},
		{"may create", "PUT", "/v1/runs/team/r1" + file, "good", 200},
		{"may not update", "PUT", "/v1/runs/team/r1" + file, "good", 403},
		{"nor close", "POST", "/v1/runs/team/r1/close", "good", 403},
		{"nor lose", "POST", "/v1/runs/team/r1/lost", "good", 403},
		{"nor remove a file", "DELETE", "/v1/runs/team/r1/files/log.jsonl", "good", 403},
		{"nor delete", "DELETE", "/v1/runs/team/r1", "good", 403},
		{"may read what it made", "GET", "/v1/runs/team/r1" + file, "good", 200},
	} {
		if got := status(tt.method, tt.target, tt.token); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}

	asked := r.asked
	status("GET", "/v1/runs/team/r1", "good")
	if r.asked != asked {
		t.Error("an answer is not remembered")
	}
	r.verbs = nil
	now = now.Add(cacheTTL)
	if got := status("GET", "/v1/runs/team/r1", "good"); got != 403 {
		t.Errorf("a right that was taken away ten seconds ago: %d", got)
	}
	r.verbs, r.audience = []string{"get"}, nil
	now = now.Add(cacheTTL)
	if got := status("GET", "/v1/runs/team/r1", "good"); got != 401 {
		t.Errorf("a token for the API server: %d", got)
	}
	r.audience, r.unaware = []string{Audience}, true
	now = now.Add(cacheTTL)
	if got := status("GET", "/v1/runs/team/r1", "good"); got != 401 {
		t.Errorf("a cluster that does not look at the audience: %d", got)
	}
	r.unaware = false
	r.down = true
	now = now.Add(cacheTTL)
	if got := status("GET", "/v1/runs/team/r1", "good"); got != http.StatusInternalServerError {
		t.Errorf("while nobody can be asked: %d", got)
	}
	r.down = false
	if got := status("GET", "/v1/runs/team/r1", "good"); got != 200 {
		t.Errorf("a failure to ask is remembered: %d", got)
	}
}

func emptyStore(t *testing.T) *Store {
	t.Helper()
	s, err := OpenStore(t.TempDir(), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}
