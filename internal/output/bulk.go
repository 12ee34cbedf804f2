package output

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// A request of bulk ends with the document that reaches one of these limits.
	bulkDocuments = 500
	bulkBytes     = 1 << 20
	// bulkTimeout is how long the server waits for a shard, which must be less than postLimit.
	bulkTimeout = "10s"
)

// template is the index template of bulk, without its index_patterns.
//
//go:embed template.json
var template []byte

// bulk sends batches of documents to an index of Elasticsearch or OpenSearch. A document is indexed under its id, so
// that a repeat replaces it.
type bulk struct {
	*poster
	base, index string

	mu       sync.Mutex
	prepared bool // the index template exists
}

func newBulk(t Target, limit time.Duration) *bulk {
	base := strings.TrimRight(t.URL, "/")
	to := t
	to.URL = base + "/" + url.PathEscape(t.Index) + "/_bulk?timeout=" + bulkTimeout
	return &bulk{poster: newPoster(to, limit), base: base, index: t.Index}
}

func (b *bulk) limits() (documents, bytes int) { return bulkDocuments, bulkBytes }

// encode returns the JSON of a document. Names of metrics become names of single fields: a dot would make an object of
// the part before it, which conflicts with a metric of that name.
func (b *bulk) encode(v any) ([]byte, error) {
	if w, ok := v.(workloadDocument); ok {
		w.Metrics, w.Units, w.Latency = fields(w.Metrics), fields(w.Units), fields(w.Latency)
		v = w
	}
	return json.Marshal(v)
}

// fields renames the keys of m to names of fields.
func fields[T any](m map[string]T) map[string]T {
	named := make(map[string]T, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		name := strings.Map(func(r rune) rune {
			switch {
			case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-':
				return r
			}
			return '_'
		}, key)
		free := name
		for n := 2; ; n++ {
			if _, used := named[free]; !used && free != "" {
				break
			}
			free = name + "_" + strconv.Itoa(n)
		}
		named[free] = m[key]
	}
	return named
}

// send implements encoding.
func (b *bulk) send(ctx context.Context, batch []encoded) ([]error, time.Duration) {
	if after, err := b.prepare(ctx); err != nil {
		return all(batch, err), after
	}
	var body bytes.Buffer
	for _, d := range batch {
		action, err := json.Marshal(map[string]map[string]string{"index": {"_id": d.id}})
		if err != nil {
			return all(batch, &refusedError{err.Error()}), 0
		}
		for _, line := range [][]byte{action, d.body} {
			body.Write(line)
			body.WriteByte('\n')
		}
	}
	r := b.do(ctx, http.MethodPost, b.url, request{contentType: "application/x-ndjson", body: body.Bytes()})
	if r.status == http.StatusRequestEntityTooLarge && len(batch) > 1 {
		first, after := b.send(ctx, batch[:len(batch)/2])
		second, later := b.send(ctx, batch[len(batch)/2:])
		return append(first, second...), max(after, later)
	}
	if r.err != nil {
		return all(batch, r.err), r.after
	}
	return itemOutcomes(batch, r.text), 0
}

// all is the same outcome for each document of a batch.
func all(batch []encoded, err error) []error { return slices.Repeat([]error{err}, len(batch)) }

// itemOutcomes reads the response of the server: each document has a status of its own.
func itemOutcomes(batch []encoded, text []byte) []error {
	var answer struct {
		Items []map[string]struct {
			ID     string          `json:"_id"`
			Status int             `json:"status"`
			Error  json.RawMessage `json:"error"`
		} `json:"items"`
	}
	if err := json.Unmarshal(text, &answer); err != nil || len(answer.Items) != len(batch) {
		return all(batch, fmt.Errorf("this is not the response of _bulk for %d documents: %s", len(batch), brief(text)))
	}
	outcomes := make([]error, len(batch))
	for i, item := range answer.Items {
		x, ok := item["index"]
		message := fmt.Sprintf("document %s: status %d: %s", batch[i].id, x.Status, brief(x.Error))
		switch {
		case !ok || x.ID != batch[i].id:
			outcomes[i] = fmt.Errorf("the response of _bulk has no status of document %s", batch[i].id)
		case isTransient(x.Status):
			outcomes[i] = errors.New(message)
		case x.Status < 200 || x.Status >= 300:
			outcomes[i] = &refusedError{message}
		}
	}
	return outcomes
}

// prepare creates the index template, unless one of its name exists: without it the first documents would decide the
// types of fields, and others be refused.
func (b *bulk) prepare(ctx context.Context) (time.Duration, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.prepared {
		return 0, nil
	}
	at := b.base + "/_index_template/" + url.PathEscape(b.index)
	r := b.do(ctx, http.MethodHead, at, request{})
	if r.status == http.StatusNotFound {
		body, err := templateFor(b.index)
		if err != nil {
			return 0, err
		}
		r = b.do(ctx, http.MethodPut, at, request{contentType: "application/json", body: body})
	}
	if r.err != nil {
		return r.after, prefixed("index template "+b.index, r.err)
	}
	b.prepared = true
	return 0, nil
}

// prefixed adds the place to an error, and keeps whether it is a refusal.
func prefixed(place string, err error) error {
	var refused *refusedError
	if errors.As(err, &refused) {
		return &refusedError{place + ": " + refused.message}
	}
	return fmt.Errorf("%s: %w", place, err)
}

// templateFor returns the index template for an index.
func templateFor(index string) ([]byte, error) {
	var t map[string]any
	if err := json.Unmarshal(template, &t); err != nil {
		return nil, err
	}
	t["index_patterns"] = []string{index}
	return json.Marshal(t)
}
