package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Client sends single requests. It is safe for concurrent use.
type Client struct {
	conn  *Conn
	clock op.Clock
	// Seen is called after every answer, before the caller returns; it must not block. The lag of watches is
	// measured by it. Set it before the first call.
	Seen func(Call)
	// Sending is called before every write; Seen follows.
	Sending   func(Call)
	throttled atomic.Int64
	// places has one element for each creation or deletion in flight, by verb.
	places  map[string]chan struct{}
	waited  atomic.Int64
	longest atomic.Int64 // wait, in nanoseconds
}

// mostInFlight is how many creations, and how many deletions, a client has in flight: as many requests as an API server
// allows at a time on a connection (--http2-max-streams-per-connection). For each one beyond that net/http opens a
// connection: thousands at once take the CPUs of a small API server, which then closes some of them, and requests are
// lost.
const mostInFlight = 100

// Call describes one request, also a failed one.
type Call struct {
	Verb            string // "create", "get", "list", "patch", "delete"
	Kind            Kind
	Namespace, Name string
	Sent            op.Time // just before the request is written, after any wait for a place
	Answered        op.Time // when the answer was complete, before decoding; or the time of the failure
	Status          int     // HTTP status; 0: no answer
	RetryAfter      time.Duration
	// Sends is how often the request was written: more than 1 if net/http repeated it because a connection was
	// closed before the server read it.
	Sends int
	// ResourceVersion and UID of the object in the answer, if any.
	ResourceVersion string
	UID             types.UID
}

// Write says whether the request changes something.
func (c Call) Write() bool { return c.Verb == "create" || c.Verb == "patch" || c.Verb == "delete" }

// New makes a client with a connection of its own.
func New(host *rest.Config, clock op.Clock) (*Client, error) {
	conn, err := Dial(host, false)
	if err != nil {
		return nil, err
	}
	return &Client{conn: conn, clock: clock, places: map[string]chan struct{}{
		"create": make(chan struct{}, mostInFlight), "delete": make(chan struct{}, mostInFlight)}}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.conn.Close() }

// Throttled returns the number of 429 answers.
func (c *Client) Throttled() int64 { return c.throttled.Load() }

// Waits says how many requests waited because mostInFlight were in flight; empty: none.
func (c *Client) Waits() string {
	n := c.waited.Load()
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d creations and deletions waited because %d were in flight, the longest %v", n, mostInFlight,
		time.Duration(c.longest.Load()).Round(time.Millisecond))
}

// Create creates obj, whose apiVersion and kind it sets, and decodes the answer into into, which may be obj or nil.
func (c *Client) Create(ctx context.Context, k Kind, namespace string, obj, into Object) (Call, error) {
	call := Call{Verb: "create", Kind: k, Namespace: namespace, Name: obj.GetName()}
	body, err := k.Encode(obj)
	if err != nil {
		return call, err
	}
	err = c.do(ctx, &call,
		request{method: http.MethodPost, path: k.Path(namespace, ""), media: k.MediaType(), body: body}, into)
	return call, err
}

// Admit asks what the server would make of obj, which is not created: as Create, with a dry run.
func (c *Client) Admit(ctx context.Context, k Kind, namespace string, obj, into Object) error {
	call := Call{Verb: "admit", Kind: k, Namespace: namespace, Name: obj.GetName()}
	body, err := k.Encode(obj)
	if err != nil {
		return err
	}
	answer, err := c.send(ctx, &call, request{method: http.MethodPost, path: k.Path(namespace, ""), media: k.MediaType(),
		query: url.Values{"dryRun": {metav1.DryRunAll}}, body: body})
	if err != nil {
		return err
	}
	return call.read(answer, into)
}

// Get reads one object.
func (c *Client) Get(ctx context.Context, k Kind, namespace, name string, into Object) (Call, error) {
	call := Call{Verb: "get", Kind: k, Namespace: namespace, Name: name}
	err := c.do(ctx, &call, request{method: http.MethodGet, path: k.Path(namespace, name)}, into)
	return call, err
}

