package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Client calls a results service. It is safe for concurrent use and does not retry.
type Client struct {
	// URL of the service, such as https://cnsbench-results.cnsbench-system.svc:8443.
	URL string
	// HTTP sends requests; nil: the default client. Its transport provides credentials and trust.
	HTTP *http.Client
	// Stall is how long a request may make no progress; default 30 s.
	Stall time.Duration
}

// closeTimeout bounds the time that the service needs to hash a bundle's files.
const closeTimeout = 30 * time.Minute

// StatusError is an error response.
type StatusError struct {
	Status  int
	Message string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("the results service returned %d: %s", e.Status, e.Message)
}

// Unwrap returns the matching sentinel error.
func (e *StatusError) Unwrap() error {
	switch e.Status {
	case http.StatusNotFound:
		return fs.ErrNotExist
	case http.StatusGone:
		return ErrClosed
	case http.StatusLocked:
		return ErrBusy
	case http.StatusRequestEntityTooLarge:
		return ErrTooLarge
	}
	return nil
}

// Runs lists the runs of a namespace, or of all with "".
func (c *Client) Runs(ctx context.Context, namespace string) ([]Run, error) {
	var runs []Run
	return runs, c.call(ctx, http.MethodGet, "/v1/runs?"+url.Values{"namespace": {namespace}}.Encode(), nil, 0, &runs)
}

// Run returns a handle of one run, without checking that it exists.
func (c *Client) Run(namespace, id string) (*Remote, error) {
	if err := checkRun(namespace, id); err != nil {
		return nil, err
	}
	return &Remote{client: c, base: "/v1/runs/" + namespace + "/" + id}, nil
}

// Remote is a run at a results service, one end of a copy.
type Remote struct {
	client *Client
	base   string
}

// Info returns the state of the run.
func (r *Remote) Info(ctx context.Context) (Run, error) {
	var info Run
	return info, r.client.call(ctx, http.MethodGet, r.base, nil, 0, &info)
}

// Files lists the bundle's files; none if the run does not exist.
func (r *Remote) Files(ctx context.Context) ([]File, error) {
	var files []File
	err := r.client.call(ctx, http.MethodGet, r.base+"/files", nil, 0, &files)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return files, err
}

func (r *Remote) file(name string, query url.Values) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	target := r.base + "/files/" + strings.Join(parts, "/")
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	return target
}

// Read streams a file from an offset to its current end. An interrupted stream is an error of Read, not
// io.EOF.
func (r *Remote) Read(ctx context.Context, name string, offset int64) (io.ReadCloser, error) {
	ctx, w := watch(ctx, r.client.stall())
	resp, err := r.client.send(ctx, http.MethodGet, r.file(name, url.Values{"offset": {strconv.FormatInt(offset, 10)}}), nil, 0) //nolint:bodyclose // responseBody closes it
	if err != nil {
		w.stop()
		return nil, w.explain(err)
	}
	return &responseBody{watchedBody{resp.Body, w}, resp.Body}, nil
}

// Append writes b at the end of a file, which must be at offset, and returns the file's size once that is
// durable. If the end is elsewhere, the error is an *OffsetError.
func (r *Remote) Append(ctx context.Context, name string, offset int64, b []byte) (int64, error) {
	var ack Ack
	err := r.client.call(ctx, http.MethodPut, r.file(name, url.Values{"offset": {strconv.FormatInt(offset, 10)}}),
		bytes.NewReader(b), int64(len(b)), &ack)
	return ack.Size, err
}

// Replace replaces a file's content.
func (r *Remote) Replace(ctx context.Context, name string, content io.Reader) error {
	return r.client.call(ctx, http.MethodPut, r.file(name, url.Values{"replace": {"1"}}), content, -1, nil)
}

// Remove removes a file.
func (r *Remote) Remove(ctx context.Context, name string) error {
	return r.client.call(ctx, http.MethodDelete, r.file(name, nil), nil, 0, nil)
}

