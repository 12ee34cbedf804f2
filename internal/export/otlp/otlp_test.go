package otlp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

func batches(t *testing.T, b *bundle.Bundle) (list []Batch) {
	t.Helper()
	for x, err := range Batches(b) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, x)
	}
	return list
}

// spans decodes batches.
func spans(t *testing.T, list []Batch) (all []spanJSON) {
	t.Helper()
	for _, x := range list {
		var r requestJSON
		if err := json.Unmarshal(x.Body, &r); err != nil {
			t.Fatal(err)
		}
		var some []spanJSON
		if err := json.Unmarshal(r.ResourceSpans[0].ScopeSpans[0].Spans, &some); err != nil {
			t.Fatal(err)
		}
		all = append(all, some...)
	}
	return all
}

func attributeOf(s spanJSON, key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			if a.Value.String != nil {
				return *a.Value.String
			}
			return a.Value.Int
		}
	}
	return ""
}

// Each op is a trace: its root has the recorded times, and every other span of the trace has a parent in it.
func TestTraces(t *testing.T) {
	b, _ := analysistest.Demo(t)
	all := spans(t, batches(t, b))
	ids, roots := map[string]bool{}, map[string]spanJSON{}
	for _, s := range all {
		if ids[s.SpanID] || len(s.SpanID) != 16 || len(s.TraceID) != 32 {
			t.Errorf("span %s of trace %s: want unique IDs of 8 and 16 bytes", s.SpanID, s.TraceID)
		}
		ids[s.TraceID+s.SpanID], ids[s.SpanID] = true, true
		if s.Parent == "" {
			roots[attributeOf(s, "cnsbench.op.id")] = s
		}
	}
	for _, s := range all {
		if s.Parent != "" && !ids[s.TraceID+s.Parent] {
			t.Errorf("%s has no parent in its trace", s.Name)
		}
	}
	n, calls := 0, 0
	at := func(t op.Time) string { return fmt.Sprint(b.Run.Clock.Start.Add(time.Duration(t)).UnixNano()) }
	for o, err := range b.Ops() {
		if err != nil {
			t.Fatal(err)
		}
		n++
		s := roots[fmt.Sprint(o.ID)]
		end := o.Ended
		status := statusOK
		switch o.Outcome {
		case op.Dropped:
			end, status = o.Intended, statusError
		case op.Error:
			status = statusError
		case op.Censored:
			status = 0
		}
		got := 0
		if s.Status != nil {
			got = s.Status.Code
		}
		if s.Name != o.Action || s.Start != at(o.Intended) || s.End != at(end) || got != status {
			t.Errorf("%v is %+v", &o, s)
		}
		if want, ok := o.Response(); ok && attributeOf(s, "cnsbench.op.response_ns") != fmt.Sprint(want) {
			t.Errorf("%v: response %s, want %d", &o, attributeOf(s, "cnsbench.op.response_ns"), want)
		}
		if len(s.Events) != len(o.Milestones) {
			t.Errorf("%v has %d events, want %d", &o, len(s.Events), len(o.Milestones))
		}
	}
	for _, s := range all {
		if s.Name == "CreateSnapshot" {
			calls++
		}
	}
	if len(roots) != n || calls != 37 { // of 40 one failed, one was dropped, one had not ended
		t.Errorf("%d traces of %d ops, %d calls", len(roots), n, calls)
	}
}

// The bytes are the same each time, so that a repetition changes nothing; another run has other IDs.
func TestIDs(t *testing.T) {
	b, _ := analysistest.Demo(t)
	first, again := batches(t, b), batches(t, b)
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("the second export differs: %.500s", diff)
	}
	b.Run.ID = "another"
	if spans(t, batches(t, b))[0].TraceID == spans(t, first)[0].TraceID {
		t.Error("two runs share a trace ID")
	}
	if hash(8, "a", "b") == hash(8, "ab", "") {
		t.Error("parts are not separated")
	}
}

// The JSON is OTLP's by its own schema; only the encoding of IDs is another in protojson.
func TestSchema(t *testing.T) {
	b, _ := analysistest.Demo(t)
	for _, x := range batches(t, b) {
		var data tracepb.TracesData
		if err := protojson.Unmarshal(x.Body, &data); err != nil {
			t.Fatal(err)
		}
		got := data.ResourceSpans[0].ScopeSpans[0].Spans
		if len(got) != x.Spans || got[0].StartTimeUnixNano == 0 || got[0].Kind != tracepb.Span_SPAN_KIND_INTERNAL {
			t.Errorf("%d spans, first %v", len(got), got[0])
		}
	}
}

// receiver answers requests with the given responses, then with 200.
type receiver struct {
	answers []func(http.ResponseWriter)
	bodies  []string
	header  http.Header
	path    string
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, _ := io.ReadAll(q.Body)
	r.header, r.path = q.Header, q.URL.Path
	if len(r.answers) > 0 {
		next := r.answers[0]
		r.answers = r.answers[1:]
		next(w)
		return
	}
	r.bodies = append(r.bodies, string(body))
}

