package server

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"slices"
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

// Authenticator tells whose a request is. It is asked before anything else is
// done for the request.
type Authenticator interface {
	// Identify gives who sends the request. The error is a *Denied, or one of asking.
	Identify(r *http.Request) (Caller, error)
}

// Caller is an authenticated sender of requests.
type Caller interface {
	// Allow says whether the caller may do verb with the results of a namespace
	// ("": of all). The error is a *Denied, or one of asking.
	Allow(ctx context.Context, verb, namespace string) error
}

// Denied says that a request is refused.
type Denied struct {
	Status  int // 401 or 403
	Message string
}

func (d *Denied) Error() string { return d.Message }

// Anyone allows everything: for a loopback address.
type Anyone struct{}

// Identify takes everybody.
func (Anyone) Identify(*http.Request) (Caller, error) { return mayAll{}, nil }

type mayAll struct{}

func (mayAll) Allow(context.Context, string, string) error { return nil }

// Readers allows everybody to read, and nobody to write: for a run that offers
// its own bundle.
type Readers struct{}

// Identify takes everybody.
func (Readers) Identify(*http.Request) (Caller, error) { return mayRead{}, nil }

type mayRead struct{}

func (mayRead) Allow(_ context.Context, verb, _ string) error {
	if verb == verbGet || verb == verbList {
		return nil
	}
	return &Denied{http.StatusForbidden, "this bundle can only be read"}
}

// Token allows everything to whoever knows it.
type Token string

// Identify compares the bearer token.
func (t Token) Identify(r *http.Request) (Caller, error) {
	given, err := bearer(r)
	if err != nil {
		return nil, err
	}
	if t == "" || subtle.ConstantTimeCompare([]byte(given), []byte(t)) != 1 {
		return nil, &Denied{http.StatusUnauthorized, "this is not the service's token"}
	}
	return mayAll{}, nil
}

func bearer(r *http.Request) (string, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || token == "" {
		return "", &Denied{http.StatusUnauthorized, "a bearer token is needed: Authorization: Bearer TOKEN"}
	}
	return token, nil
}

// Audience is what tokens for a results service must be made for: whoever gets
// hold of such a token, the service included, cannot use it elsewhere.
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
	users  answers[tokenSum, authentication.UserInfo]
	rights answers[question, struct{}]
}

// tokenSum stands for a token, which itself is not kept.
type tokenSum [sha256.Size]byte

// question is what was asked.
type question struct {
	token           tokenSum
	verb, namespace string
}

const (
	keepAnswers = 10 * time.Second
	maxAnswers  = 4096
	askWithin   = 10 * time.Second
	// longestToken is far more than any cluster issues.
	longestToken = 16 << 10
)

// NewKubernetes asks the cluster by these clients.
func NewKubernetes(tokens TokenReviewer, access AccessReviewer) *Kubernetes {
	k := &Kubernetes{tokens: tokens, access: access}
	k.setClock(time.Now)
	return k
}

func (k *Kubernetes) setClock(now func() time.Time) { k.users.now, k.rights.now = now, now }

// Identify asks the cluster whose the token is, or remembers.
func (k *Kubernetes) Identify(r *http.Request) (Caller, error) {
	token, err := bearer(r)
	if err != nil {
		return nil, err
	}
	if len(token) > longestToken {
		return nil, &Denied{http.StatusUnauthorized, "the bearer token is too long"}
	}
	sum := tokenSum(sha256.Sum256([]byte(token)))
	user, err := k.users.get(sum, func() (authentication.UserInfo, error) { return k.who(r.Context(), token) })
	if err != nil {
		return nil, err
	}
	return &clusterCaller{k, sum, user}, nil
}

// clusterCaller is somebody whom the cluster knows.
type clusterCaller struct {
	k     *Kubernetes
	token tokenSum
	user  authentication.UserInfo
}

// Allow asks the cluster, or remembers.
func (c *clusterCaller) Allow(ctx context.Context, verb, namespace string) error {
	_, err := c.k.rights.get(question{c.token, verb, namespace}, func() (struct{}, error) {
		return struct{}{}, c.k.ask(ctx, c.user, verb, namespace)
	})
	return err
}

func (k *Kubernetes) ask(ctx context.Context, user authentication.UserInfo, verb, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
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

// who asks whose token it is. Only one that was made for us counts: a token for
// the API server would let us act as its owner. An authenticator that does not
// know of audiences names none in its answer.
func (k *Kubernetes) who(ctx context.Context, token string) (authentication.UserInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	review, err := k.tokens.Create(ctx, &authentication.TokenReview{
		Spec: authentication.TokenReviewSpec{Token: token, Audiences: []string{Audience}}}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return authentication.UserInfo{}, fmt.Errorf("results: token review: %w", err)
	case review.Status.Authenticated && slices.Contains(review.Status.Audiences, Audience):
		return review.Status.User, nil
	}
	why := review.Status.Error
	if why == "" {
		why = "it is unknown, or was made for another audience"
	}
	return authentication.UserInfo{}, &Denied{http.StatusUnauthorized,
		fmt.Sprintf("the cluster does not know this token for the audience %s: %s; "+
			"kubectl create token ACCOUNT --audience %s makes one", Audience, why, Audience)}
}

// answers keeps what the cluster answered: refusals too, failures to ask not. It
// is safe for concurrent use.
type answers[Q comparable, A any] struct {
	now func() time.Time

	mu   sync.Mutex
	kept map[Q]answer[A]
}

type answer[A any] struct {
	is    A
	err   error // nil or *Denied
	until time.Time
}

func (a *answers[Q, A]) get(q Q, ask func() (A, error)) (A, error) {
	a.mu.Lock()
	known, ok := a.kept[q]
	a.mu.Unlock()
	if ok && a.now().Before(known.until) {
		return known.is, known.err
	}
	is, err := ask()
	var denied *Denied
	if err == nil || errors.As(err, &denied) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.kept == nil || len(a.kept) >= maxAnswers {
			a.kept = map[Q]answer[A]{}
		}
		a.kept[q] = answer[A]{is, err, a.now().Add(keepAnswers)}
	}
	return is, err
}