// Seal closes the run if all files match the manifest; otherwise it returns the differences.
func (r *Remote) Seal(ctx context.Context, manifest []byte) ([]Difference, error) {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	resp, err := r.client.send(ctx, http.MethodPost, r.base+"/close", bytes.NewReader(manifest), int64(len(manifest)))
	var differs *differsError
	if errors.As(err, &differs) {
		return differs.differs, nil
	}
	if err == nil {
		err = resp.Body.Close()
	}
	return nil, err
}

// Lost closes the run as incomplete.
func (r *Remote) Lost(ctx context.Context, reason string) error {
	b, err := json.Marshal(Loss{reason})
	if err != nil {
		return err
	}
	return r.client.call(ctx, http.MethodPost, r.base+"/lost", bytes.NewReader(b), int64(len(b)), nil)
}

// Delete removes the run with its bundle.
func (r *Remote) Delete(ctx context.Context) error {
	return r.client.call(ctx, http.MethodDelete, r.base, nil, 0, nil)
}

func (c *Client) stall() time.Duration {
	if c.Stall == 0 {
		return 30 * time.Second
	}
	return c.Stall
}

// call sends a request and decodes the response into v, unless v is nil. size -1: unknown.
func (c *Client) call(ctx context.Context, method, target string, body io.Reader, size int64, v any) error {
	ctx, w := watch(ctx, c.stall())
	defer w.stop()
	if body != nil {
		body = &watchedBody{body, w}
	}
	resp, err := c.send(ctx, method, target, body, size)
	if err != nil {
		return w.explain(err)
	}
	defer resp.Body.Close()
	if v == nil {
		return nil
	}
	if err := json.NewDecoder(&watchedBody{resp.Body, w}).Decode(v); err != nil {
		return fmt.Errorf("results: response to %s %s: %w", method, c.URL+target, w.explain(err))
	}
	return nil
}

// differsError is a response to close with differences.
type differsError struct{ differs []Difference }

func (*differsError) Error() string { return "files differ from the manifest" }

func (c *Client) send(ctx context.Context, method, target string, body io.Reader, size int64) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.URL, "/")+target, body)
	if err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	if body != nil {
		req.ContentLength = size
		if size == 0 {
			req.Body = http.NoBody
		}
	}
	client := c.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, errorOf(resp)
}

// errorOf converts an error response.
func errorOf(resp *http.Response) error {
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxManifest))
	if err != nil {
		return fmt.Errorf("results: response %s: %w", resp.Status, err)
	}
	var p struct {
		problem
		Closing
	}
	if json.Unmarshal(b, &p) != nil || p.Error == "" {
		p.Error = clip(string(b))
	}
	switch {
	case resp.StatusCode == http.StatusConflict && p.Size != nil:
		return &OffsetError{*p.Size}
	case resp.StatusCode == http.StatusConflict && len(p.Differs) > 0:
		return &differsError{p.Differs}
	}
	return &StatusError{resp.StatusCode, p.Error}
}

// watchdog cancels a request that makes no progress, whatever the size of the transfer.
type watchdog struct {
	timer  *time.Timer
	after  time.Duration
	cancel context.CancelCauseFunc
	ctx    context.Context
}

var errStalled = errors.New("no progress for too long")

func watch(ctx context.Context, after time.Duration) (context.Context, *watchdog) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watchdog{after: after, cancel: cancel, ctx: ctx}
	w.timer = time.AfterFunc(after, func() { cancel(fmt.Errorf("%w (%v)", errStalled, after)) })
	return ctx, w
}

func (w *watchdog) moved() { w.timer.Reset(w.after) }

func (w *watchdog) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

// explain replaces "context canceled" by the cause.
func (w *watchdog) explain(err error) error {
	if cause := context.Cause(w.ctx); errors.Is(cause, errStalled) {
		return fmt.Errorf("results: %w", cause)
	}
	return err
}

// watchedBody is a body that reports progress to a watchdog.
type watchedBody struct {
	io.Reader
	w *watchdog
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if n > 0 {
		b.w.moved()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.w.explain(err)
	}
	return n, err
}

// responseBody is a response body read by the caller; Close ends the request.
type responseBody struct {
	watchedBody
	body io.Closer
}

func (a *responseBody) Close() error {
	err := a.body.Close()
	a.w.stop()
	return err
}
