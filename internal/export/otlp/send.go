package otlp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Sender posts batches to an OTLP/HTTP receiver. Zero durations take the defaults.
type Sender struct {
	endpoint string
	header   http.Header
	// Backoff is the wait before the first repetition of a request; it doubles up to
	// Patience, which also bounds a receiver's Retry-After.
	Backoff, Patience time.Duration
	// Attempts of one request.
	Attempts int
	client   *http.Client
}

// Sent counts what a receiver got.
type Sent struct {
	Traces, Spans      int
	Requests, Repeated int
	Rejected           int    // spans that the receiver refused
	Message            string // of the first refusal
}

// NewSender returns a Sender for an endpoint: its path is /v1/traces if the URL has none.
// headers are "key=value" pairs separated by commas with percent-encoded values, as in
// OTEL_EXPORTER_OTLP_HEADERS; they may hold secrets and are never printed.
func NewSender(endpoint, headers string) (*Sender, error) {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("invalid endpoint: want http://HOST:PORT or https://HOST:PORT, with or without a path")
	case u.User != nil:
		return nil, errors.New("invalid endpoint: it has a password; set OTEL_EXPORTER_OTLP_HEADERS=authorization=…")
	case u.Path == "" || u.Path == "/":
		u.Path = "/v1/traces"
	}
	s := &Sender{endpoint: u.String(), header: http.Header{"Content-Type": {"application/json"},
		"User-Agent": {"cnsbench"}}, Backoff: 250 * time.Millisecond, Patience: 5 * time.Second, Attempts: 8}
	for pair := range strings.SplitSeq(headers, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		decoded, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil {
			return nil, errors.New("invalid OTEL_EXPORTER_OTLP_HEADERS: want key=value,key=value")
		}
		s.header.Set(strings.TrimSpace(key), decoded)
	}
	s.client = &http.Client{Timeout: 30 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return s, nil
}

// Send sends batches one after another and counts them. It stops at the first that cannot be
// delivered, and when ctx ends.
func (s *Sender) Send(ctx context.Context, batches iter.Seq2[Batch, error]) (Sent, error) {
	defer s.client.CloseIdleConnections()
	var sent Sent
	for b, err := range batches {
		if err == nil {
			err = s.deliver(ctx, b, &sent)
		}
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// deliver sends one batch, repeatedly if that can help.
func (s *Sender) deliver(ctx context.Context, b Batch, sent *Sent) error {
	wait := s.Backoff
	for attempt := 1; ; attempt++ {
		sent.Requests++
		after, again, err := s.post(ctx, b, sent)
		if err == nil {
			sent.Traces, sent.Spans = sent.Traces+b.Traces, sent.Spans+b.Spans
			return nil
		}
		if !again || attempt == s.Attempts || ctx.Err() != nil {
			return fmt.Errorf("send traces: %w", err)
		}
		timer := time.NewTimer(min(s.Patience, max(wait, after)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("send traces: %w", err)
		case <-timer.C:
		}
		sent.Repeated++
		wait *= 2
	}
}

// maxAnswer is how much is read of an answer.
const maxAnswer = 64 << 10

// post sends one request. again says whether a repetition can help: after a failed connection
// and the statuses that the OTLP specification names; after is the receiver's Retry-After.
func (s *Sender) post(ctx context.Context, b Batch, sent *Sent) (after time.Duration, again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.endpoint, bytes.NewReader(b.Body))
	if err != nil {
		return 0, false, errors.New("invalid endpoint")
	}
	req.Header = s.header.Clone()
	resp, err := s.client.Do(req)
	if err != nil {
		var u *url.Error // its text has the whole URL, with its query
		if errors.As(err, &u) {
			err = u.Err
		}
		return 0, true, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	_ = resp.Body.Close() // read only
	switch {
	case resp.StatusCode < 300 && err != nil:
		return 0, true, fmt.Errorf("read response: %w", err)
	case resp.StatusCode < 300:
		sent.refusals(body)
		return 0, false, nil
	case resp.StatusCode < 400:
		return 0, false, fmt.Errorf("response %s: use the URL that it redirects to", resp.Status)
	}
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // 0 if absent or a date
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true
	}
	return time.Duration(max(0, min(seconds, 3600))) * time.Second, again,
		fmt.Errorf("response %s: %.200s", resp.Status, strings.Join(strings.Fields(string(body)), " "))
}

// refusals reads how many spans of a request the receiver refused, from an answer of success.
func (s *Sent) refusals(body []byte) {
	var answer struct {
		PartialSuccess struct {
			RejectedSpans json.Number `json:"rejectedSpans"` // a text or a number
			ErrorMessage  string      `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return // receivers answer with an empty or a binary body
	}
	n, _ := answer.PartialSuccess.RejectedSpans.Int64() // 0 if absent
	s.Rejected += int(max(0, n))
	if n > 0 && s.Message == "" {
		s.Message = fmt.Sprintf("%.200s", answer.PartialSuccess.ErrorMessage)
	}
}