// Patch changes an object or a subresource ("status", "scale"). data is JSON of the given patch type.
func (c *Client) Patch(ctx context.Context, k Kind, namespace, name string, kind types.PatchType, data []byte,
	into Object, subresource ...string) (Call, error) {
	call := Call{Verb: "patch", Kind: k, Namespace: namespace, Name: name}
	err := c.do(ctx, &call, request{method: http.MethodPatch, path: k.Path(namespace, name, subresource...),
		media: string(kind), body: data}, into)
	return call, err
}

// Delete deletes an object; opts has preconditions, grace period and propagation.
func (c *Client) Delete(ctx context.Context, k Kind, namespace, name string, opts metav1.DeleteOptions) (Call, error) {
	call := Call{Verb: "delete", Kind: k, Namespace: namespace, Name: name}
	opts.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}
	body, err := json.Marshal(opts)
	if err != nil {
		return call, fmt.Errorf("delete %s %q: %w", k, name, err)
	}
	err = c.do(ctx, &call, request{method: http.MethodDelete, path: k.Path(namespace, name), media: JSON, body: body},
		nil)
	return call, err
}

// List lists the objects of a kind in a namespace, or in all (""), that match the selectors of opts. Other options
// are ignored. Call has the list's resourceVersion.
func (c *Client) List(ctx context.Context, k Kind, namespace string, opts metav1.ListOptions) ([]Object, Call, error) {
	return c.list(ctx, k, namespace, opts, "")
}

// ListMetadata is List of the metadata alone: of *metav1.PartialObjectMetadata. Objects without a Go type take much
// less CPU time than by List.
func (c *Client) ListMetadata(ctx context.Context, k Kind, namespace string, opts metav1.ListOptions) ([]Object, Call,
	error) {
	k.New = metadataKind.New
	return c.list(ctx, k, namespace, opts, metadataOfList)
}

func (c *Client) list(ctx context.Context, k Kind, namespace string, opts metav1.ListOptions, accept string) ([]Object,
	Call, error) {
	call := Call{Verb: "list", Kind: k, Namespace: namespace}
	answer, err := c.send(ctx, &call, request{method: http.MethodGet, path: k.Path(namespace, ""),
		query: Selectors(opts.LabelSelector, opts.FieldSelector), accept: accept})
	if err != nil {
		return nil, call, err
	}
	meta, items, err := k.DecodeList(answer)
	call.ResourceVersion = meta.ResourceVersion
	return items, call, err
}

// Text reads a path that is not an object, such as a proxied one. path has to be escaped.
func (c *Client) Text(ctx context.Context, path string) ([]byte, error) {
	call := Call{Verb: "get"}
	return c.send(ctx, &call, request{method: http.MethodGet, path: path, accept: "text/plain, " + JSON})
}

// Stream reads a path that is not an object as its answer arrives, such as a log. path has to be escaped. The caller
// closes the answer; ctx bounds it as a whole.
func (c *Client) Stream(ctx context.Context, path string, query url.Values) (io.ReadCloser, error) {
	resp, err := c.conn.Send(ctx, http.MethodGet, path, query, http.Header{"Accept": {"*/*"}}, nil)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", path, err)
	}
	if resp.StatusCode/100 == 2 {
		return resp.Body, nil
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusTooManyRequests {
		c.throttled.Add(1)
	}
	answer, err := ReadBounded(resp.Body, maxErrorAnswer)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", path, err)
	}
	return nil, AsError(Kind{}, "get", path, resp.StatusCode, resp.Header, answer)
}

// maxErrorAnswer bounds an answer that is a Status.
const maxErrorAnswer = 1 << 20

// Selectors returns the query of the selectors that are not empty.
func Selectors(label, field string) url.Values {
	q := url.Values{}
	if label != "" {
		q.Set("labelSelector", label)
	}
	if field != "" {
		q.Set("fieldSelector", field)
	}
	return q
}

type request struct {
	method, path, media string
	accept              string // empty: that of the kind
	query               url.Values
	body                []byte
}

