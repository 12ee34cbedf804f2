package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/operator/runnerstatus"
)

// Results is the results service as the operator uses it. Both methods return after a few seconds at most.
type Results interface {
	// Progress returns the progress of a run, or nil if there is none yet.
	Progress(ctx context.Context, namespace, run string) (*runnerstatus.Progress, error)
	// Lost closes the run of a lost runner as incomplete. It is idempotent.
	Lost(ctx context.Context, namespace, run, reason string) error
}

// maxToken limits a file with a token, in bytes.
const maxToken = 1 << 20

// HTTPResults implements Results over HTTP.
type HTTPResults struct {
	URL       string // without a trailing slash
	TokenFile string // file of a bearer token, read for each request because the token is rotated; empty: no token
	Client    *http.Client
}

const (
	resultsTimeout = 3 * time.Second
	longestAnswer  = 1 << 20
)

// Progress implements Results.
func (h *HTTPResults) Progress(ctx context.Context, namespace, run string) (*runnerstatus.Progress, error) {
	body, err := h.do(ctx, http.MethodGet, namespace, run, "files/"+runnerstatus.ProgressFile, nil)
	if s := (*httpStatus)(nil); errors.As(err, &s) && s.code == http.StatusNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p := &runnerstatus.Progress{}
	if err := json.Unmarshal(body, p); err != nil {
		return nil, fmt.Errorf("%s of run %s: %w", runnerstatus.ProgressFile, run, err)
	}
	return p, nil
}

// Lost implements Results.
func (h *HTTPResults) Lost(ctx context.Context, namespace, run, reason string) error {
	body, err := json.Marshal(map[string]string{"reason": reason})
	if err != nil {
		return err
	}
	_, err = h.do(ctx, http.MethodPost, namespace, run, "lost", body)
	if s := (*httpStatus)(nil); errors.As(err, &s) && s.code == http.StatusNotFound {
		return nil // the runner has pushed no data
	}
	return err
}

type httpStatus struct {
	code int
	text string
}

func (s *httpStatus) Error() string { return fmt.Sprintf("HTTP %d: %s", s.code, s.text) }

func (h *HTTPResults) do(ctx context.Context, method, namespace, run, what string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, resultsTimeout)
	defer cancel()
	at := fmt.Sprintf("%s/v1/runs/%s/%s/%s", strings.TrimRight(h.URL, "/"), url.PathEscape(namespace),
		url.PathEscape(run), what)
	req, err := http.NewRequestWithContext(ctx, method, at, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if h.TokenFile != "" {
		token, err := bounded.ReadPrivate(h.TokenFile, maxToken)
		if err != nil {
			return nil, fmt.Errorf("token for the results service: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := h.Client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("results service: %w", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, longestAnswer))
	if err != nil {
		return nil, fmt.Errorf("results service: %s: %w", at, err)
	}
	if resp.StatusCode/100 != 2 {
		return nil, fmt.Errorf("results service: %s %s: %w", method, at,
			&httpStatus{resp.StatusCode, truncated(strings.TrimSpace(string(answer)), 200)})
	}
	return answer, nil
}
