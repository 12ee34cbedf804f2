package output

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
)

// remoteWrite sends requests of remote write 1.0 of Prometheus one after another. One that is sent again has the same
// samples with the same times: a receiver stores them once.
type remoteWrite struct{ *poster }

func (remoteWrite) limits() (documents, bytes int) { return 1, 0 }

// encode returns the body of a request as it is in the bundle.
func (remoteWrite) encode(v any) ([]byte, error) {
	body, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("a document of type %T has no samples", v)
	}
	return body, nil
}

func (w remoteWrite) send(ctx context.Context, batch []encoded) (outcomes []error, after time.Duration) {
	for _, d := range batch {
		r := w.do(ctx, http.MethodPost, w.url, request{contentType: "application/x-protobuf", id: d.id, body: d.body,
			headers: map[string]string{"Content-Encoding": "snappy", "X-Prometheus-Remote-Write-Version": "0.1.0"}})
		outcomes, after = append(outcomes, r.err), max(after, r.after)
	}
	return outcomes, after
}

// requests yields the requests of remote write of a bundle for an output.
func requests(b *bundle.Bundle, output string) iter.Seq2[document, error] {
	return func(yield func(document, error) bool) {
		n := int64(0)
		for body, err := range b.RemoteWrites(output) {
			n++
			if !yield(document{metricsKey(n), func() any { return body }}, err) {
				return
			}
		}
	}
}
