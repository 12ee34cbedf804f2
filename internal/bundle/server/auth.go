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

// Verbs of the Kubernetes API for requests on the results of a namespace.
const (
	verbGet    = "get"
	verbList   = "list"
	verbCreate = "create"
	verbUpdate = "update"
	verbDelete = "delete"
)

// Authenticator identifies the sender of a request, before anything else is done for the request.
type Authenticator interface {
	// Identify returns the sender. The error is a *Denied, or a failure of the check.
	Identify(r *http.Request) (Caller, error)
}

// Caller is an authenticated sender of requests.
type Caller interface {
	// Allow fails unless the caller may do verb with the results of a namespace ("": of all). The error is a
	// *Denied, or a failure of the check.
	Allow(ctx context.Context, verb, namespace string) error
}

// Denied is the refusal of a request.
type Denied struct {
	Status  int // 401 or 403
	Message string
}

func (d *Denied) Error() string { return d.Message }

// AllowAll allows all requests: for a loopback address.
type AllowAll struct{}

// Identify accepts every request.
func (AllowAll) Identify(*http.Request) (Caller, error) { return fullAccess{}, nil }

type fullAccess struct{}

func (fullAccess) Allow(context.Context, string, string) error { return nil }

// ReadOnly allows every read and no write: for a run that offers its own bundle.
type ReadOnly struct{}

// Identify accepts every request.
func (ReadOnly) Identify(*http.Request) (Caller, error) { return readAccess{}, nil }

type readAccess struct{}

func (readAccess) Allow(_ context.Context, verb, _ string) error {
	if verb == verbGet || verb == verbList {
		return nil
	}
	return &Denied{http.StatusForbidden, "this bundle is read-only"}
}

// Token allows everything to holders of the token.
type Token string

// Identify compares the bearer token.
func (t Token) Identify(r *http.Request) (Caller, error) {
	given, err := bearer(r)
	if err != nil {
		return nil, err
	}
	if t == "" || subtle.ConstantTimeCompare([]byte(given), []byte(t)) != 1 {
		return nil, &Denied{http.StatusUnauthorized, "invalid token"}
	}
	return fullAccess{}, nil
}

func bearer(r *http.Request) (string, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || token == "" {
		return "", &Denied{http.StatusUnauthorized, "bearer token missing: want Authorization: Bearer TOKEN"}
	}
	return token, nil
}

// Audience is the required audience of tokens, so that a stolen token, also by the service itself, is of no
// use elsewhere.
const Audience = "cnsbench-results"

// TokenReviewer is the part of client-go's typed client that creates TokenReviews.
type TokenReviewer interface {
	Create(context.Context, *authentication.TokenReview, metav1.CreateOptions) (*authentication.TokenReview, error)
}

// AccessReviewer is the part of client-go's typed client that creates SubjectAccessReviews.
type AccessReviewer interface {
	Create(context.Context, *authorization.SubjectAccessReview,
		metav1.CreateOptions) (*authorization.SubjectAccessReview, error)
}

// Kubernetes authenticates tokens by a TokenReview and authorizes requests by a SubjectAccessReview of
// benchmarks.cnsbench.dev/results. Results are cached for ten seconds.
type Kubernetes struct {
	tokens TokenReviewer
	access AccessReviewer
	users  answerCache[tokenSum, authentication.UserInfo]
	rights answerCache[accessQuery, struct{}]
}

// tokenSum is the hash of a token, which itself is not stored.
type tokenSum [sha256.Size]byte

// accessQuery is the key of a cached authorization.
type accessQuery struct {
	token           tokenSum
	verb, namespace string
}

const (
	cacheTTL      = 10 * time.Second
	maxCached     = 4096
	reviewTimeout = 10 * time.Second
	// maxToken is longer than any token that a cluster issues.
	maxToken = 16 << 10
)

// NewKubernetes returns an Authenticator that uses these clients.
func NewKubernetes(tokens TokenReviewer, access AccessReviewer) *Kubernetes {
	k := &Kubernetes{tokens: tokens, access: access}
	k.setClock(time.Now)
	return k
}

func (k *Kubernetes) setClock(now func() time.Time) { k.users.now, k.rights.now = now, now }

// Identify reviews the token or uses a cached review.
func (k *Kubernetes) Identify(r *http.Request) (Caller, error) {
	token, err := bearer(r)
	if err != nil {
		return nil, err
	}
	if len(token) > maxToken {
		return nil, &Denied{http.StatusUnauthorized, "the bearer token is too long"}
	}
	sum := tokenSum(sha256.Sum256([]byte(token)))
	user, err := k.users.get(sum, func() (authentication.UserInfo, error) { return k.reviewToken(r.Context(), token) })
	if err != nil {
		return nil, err
	}
	return &clusterCaller{k, sum, user}, nil
}

// clusterCaller is a user known to the cluster.
type clusterCaller struct {
	k     *Kubernetes
	token tokenSum
	user  authentication.UserInfo
}

// Allow reviews the access or uses a cached review.
func (c *clusterCaller) Allow(ctx context.Context, verb, namespace string) error {
	_, err := c.k.rights.get(accessQuery{c.token, verb, namespace}, func() (struct{}, error) {
		return struct{}{}, c.k.reviewAccess(ctx, c.user, verb, namespace)
	})
	return err
}

func (k *Kubernetes) reviewAccess(ctx context.Context, user authentication.UserInfo, verb, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
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
		return &Denied{http.StatusForbidden,
			fmt.Sprintf("%s may not %s benchmarks.cnsbench.dev/results %s: bind a Role with that verb", user.Username,
				verb, where)}
	}
	return nil
}

// reviewToken returns the token's user. Only tokens with this service's audience count: with a token for the
// API server the service could act as its owner. An authenticator without audience support returns no
// audiences.
func (k *Kubernetes) reviewToken(ctx context.Context, token string) (authentication.UserInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
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
		why = "it is unknown or has another audience"
	}
	return authentication.UserInfo{}, &Denied{http.StatusUnauthorized,
		fmt.Sprintf("token not accepted for the audience %s: %s: "+
			"create one with kubectl create token ACCOUNT --audience %s", Audience, why, Audience)}
}

// answerCache caches reviews, including refusals, but not failed requests. It is safe for concurrent use.
type answerCache[Q comparable, A any] struct {
	now func() time.Time

	mu      sync.Mutex
	entries map[Q]cachedAnswer[A]
}

type cachedAnswer[A any] struct {
	value A
	err   error // nil or *Denied
	until time.Time
}

func (a *answerCache[Q, A]) get(q Q, ask func() (A, error)) (A, error) {
	a.mu.Lock()
	known, ok := a.entries[q]
	a.mu.Unlock()
	if ok && a.now().Before(known.until) {
		return known.value, known.err
	}
	is, err := ask()
	var denied *Denied
	if err == nil || errors.As(err, &denied) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.entries == nil || len(a.entries) >= maxCached {
			a.entries = map[Q]cachedAnswer[A]{}
		}
		a.entries[q] = cachedAnswer[A]{is, err, a.now().Add(cacheTTL)}
	}
	return is, err
}
