package output

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// poster sends one document, without retries.
type poster struct {
	client        *http.Client
	url           string
	authorization string
}

const (
	// postLimit is how long one request may take.
	postLimit = 15 * time.Second
	// idHeader has a document's id, by which a receiver recognizes repeats.
	idHeader = "Cnsbench-Document"
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

// withoutQuery removes the query of a URL, which may be secret.
func withoutQuery(text string) string {
	text, _, _ = strings.Cut(text, "?")
	return text
}

// post sends one document. The error is a *refusedError if a retry cannot succeed; after is
// the receiver's Retry-After, else 0.
func (p *poster) post(ctx context.Context, id string, body []byte) (after time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return 0, &refusedError{err.Error()}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "cnsbench")
	req.Header.Set(idHeader, id)
	if p.authorization != "" {
		req.Header.Set("Authorization", p.authorization)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		var u *url.Error // its text has the whole URL
		if errors.As(err, &u) {
			err = u.Err
		}
		return 0, err
	}
	text, readErr := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	_ = resp.Body.Close()
	answer := fmt.Sprintf("response %s: %.200s", resp.Status, strings.Join(strings.Fields(string(text)), " "))
	switch {
	case resp.StatusCode < 300 && readErr != nil:
		return 0, fmt.Errorf("read response: %w", readErr)
	case resp.StatusCode < 300:
		return 0, nil
	case resp.StatusCode < 400:
		return 0, &refusedError{fmt.Sprintf("redirect to %s: use that URL", withoutQuery(resp.Header.Get("Location")))}
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusRequestTimeout ||
		resp.StatusCode >= 500:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // 0 if absent or invalid
		return time.Duration(max(0, seconds)) * time.Second, errors.New(answer)
	}
	return 0, &refusedError{answer}
}
