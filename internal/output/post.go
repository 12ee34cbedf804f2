package output

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/redact"
)

// Target is a receiver of documents.
type Target struct {
	Name string
	URL  string
	// Index of Elasticsearch or OpenSearch, whose URL is without it; empty: each document is posted to the URL.
	Index string
	// OTLP: traces and metrics are sent to the URL of an OTLP/HTTP receiver, which is without /v1/traces.
	OTLP bool
	// RemoteWrite: the metrics of the run are sent to the URL by remote write of Prometheus, and no documents.
	RemoteWrite bool
	// Query of the URL, without "?"; not recorded.
	Query string
	// Authorization is the header of that name; not recorded.
	Authorization string
	// Actions whose ops and workloads are sent. Every target gets the run's
	// metadata.
	Actions map[string]bool
}

// encoding is how documents are sent to a target. It is safe for concurrent use.
type encoding interface {
	// limits of one request: it ends with the document that reaches one of them.
	limits() (documents, bytes int)
	// encode returns the text of a document.
	encode(document any) ([]byte, error)
	// send sends documents, without retries, and returns the outcome of each: nil, a *refusedError if a retry cannot
	// succeed, or another error. after is the receiver's Retry-After, else 0.
	send(ctx context.Context, batch []encoded) (outcomes []error, after time.Duration)
}

// encoded is a document ready to be sent.
type encoded struct {
	key, id string
	body    []byte
}

// single sends each document as the body of one POST.
type single struct{ *poster }

func (single) limits() (documents, bytes int) { return 1, 0 }

func (single) encode(document any) ([]byte, error) { return json.Marshal(document) }

func (s single) send(ctx context.Context, batch []encoded) (outcomes []error, after time.Duration) {
	for _, d := range batch {
		r := s.do(ctx, http.MethodPost, s.url, request{contentType: "application/json", id: d.id, body: d.body})
		outcomes, after = append(outcomes, r.err), max(after, r.after)
	}
	return outcomes, after
}

// poster sends requests, without retries.
type poster struct {
	client        *http.Client
	url           string
	authorization string
}

const (
	// workers is the number of concurrent requests to one target.
	workers = 4
	// postLimit is how long one request may take.
	postLimit = 15 * time.Second
	// idHeader has a document's id, by which a receiver recognizes repeats.
	idHeader = "Cnsbench-Document"
	// maxResponse is the most that is read of a response.
	maxResponse = 8 << 20
)

func newPoster(t Target, limit time.Duration) *poster {
	to := t.URL
	if t.Query != "" {
		base, query, _ := strings.Cut(to, "?") // older bundles have a query in the URL
		to = base + "?" + strings.TrimPrefix(query+"&"+strings.TrimPrefix(t.Query, "?"), "&")
	}
	return &poster{url: to, authorization: t.Authorization, client: &http.Client{
		Timeout: limit,
		// A redirect turns most POSTs into GETs, which deliver nothing.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: workers,
			IdleConnTimeout: time.Minute},
	}}
}

// refusedError is a permanent refusal by the receiver.
type refusedError struct{ message string }

func (e *refusedError) Error() string { return e.message }

// withoutSecrets removes the query of a URL, which may be secret, and its password.
func withoutSecrets(text string) string {
	text, _, _ = strings.Cut(text, "?")
	return redact.Value("", text)
}

// brief is a text of a receiver for a message: one line, not long, without secrets.
func brief(text []byte) string {
	return fmt.Sprintf("%.300s", redact.Text(strings.Join(strings.Fields(string(text)), " ")))
}

// isTransient reports whether the same request may succeed later.
func isTransient(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusRequestTimeout || status >= 500
}

// request is what do sends.
type request struct {
	contentType, id string
	headers         map[string]string // further ones
	body            []byte
}

// response to a request. err is nil if the request succeeded, and a *refusedError if a retry cannot succeed; after is
// the receiver's Retry-After, else 0.
type response struct {
	status int
	text   []byte
	after  time.Duration
	err    error
}

// do sends one request.
func (p *poster) do(ctx context.Context, method, to string, r request) response {
	req, err := http.NewRequestWithContext(ctx, method, to, bytes.NewReader(r.body))
	if err != nil {
		return response{err: &refusedError{"invalid URL " + withoutSecrets(p.url)}}
	}
	req.Header.Set("User-Agent", "cnsbench")
	for name, value := range r.headers {
		req.Header.Set(name, value)
	}
	for name, value := range map[string]string{"Content-Type": r.contentType, idHeader: r.id,
		"Authorization": p.authorization} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	resp, err := p.client.Do(req)
	if err != nil {
		var u *url.Error // its text has the whole URL
		if errors.As(err, &u) {
			err = u.Err
		}
		return response{err: err}
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
	_ = resp.Body.Close()
	answer := response{status: resp.StatusCode, text: text}
	message := fmt.Sprintf("response %s: %s", resp.Status, brief(text))
	switch {
	case resp.StatusCode < 300 && err != nil:
		answer.err = fmt.Errorf("read response: %w", err)
	case resp.StatusCode < 300:
	case resp.StatusCode < 400:
		answer.err = &refusedError{fmt.Sprintf("redirect to %s: use that URL", withoutSecrets(resp.Header.Get("Location")))}
	case isTransient(resp.StatusCode):
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // 0 if absent or invalid
		answer.after, answer.err = time.Duration(max(0, seconds))*time.Second, errors.New(message)
	default:
		answer.err = &refusedError{message}
	}
	return answer
}
