package results

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Verbs of the Kubernetes API, which say what a request wants to do with the
// results of a namespace.
const (
	verbGet    = "get"
	verbList   = "list"
	verbCreate = "create"
	verbUpdate = "update"
	verbDelete = "delete"
)

// Authenticator decides whether the sender of a request may do verb with the
// results of a namespace ("": of all). The error is a *Denied, or one of asking.
type Authenticator interface {
	Allow(r *http.Request, verb, namespace string) error
}

// Denied says that a request is refused.
type Denied struct {
	Status  int // 401 or 403
	Message string
}

func (d *Denied) Error() string { return d.Message }

// Anyone allows everything: for a loopback address.
type Anyone struct{}

// Allow always does.
func (Anyone) Allow(*http.Request, string, string) error { return nil }

// Token allows everything to whoever knows it: for a run's own pod.
type Token string

// Allow compares the bearer token.
func (t Token) Allow(r *http.Request, _, _ string) error {
	given, err := bearer(r)
	if err != nil {
		return err
	}
	if t == "" || subtle.ConstantTimeCompare([]byte(given), []byte(t)) != 1 {
		return &Denied{http.StatusUnauthorized, "this is not the run's token"}
	}
	return nil
}

func bearer(r *http.Request) (string, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || token == "" {
		return "", &Denied{http.StatusUnauthorized, "a bearer token is needed: Authorization: Bearer TOKEN"}
	}
	return token, nil
}

// Audience is what tokens for a results service should be made for: the service
// could not use such a token elsewhere.
const Audience = "cnsbench-results"

// TokenReviewer tells whose a token is, as client-go's typed client does.
type TokenReviewer interface {
	Create(context.Context, *authentication.TokenReview, metav1.CreateOptions) (*authentication.TokenReview, error)
}

// AccessReviewer tells what somebody may do, as client-go's typed client does.
type AccessReviewer interface {
	Create(context.Context, *authorization.SubjectAccessReview, metav1.CreateOptions) (*authorization.SubjectAccessReview, error)
}

// Kubernetes lets the cluster decide: who a token is by a TokenReview, and what
// its owner may do by a SubjectAccessReview of benchmarks.cnsbench.dev/results.
// Answers are kept for ten seconds, never longer.
type Kubernetes struct {
	tokens TokenReviewer
	access AccessReviewer
	now    func() time.Time

	mu      sync.Mutex
	answers map[question]answer
}

// question is what was asked; the token itself is not kept.
type question struct {
	token           [sha256.Size]byte
	verb, namespace string
}

type answer struct {
	err   error // nil or *Denied
	until time.Time
}

const (
	keepAnswers = 10 * time.Second
	maxAnswers  = 4096
)

// NewKubernetes asks the cluster by these clients.
func NewKubernetes(tokens TokenReviewer, access AccessReviewer) *Kubernetes {
	return &Kubernetes{tokens: tokens, access: access, now: time.Now, answers: map[question]answer{}}
}

// Allow asks the cluster, or remembers.
func (k *Kubernetes) Allow(r *http.Request, verb, namespace string) error {
	token, err := bearer(r)
	if err != nil {
		return err
	}
	q := question{sha256.Sum256([]byte(token)), verb, namespace}
	if a, ok := k.remembered(q); ok {
		return a.err
	}
	err = k.ask(r.Context(), token, verb, namespace)
	var denied *Denied
	if err == nil || errors.As(err, &denied) {
		k.remember(q, err)
	}
	return err
}

func (k *Kubernetes) remembered(q question) (answer, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	a, ok := k.answers[q]
	return a, ok && k.now().Before(a.until)
}

func (k *Kubernetes) remember(q question, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.answers) >= maxAnswers {
		clear(k.answers)
	}
	k.answers[q] = answer{err, k.now().Add(keepAnswers)}
}

func (k *Kubernetes) ask(ctx context.Context, token, verb, namespace string) error {
	user, err := k.who(ctx, token)
	if err != nil {
		return err
	}
	extra := map[string]authorization.ExtraValue{}
	for key, v := range user.Extra {
		extra[key] = authorization.ExtraValue(v)
	}
	review, err := k.access.Create(ctx, &authorization.SubjectAccessReview{Spec: authorization.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		ResourceAttributes: &authorization.ResourceAttributes{Namespace: namespace, Verb: verb,
			Group: "cnsbench.dev", Resource: "benchmarks", Subresource: "results"},
	}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("results: subject access review: %w", err)
	}
	if !review.Status.Allowed {
		where := "in namespace " + namespace
		if namespace == "" {
			where = "in all namespaces"
		}
		return &Denied{http.StatusForbidden, fmt.Sprintf("%s may not %s benchmarks.cnsbench.dev/results %s: a Role with that verb, bound to them, would allow it", user.Username, verb, where)}
	}
	return nil
}

// who asks whose token it is: one made for us, else one for the API server.
func (k *Kubernetes) who(ctx context.Context, token string) (authentication.UserInfo, error) {
	message := ""
	for _, audiences := range [][]string{{Audience}, nil} {
		review, err := k.tokens.Create(ctx, &authentication.TokenReview{Spec: authentication.TokenReviewSpec{Token: token, Audiences: audiences}}, metav1.CreateOptions{})
		if err != nil {
			return authentication.UserInfo{}, fmt.Errorf("results: token review: %w", err)
		}
		if review.Status.Authenticated {
			return review.Status.User, nil
		}
		message = review.Status.Error
	}
	return authentication.UserInfo{}, &Denied{http.StatusUnauthorized, "the cluster does not know this token: " + message}
}
