package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// receiver accepts what each kind of output sends, and counts how often each document came. It can go away and come
// back at the same address.
type receiver struct {
	address string
	server  *http.Server
	ended   chan error

	mu   sync.Mutex
	seen map[string]map[string]int // by kind of output: by document
}

// newReceiver starts a receiver.
func newReceiver(ctx context.Context) (*receiver, error) {
	address, err := closedPort(ctx)
	if err != nil {
		return nil, err
	}
	r := &receiver{address: address, seen: map[string]map[string]int{}}
	return r, r.comeBack(ctx)
}

// comeBack accepts connections.
func (r *receiver) comeBack(ctx context.Context) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", r.address)
	if err != nil {
		return err
	}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: time.Minute}
	r.ended = make(chan error, 1)
	go func() { r.ended <- r.server.Serve(l) }()
	return nil
}

// goAway refuses connections once the requests in progress are answered, so that a document that is counted was
// acknowledged.
func (r *receiver) goAway(ctx context.Context) error {
	if err := r.server.Shutdown(ctx); err != nil {
		return err
	}
	if err := <-r.ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (r *receiver) add(output, document string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[output] == nil {
		r.seen[output] = map[string]int{}
	}
	r.seen[output][document]++
}

// counts returns how many documents of an output came, and how many of these more than once.
func (r *receiver) counts(output string) (documents, repeated int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.seen[output] {
		if n > 1 {
			repeated++
		}
	}
	return len(r.seen[output]), repeated
}

// ServeHTTP accepts one request. A request that is not understood is refused, so that its documents are missing.
func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	switch {
	case err != nil:
	case strings.HasPrefix(q.URL.Path, "/_index_template/") && q.Method == http.MethodHead:
		w.WriteHeader(http.StatusNotFound)
	case strings.HasPrefix(q.URL.Path, "/_index_template/"), q.URL.Path == "/v1/metrics":
	case strings.HasSuffix(q.URL.Path, "/_bulk"):
		err = r.bulk(w, body)
	case q.URL.Path == "/v1/traces":
		err = r.traces(body)
	case q.URL.Path == "/api/v1/write":
		sum := sha256.Sum256(body)
		r.add("remotewrite", string(sum[:]))
	default:
		var d struct{ Kind, ID string }
		if err = json.Unmarshal(body, &d); err == nil && d.Kind == "op" {
			r.add("httppost", d.ID)
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

// bulk counts the documents of operations of a request to _bulk, and answers it.
func (r *receiver) bulk(w io.Writer, body []byte) error {
	var items []any
	lines := bufio.NewScanner(strings.NewReader(string(body)))
	for lines.Buffer(nil, len(body)+1); lines.Scan(); {
		var action struct {
			Index struct {
				ID string `json:"_id"`
			}
		}
		var d struct{ Kind string }
		err := json.Unmarshal(lines.Bytes(), &action)
		if !lines.Scan() || action.Index.ID == "" {
			err = errors.Join(err, errors.New("an action without an ID or a document"))
		}
		if err = errors.Join(err, json.Unmarshal(lines.Bytes(), &d)); err != nil {
			return err
		}
		if d.Kind == "op" {
			r.add("elasticsearch", action.Index.ID)
		}
		items = append(items, map[string]any{"index": map[string]any{"_id": action.Index.ID, "status": http.StatusCreated}})
	}
	return json.NewEncoder(w).Encode(map[string]any{"took": 1, "errors": false, "items": items})
}

// traces counts the operations of a request to /v1/traces by their root spans.
func (r *receiver) traces(body []byte) error {
	var q struct {
		ResourceSpans []struct {
			ScopeSpans []struct {
				Spans []struct{ TraceID, ParentSpanID string }
			}
		}
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return err
	}
	for _, resource := range q.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				if s.ParentSpanID == "" {
					r.add("otlp", s.TraceID)
				}
			}
		}
	}
	return nil
}
