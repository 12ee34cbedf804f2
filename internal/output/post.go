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

// poster sends one document at a time. It repeats nothing.
type poster struct {
	client        *http.Client
	url           string
	authorization string
}

const (
	// postLimit is how long one request may take.
	postLimit = 15 * time.Second
	// idHeader carries a document's id, by which a receiver can tell what it
	// has already.
	idHeader = "Cnsbench-Document"
)

func newPoster(t Target, limit time.Duration) *poster {
	to := t.URL
	if t.Query != "" {
		base, query, _ := strings.Cut(to, "?") // a bundle of before has one there
		to = base + "?" + strings.TrimPrefix(query+"&"+strings.TrimPrefix(t.Query, "?"), "&")
	}
	return &poster{url: to, authorization: t.Authorization, client: &http.Client{
		Timeout: limit,
		// A redirect turns most POSTs into GETs: what looks delivered is not.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: workers, IdleConnTimeout: time.Minute},
	}}
}

// refusedError says that a receiver will not take a document.
type refusedError struct{ message string }

func (e *refusedError) Error() string { return e.message }

// withoutQuery is a URL without what may be secret in it.
func withoutQuery(text string) string {
	text, _, _ = strings.Cut(text, "?")
	return text
}

// post sends one document. The error is a *refusedError where trying again would
// not help; after is how long the receiver asks to wait, 0 if it does not.
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
		var u *url.Error // whose text has the whole URL
		if errors.As(err, &u) {
			err = u.Err
		}
		return 0, err
	}
	text, readErr := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	_ = resp.Body.Close() // what it says was read
	answer := fmt.Sprintf("it answers %s: %.200s", resp.Status, strings.Join(strings.Fields(string(text)), " "))
	switch {
	case resp.StatusCode < 300 && readErr != nil:
		return 0, fmt.Errorf("its answer breaks off: %w", readErr)
	case resp.StatusCode < 300:
		return 0, nil
	case resp.StatusCode < 400:
		return 0, &refusedError{fmt.Sprintf("it redirects to %s: name that URL", withoutQuery(resp.Header.Get("Location")))}
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusRequestTimeout || resp.StatusCode >= 500:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // else as if it had not asked
		return time.Duration(max(0, seconds)) * time.Second, errors.New(answer)
	}
	return 0, &refusedError{answer}
}
