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

// Client speaks to a results service. It is safe for concurrent use and repeats
// nothing by itself.
type Client struct {
	// URL of the service, such as https://cnsbench-results.cnsbench-system.svc:8443.
	URL string
	// HTTP sends; nil: a default one. Its transport brings credentials and trust.
	HTTP *http.Client
	// Stall ends a request on which nothing moves for so long; default 30 s.
	Stall time.Duration
}

// closePatience is how long the service may take to sum a bundle's files.
const closePatience = 30 * time.Minute

// StatusError is an answer that is an error.
type StatusError struct {
	Status  int
	Message string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("the results service answers %d: %s", e.Status, e.Message)
}

// Unwrap gives the error that a caller decides by.
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

// Run gives one run to read from or to write to; whether it is there shows then.
func (c *Client) Run(namespace, id string) (*Remote, error) {
	if err := checkRun(namespace, id); err != nil {
		return nil, err
	}
	return &Remote{client: c, base: "/v1/runs/" + namespace + "/" + id}, nil
}

// Remote is a run at a results service, as one end of a copy.
type Remote struct {
	client *Client
	base   string
}

// Info says where the run stands.
func (r *Remote) Info(ctx context.Context) (Run, error) {
	var info Run
	return info, r.client.call(ctx, http.MethodGet, r.base, nil, 0, &info)
}

// Files lists the bundle's files; of a run that is not there yet, none.
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

// Read streams a file from an offset to where it ends now. A stream that breaks
// off is an error of Read, not its end.
func (r *Remote) Read(ctx context.Context, name string, offset int64) (io.ReadCloser, error) {
	ctx, w := watch(ctx, r.client.stall())
	resp, err := r.client.send(ctx, http.MethodGet, r.file(name, url.Values{"offset": {strconv.FormatInt(offset, 10)}}), nil, 0) //nolint:bodyclose // answered closes it
	if err != nil {
		w.stop()
		return nil, w.explain(err)
	}
	return &answered{watched{resp.Body, w}, resp.Body}, nil
}

// Append writes b at the end of a file, which must be at offset, and returns
// its size when that is on the service's disk. If the end is elsewhere, the
// error is an *OffsetError.
func (r *Remote) Append(ctx context.Context, name string, offset int64, b []byte) (int64, error) {
	var ack Ack
	err := r.client.call(ctx, http.MethodPut, r.file(name, url.Values{"offset": {strconv.FormatInt(offset, 10)}}), bytes.NewReader(b), int64(len(b)), &ack)
	return ack.Size, err
}

// Replace puts what content yields in a file's place.
func (r *Remote) Replace(ctx context.Context, name string, content io.Reader) error {
	return r.client.call(ctx, http.MethodPut, r.file(name, url.Values{"replace": {"1"}}), content, -1, nil)
}

// Remove removes a file.
func (r *Remote) Remove(ctx context.Context, name string) error {
	return r.client.call(ctx, http.MethodDelete, r.file(name, nil), nil, 0, nil)
}

// Seal closes the run if its files are all as the manifest says; else it
// returns what differs.
func (r *Remote) Seal(ctx context.Context, manifest []byte) ([]Difference, error) {
	ctx, cancel := context.WithTimeout(ctx, closePatience)
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

// call sends a request and decodes the answer into v, unless that is nil.
// size -1: not known.
func (c *Client) call(ctx context.Context, method, target string, body io.Reader, size int64, v any) error {
	ctx, w := watch(ctx, c.stall())
	defer w.stop()
	if body != nil {
		body = &watched{body, w}
	}
	resp, err := c.send(ctx, method, target, body, size)
	if err != nil {
		return w.explain(err)
	}
	defer resp.Body.Close()
	if v == nil {
		return nil
	}
	if err := json.NewDecoder(&watched{resp.Body, w}).Decode(v); err != nil {
		return fmt.Errorf("results: the answer to %s %s: %w", method, c.URL+target, w.explain(err))
	}
	return nil
}

// differsError is an answer to close.
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

// errorOf turns an answer into the error that it tells of.
func errorOf(resp *http.Response) error {
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxManifest))
	if err != nil {
		return fmt.Errorf("results: the answer %s: %w", resp.Status, err)
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

// watchdog ends a request on which nothing moves. It knows no sizes: a slow
// transfer is not a hanging one.
type watchdog struct {
	timer  *time.Timer
	after  time.Duration
	cancel context.CancelCauseFunc
	ctx    context.Context
}

var errStalled = errors.New("nothing moved for too long")

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

// explain gives the reason in place of "context canceled".
func (w *watchdog) explain(err error) error {
	if cause := context.Cause(w.ctx); errors.Is(cause, errStalled) {
		return fmt.Errorf("results: %w", cause)
	}
	return err
}

// watched is a body that tells a watchdog of what moves.
type watched struct {
	io.Reader
	w *watchdog
}

func (b *watched) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if n > 0 {
		b.w.moved()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.w.explain(err)
	}
	return n, err
}

// answered is the body of an answer that the caller reads; closing it ends the
// request.
type answered struct {
	watched
	body io.Closer
}

func (a *answered) Close() error {
	err := a.body.Close()
	a.w.stop()
	return err
}