// do sends a request, decodes the answer into into unless it is nil, and calls Seen.
func (c *Client) do(ctx context.Context, call *Call, r request, into Object) error {
	if into == nil && call.Kind.JSON { // resourceVersion and UID suffice
		r.accept = metadataOnly
	}
	answer, err := c.send(ctx, call, r)
	if err == nil {
		err = call.read(answer, into)
	}
	if c.Seen != nil {
		c.Seen(*call)
	}
	return err
}

// read decodes the answer and keeps its resourceVersion and UID. A deletion may be answered with a Status, which has
// none.
func (c *Call) read(answer []byte, into Object) (err error) {
	if into == nil { // the caller does not need the object
		c.ResourceVersion, c.UID, _ = c.Kind.identify(answer)
		return nil
	}
	if err = c.Kind.Decode(answer, into); err == nil {
		c.ResourceVersion, c.UID = into.GetResourceVersion(), into.GetUID()
	}
	return err
}

// maxAnswer bounds the memory of one answer: a list of 100 000 pods.
const maxAnswer = 1 << 30

// place waits until fewer than mostInFlight requests of a verb are in flight. free ends this one.
func (c *Client) place(ctx context.Context, verb string) (free func(), err error) {
	places := c.places[verb]
	if places == nil {
		return func() {}, nil
	}
	free = func() { <-places }
	select {
	case places <- struct{}{}:
		return free, nil
	default:
	}
	began := c.clock.Now()
	select {
	case places <- struct{}{}:
		c.waited.Add(1)
		wait := int64(c.clock.Now() - began)
		for longest := c.longest.Load(); wait > longest && !c.longest.CompareAndSwap(longest, wait); {
			longest = c.longest.Load()
		}
		return free, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (c *Client) send(ctx context.Context, call *Call, r request) ([]byte, error) {
	free, err := c.place(ctx, call.Verb)
	if err != nil {
		return nil, fmt.Errorf("%s %s %q: %w", call.Verb, call.Kind, call.Name, err)
	}
	defer free()
	var sends atomic.Int32
	var arrivals Arrivals
	ctx = httptrace.WithClientTrace(ctx,
		&httptrace.ClientTrace{GotConn: arrivals.gotConn, WroteHeaders: func() { sends.Add(1) }})
	header := http.Header{"Accept": {cmp.Or(r.accept, call.Kind.MediaType())}}
	var body io.Reader
	if r.body != nil {
		header.Set("Content-Type", r.media)
		body = bytes.NewReader(r.body)
	}
	call.Sent = c.clock.Now()
	if c.Sending != nil && call.Write() {
		c.Sending(*call)
	}
	answer, header, err := c.exchange(ctx, call, r, header, body)
	call.Answered = c.clock.Now()
	if err == nil { // bytes of other streams came later, if any
		call.Answered = max(call.Sent, call.Answered-op.Time(arrivals.Last()))
	}
	call.Sends = int(sends.Load())
	if err != nil {
		return nil, fmt.Errorf("%s %s %q: %w", call.Verb, call.Kind, call.Name, err)
	}
	call.RetryAfter = RetryAfter(header)
	if call.Status == http.StatusTooManyRequests {
		c.throttled.Add(1)
	}
	if call.Status/100 != 2 {
		return nil, AsError(call.Kind, call.Verb, call.Name, call.Status, header, answer)
	}
	return answer, nil
}

func (c *Client) exchange(ctx context.Context, call *Call, r request, header http.Header, body io.Reader) ([]byte,
	http.Header, error) {
	resp, err := c.conn.Send(ctx, r.method, r.path, r.query, header, body)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	call.Status = resp.StatusCode
	answer, err := ReadBounded(resp.Body, maxAnswer)
	return answer, resp.Header, err
}

// ReadBounded reads all of r, and fails if that exceeds limit bytes.
func ReadBounded(r io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("the answer is larger than %d MiB: narrow it by a namespace or a selector", limit>>20)
	}
	return b, err
}

// IsGone says whether err means that the requested resourceVersion has expired (410 Gone).
func IsGone(err error) bool { return apierrors.IsGone(err) || apierrors.IsResourceExpired(err) }