func answer(code int) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { http.Error(w, "no", code) }
}

func three() iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		for i := range 3 {
			if !yield(Batch{Body: fmt.Append(nil, i), Traces: 1, Spans: 2}, nil) {
				return
			}
		}
	}
}

func TestSend(t *testing.T) {
	tests := []struct {
		name    string
		answers []func(http.ResponseWriter)
		want    Sent
		err     string
		bodies  string
	}{
		{"at once", nil, Sent{Traces: 3, Spans: 6, Requests: 3}, "", "0 1 2"},
		{"busy twice", []func(http.ResponseWriter){answer(503), answer(429)},
			Sent{Traces: 3, Spans: 6, Requests: 5, Repeated: 2}, "", "0 1 2"},
		{"a refusal", []func(http.ResponseWriter){answer(400)}, Sent{Requests: 1}, "response 400 Bad Request: no", ""},
		{"a redirect", []func(http.ResponseWriter){answer(307)}, Sent{Requests: 1}, "redirects", ""},
		{"busy for ever", []func(http.ResponseWriter){answer(503), answer(503), answer(503)},
			Sent{Requests: 3, Repeated: 2}, "response 503", ""},
		{"partial success", []func(http.ResponseWriter){func(w http.ResponseWriter) {
			fmt.Fprint(w, `{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old"}}`)
		}}, Sent{Traces: 3, Spans: 6, Requests: 3, Rejected: 2, Message: "too old"}, "", "1 2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &receiver{answers: tt.answers}
			server := httptest.NewServer(r)
			defer server.Close()
			s, err := NewSender(server.URL+"?key=secret", "authorization=Bearer%20abc,x=1")
			if err != nil {
				t.Fatal(err)
			}
			s.Backoff, s.Patience, s.Attempts = time.Nanosecond, time.Nanosecond, 3
			sent, err := s.Send(t.Context(), three())
			if diff := cmp.Diff(tt.want, sent); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
			if got := strings.Join(r.bodies, " "); got != tt.bodies {
				t.Errorf("received %s, want %s", got, tt.bodies)
			}
			if r.path != "/v1/traces" || r.header.Get("Authorization") != "Bearer abc" || r.header.Get("X") != "1" {
				t.Errorf("path %s, header %v", r.path, r.header)
			}
		})
	}
}

// An error of a connection, and the end of the time, say nothing of the URL's query.
func TestUnreachable(t *testing.T) {
	s, err := NewSender("http://127.0.0.1:1/?key=secret", "")
	if err != nil {
		t.Fatal(err)
	}
	s.Backoff, s.Patience, s.Attempts = time.Nanosecond, time.Nanosecond, 2
	if _, err := s.Send(t.Context(), three()); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.Attempts = 1000
	if _, err := s.Send(ctx, three()); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestNewSender(t *testing.T) {
	for _, tt := range []struct{ endpoint, headers, want, err string }{
		{"http://h:4318", "", "http://h:4318/v1/traces", ""},
		{"https://h/otlp/v1/traces", "", "https://h/otlp/v1/traces", ""},
		{"localhost:4318", "", "", "want http://HOST:PORT"},
		{"ftp://h", "", "", "want http://HOST:PORT"},
		{"http://user:hunter2@h", "", "", "OTEL_EXPORTER_OTLP_HEADERS"},
		{"http://h", "novalue", "", "want key=value"},
	} {
		s, err := NewSender(tt.endpoint, tt.headers)
		switch {
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err) ||
			strings.Contains(err.Error(), "hunter2")):
			t.Errorf("%s: error %v, want %q", tt.endpoint, err, tt.err)
		case tt.err == "" && (err != nil || s.endpoint != tt.want):
			t.Errorf("%s: %v, want %s", tt.endpoint, err, tt.want)
		}
	}
}

// A call is a span of the step that makes it, the step one of the service time.
func TestNested(t *testing.T) {
	x := converter{run: &bundle.Run{ID: "r"}}
	x.op(&op.Op{Kind: op.Create, Action: "a", Intended: 0, Started: 5, Ended: 50, Outcome: op.OK,
		Milestones: []op.Milestone{{Name: op.Scheduled, At: 10}, {Name: "NodePublishVolume.start/v", At: 20},
			{Name: "NodePublishVolume.end/v", At: 30}, {Name: op.Sandboxed, At: 40}}})
	names, got := map[string]string{}, map[string]string{}
	for _, s := range x.spans {
		names[s.SpanID] = s.Name
	}
	for _, s := range x.spans {
		got[s.Name] = names[s.Parent]
	}
	want := map[string]string{"a": "", "late": "a", "service": "a", "scheduled": "service", "sandboxed": "service",
		"NodePublishVolume": "sandboxed"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("parents: -want +got:\n%s", diff)
	}
}
