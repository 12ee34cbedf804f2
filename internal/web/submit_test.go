package web

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/queue"
)

// jsonType is the header of requests with a body.
var jsonType = map[string]string{"Content-Type": "application/json"}

// asker sends requests to a server; the API's answer is decoded into "into" unless that is nil.
type asker func(method, path, text string, header map[string]string, into any) (status int, answer string)

// newAsker serves a directory, with a queue if run is set. Texts are valid that begin with "valid".
func newAsker(t *testing.T, run bool) asker {
	t.Helper()
	o := Options{Dir: t.TempDir(), Validate: func(_ context.Context, d Draft) Check {
		ok := strings.HasPrefix(d.Text, "valid") && d.Engine == "local"
		c := Check{Validation: plan.Validation{Valid: ok, Problems: []plan.Problem{}, Warnings: []plan.Problem{}}}
		if c.Name = "named"; !ok {
			c.Name, c.Problems = "", []plan.Problem{{File: "f", Line: 3, Column: 1, Path: "spec", Message: "bad"}}
		}
		return c
	}}
	if run {
		q, err := queue.Open(queue.Options{Dir: o.Dir, Log: func(string) {},
			Command: func(queue.Submission, string, string) (*exec.Cmd, error) { return nil, io.EOF }})
		if err != nil {
			t.Fatal(err)
		}
		o.Queue = q
		t.Cleanup(func() {
			if err := q.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	s, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	h := s.Handler()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(method, path, text string, header map[string]string, into any) (int, string) {
		r := httptest.NewRequest(method, path, strings.NewReader(text))
		for k, v := range header {
			r.Header.Set(k, v)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if into != nil {
			if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
				t.Fatalf("%s %s: %v: %s", method, path, err, w.Body)
			}
		}
		return w.Code, w.Body.String()
	}
}

// writing are the requests that need --allow-run.
var writing = []struct{ method, path, text string }{
	{http.MethodPost, "/api/v1/queue", `{"text": "valid", "engine": "local"}`},
	{http.MethodPost, "/api/v1/queue/1/move", `{"by": 1}`},
	{http.MethodPost, "/api/v1/queue/1/cancel", ""},
	{http.MethodPost, "/api/v1/queue/1/resubmit", ""},
	{http.MethodPut, "/api/v1/queue", `{"paused": true}`},
	{http.MethodDelete, "/api/v1/queue/1", ""},
}

func TestReadsOnly(t *testing.T) {
	t.Parallel()
	ask := newAsker(t, false)
	for _, w := range writing {
		status, text := ask(w.method, w.path, w.text, jsonType, nil)
		if status != 403 || !strings.Contains(text, "--allow-run") {
			t.Errorf("%s %s: %d %s", w.method, w.path, status, text)
		}
	}
	var q Queue
	status, _ := ask(http.MethodGet, "/api/v1/queue", "", nil, &q)
	if status != 200 || q.AllowRun || len(q.Submissions) > 0 {
		t.Errorf("queue: %d %+v", status, q)
	}
	if status, _ := ask(http.MethodGet, "/api/v1/queue/1", "", nil, nil); status != 404 {
		t.Errorf("a submission: %d", status)
	}
	var c Check
	status, _ = ask(http.MethodPost, "/api/v1/validate", `{"text": "x", "engine": "local"}`, jsonType, &c)
	if status != 200 || c.Valid || len(c.Problems) != 1 || c.Problems[0].Line != 3 {
		t.Errorf("validate: %d %+v", status, c)
	}
}

// A page of another site cannot send what changes something, even with the user's password.
func TestForeignRequests(t *testing.T) {
	t.Parallel()
	ask := newAsker(t, true)
	for name, tt := range map[string]struct {
		header map[string]string
		want   int
	}{
		"no origin":         {jsonType, 201},
		"own origin":        {map[string]string{"Content-Type": "application/json", "Origin": "http://example.com"}, 201},
		"with a charset":    {map[string]string{"Content-Type": "application/json; charset=utf-8"}, 201},
		"foreign origin":    {map[string]string{"Content-Type": "application/json", "Origin": "http://evil.example"}, 403},
		"no such origin":    {map[string]string{"Content-Type": "application/json", "Origin": "null"}, 403},
		"foreign site":      {map[string]string{"Content-Type": "application/json", "Sec-Fetch-Site": "cross-site"}, 403},
		"of a sibling site": {map[string]string{"Content-Type": "application/json", "Sec-Fetch-Site": "same-site"}, 403},
		"a form's type":     {map[string]string{"Content-Type": "text/plain"}, 415},
		"no type":           {nil, 415},
	} {
		if status, text := ask(http.MethodPost, writing[0].path, writing[0].text, tt.header, nil); status != tt.want {
			t.Errorf("%s: %d, want %d: %s", name, status, tt.want, text)
		}
	}
	for _, w := range writing {
		header := map[string]string{"Content-Type": "application/json", "Origin": "http://evil.example"}
		status, text := ask(w.method, w.path, w.text, header, nil)
		if status != 403 || !strings.Contains(text, "another site") {
			t.Errorf("%s %s: %d %s", w.method, w.path, status, text)
		}
	}
}

func TestQueue(t *testing.T) {
	t.Parallel()
	ask := newAsker(t, true)
	long, _ := json.Marshal(map[string]string{"engine": "local", "text": "valid" + strings.Repeat("x", queue.MaxText)})
	for _, tt := range []struct {
		method, path, text string
		want               int
		says               string
	}{
		{"POST", "/api/v1/queue", `{"text": "valid", "engine": "local"}`, 201, `"name":"named"`},
		{"POST", "/api/v1/queue", `{"text": "valid", "engine": "local", "name": "second", "namespace": "ns"}`, 201,
			`"id":"2"`},
		{"POST", "/api/v1/queue", `{"text": "no", "engine": "local"}`, 422, "f:3:1: spec: bad"},
		{"POST", "/api/v1/queue", `{"text": "valid", "engine": "nomad"}`, 422, "bad"},
		{"POST", "/api/v1/queue", `{"text": "valid", "engine": "local", "name": "../x"}`, 422, "invalid name"},
		{"POST", "/api/v1/queue", `{"text": "valid", "engine": "local", "name": "/etc"}`, 422, "invalid name"},
		{"POST", "/api/v1/queue", string(long), 422, "want at most"},
		{"POST", "/api/v1/queue", `{"text": "` + strings.Repeat("x", maxBody) + `"}`, 413, ""},
		{"POST", "/api/v1/validate", `{"text": "` + strings.Repeat("x", maxBody) + `"}`, 413, ""},
		{"POST", "/api/v1/queue", `{`, 400, ""},
		{"POST", "/api/v1/queue/2/move", `{"by": -1}`, 204, ""},
		{"POST", "/api/v1/queue/9/move", `{"by": -1}`, 404, "submission not found"},
		{"POST", "/api/v1/queue/..%2F..%2Fetc/cancel", "", 404, "submission not found"},
		{"DELETE", "/api/v1/queue/2", "", 409, "cancel it first"},
		{"POST", "/api/v1/queue/2/cancel", "", 204, ""},
		{"POST", "/api/v1/queue/2/cancel", "", 409, "has ended"},
		{"POST", "/api/v1/queue/2/resubmit", "", 201, `"namespace":"ns"`},
		{"DELETE", "/api/v1/queue/2", "", 204, ""},
		{"GET", "/api/v1/queue/3", "", 200, `"text":"valid"`},
		{"PUT", "/api/v1/queue", `{"paused": true}`, 204, ""},
	} {
		status, text := ask(tt.method, tt.path, tt.text, jsonType, nil)
		if status != tt.want || !strings.Contains(text, tt.says) {
			t.Errorf("%s %s %.80s: %d %s, want %d %s", tt.method, tt.path, tt.text, status, text, tt.want, tt.says)
		}
	}
	var q Queue
	ask(http.MethodGet, "/api/v1/queue", "", nil, &q)
	if len(q.Submissions) != 2 || q.Submissions[0].ID != "1" || q.Submissions[1].ID != "3" || !q.Paused || !q.AllowRun ||
		q.Submissions[1].Name != "second" || q.Submissions[0].Text != "" {
		t.Errorf("%+v", q)
	}
}

// TestHosts: the running submission has the hosts of its run: nodes of operations and instances, or workers of an
// object workload. A study has those of its run in progress.
func TestHosts(t *testing.T) {
	t.Parallel()
	start := func(w *bundle.Writer, instance string) { w.Started(op.InstanceStart{Instance: instance, At: 1}) }
	running := []op.Milestone{{Name: op.Running, At: 1}}
	nodes := func(w *bundle.Writer) {
		for i, node := range []string{"b", "a", "a"} {
			instance := "db-" + strconv.Itoa(i)
			w.Op(op.Op{ID: int64(i), Action: "db", Kind: op.Create, Target: instance, Node: node, Ended: 1, Outcome: op.OK,
				Milestones: running})
			start(w, instance)
		}
		w.Op(op.Op{ID: 3, Action: "snap", Target: "db-0-data", Node: "b", Ended: 2, Outcome: op.OK})
		w.Op(op.Op{ID: 4, Action: "move", Target: "db-1", Node: "c", Ended: 3, Outcome: op.OK, Milestones: running})
		w.Op(op.Op{ID: 5, Action: "fails", Target: "db-2", Node: "c", Ended: 3, Outcome: op.Error, Milestones: running})
		w.Op(op.Op{ID: 6, Action: "resize", Target: "db-2", Node: "a", Ended: 3, Outcome: op.OK})
		start(w, "unknown-7")
		w.Ended(op.InstanceEnd{Instance: "db-0", At: 4, OK: true})
	}
	workers := func(w *bundle.Writer) {
		e := bundle.Environment{Engine: map[string]any{"hosts": []map[string]any{{"name": "x"}, {"name": "y"}}}}
		if err := w.Environment(e); err != nil {
			t.Error(err)
		}
		start(w, "main.read-1")
		start(w, "main.read-5")
	}
	want := []Host{{"a", 1, 0, 3}, {"b", 1, 1, 2}, {"c", 1, 0, 2}}
	for _, tt := range []struct {
		name, run, engine string
		study             bool
		write             func(*bundle.Writer)
		want              []Host
	}{
		{"run", "out", "local", false, nodes, want},
		{"study", "out/trial", "local", true, nodes, want},
		{"workers", "out", bundle.Objects, false, workers, []Host{{Name: "x"}, {Name: "y", Instances: 1}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, tt.run)), 0o755); err != nil {
				t.Fatal(err)
			}
			w, err := bundle.Create(filepath.Join(dir, tt.run), bundle.Run{ID: "r", Name: "n", Engine: tt.engine,
				BarrierAt: op.Never, EndedAt: op.Never})
			if err != nil {
				t.Fatal(err)
			}
			tt.write(w)
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			_, s := newServer(t, dir)
			sub := queue.Submission{Out: "out", Study: tt.study}
			got := s.hosts(&sub)
			for range 300 { // the first answer may be before the bundle is read
				if len(got) > 0 {
					break
				}
				time.Sleep(10 * time.Millisecond)
				got = s.hosts(&sub)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if err := w.Close(nil); err != nil {
				t.Fatal(err)
			}
			if got := s.hosts(&sub); got != nil {
				t.Errorf("of a closed bundle: %v", got)
			}
		})
	}
}
