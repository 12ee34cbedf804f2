package output

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// index is a server with one index, whose _bulk has a status for each document, as that of OpenSearch.
type index struct {
	*httptest.Server
	mu        sync.Mutex
	docs      map[string]string
	templates map[string]string
	requests  int
	largest   int // documents of a request
	// fault of a request; it returns true if it has answered.
	fault atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
	// status of a document; 0: it is stored.
	status func(id string) int
}

func newIndex(t *testing.T) *index {
	x := &index{docs: map[string]string{}, templates: map[string]string{}, status: func(string) int { return 0 }}
	x.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := x.fault.Load(); f != nil && (*f)(w, r) {
			return
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		switch name, isTemplate := strings.CutPrefix(r.URL.Path, "/_index_template/"); {
		case isTemplate && r.Method == http.MethodHead && x.templates[name] == "":
			w.WriteHeader(http.StatusNotFound)
		case isTemplate && r.Method == http.MethodPut:
			b, _ := io.ReadAll(r.Body)
			x.templates[name] = string(b)
		case r.Method == http.MethodPost && r.URL.Path == "/cnsbench/_bulk":
			x.bulk(w, r)
		case !isTemplate:
			http.Error(w, "what is this?", http.StatusBadRequest)
		}
	}))
	t.Cleanup(func() {
		x.Server.CloseClientConnections()
		x.Server.Close()
	})
	return x
}

func (x *index) bulk(w http.ResponseWriter, r *http.Request) {
	lines := bufio.NewReader(r.Body)
	var items []any
	bad := false
	for {
		text, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var action struct {
			Index struct {
				ID string `json:"_id"`
			}
		}
		body, bodyErr := lines.ReadString('\n')
		if json.Unmarshal(text, &action) != nil || action.Index.ID == "" || bodyErr != nil || !json.Valid([]byte(body)) {
			http.Error(w, "malformed action", http.StatusBadRequest)
			return
		}
		id := action.Index.ID
		item := map[string]any{"_index": "cnsbench", "_id": id, "status": 201}
		if status := x.status(id); status > 0 {
			bad = true
			item["status"] = status
			item["error"] = map[string]string{"type": "some_exception", "reason": "password=opensesame"}
		} else {
			x.docs[id] = body
		}
		items = append(items, map[string]any{"index": item})
	}
	x.requests++
	x.largest = max(x.largest, len(items))
	_ = json.NewEncoder(w).Encode(map[string]any{"took": 1, "errors": bad, "items": items})
}

func (x *index) breaks(f func(http.ResponseWriter, *http.Request) bool) {
	if f == nil {
		x.fault.Store(nil)
		return
	}
	x.fault.Store(&f)
}

func (x *index) ids() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Sorted(maps.Keys(x.docs))
}

func (x *index) target() Target {
	return Target{Name: "es", URL: x.URL + "/", Index: "cnsbench",
		Actions: map[string]bool{"fio": true, "snapshots": true}}
}

// TestBulk checks that batches have all documents, under a template.
func TestBulk(t *testing.T) {
	x := newIndex(t)
	b, sum := demo(t)
	stats, err := start(t, b, x.target()).Finish(t.Context(), b, sum)
	if err != nil {
		t.Fatal(err)
	}
	want := wantIDs(t, b)
	if diff := cmp.Diff(want, x.ids()); diff != "" || stats[0].Delivered != int64(len(want)) {
		t.Errorf("%+v\n%s", stats, diff)
	}
	if x.requests >= len(want) || x.largest < 2 {
		t.Errorf("%d requests of at most %d documents", x.requests, x.largest)
	}
	var template struct {
		Patterns []string `json:"index_patterns"`
	}
	if err := json.Unmarshal([]byte(x.templates["cnsbench"]), &template); err != nil ||
		!slices.Equal(template.Patterns, []string{"cnsbench"}) {
		t.Errorf("template %v, %v", x.templates, err)
	}
	if doc := x.docs[b.Run.ID+"/workload/fio-1"]; !strings.Contains(doc, `"read_iops":400`) {
		t.Error(doc)
	}
}

// faults are those of a receiver for which a request is repeated.
var faults = map[string]func(http.ResponseWriter, *http.Request) bool{
	"429": answers(http.StatusTooManyRequests),
	"500": answers(http.StatusInternalServerError),
	"503": answers(http.StatusServiceUnavailable),
	"away": func(http.ResponseWriter, *http.Request) bool {
		panic(http.ErrAbortHandler)
	},
	"hangs": func(_ http.ResponseWriter, r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
		return true
	},
}

func answers(status int) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, "not now", status)
		return true
	}
}

// TestBulkFaults checks that documents are neither lost nor doubled, whatever the server does for some time.
func TestBulkFaults(t *testing.T) {
	ofBulk := maps.Clone(faults)
	ofBulk["another response"] = func(w http.ResponseWriter, _ *http.Request) bool {
		_, _ = io.WriteString(w, "<html>")
		return true
	}
	for name, fault := range ofBulk {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newIndex(t)
			b, sum := demo(t)
			var asked atomic.Int64
			x.breaks(func(w http.ResponseWriter, r *http.Request) bool { // the template and the third request are accepted
				return strings.HasSuffix(r.URL.Path, "_bulk") && asked.Add(1) <= 2 && fault(w, r)
			})
			stats, err := startWith(t, optionsFor(name), b, x.target()).Finish(soon(t, 20*time.Second), b, sum)
			if diff := cmp.Diff(wantIDs(t, b), x.ids()); diff != "" || err != nil {
				t.Errorf("%v\n%s", err, diff)
			}
			if st := stats[0]; st.Pending+st.Refused != 0 || st.Retried == 0 || st.Error != "" {
				t.Errorf("%+v", st)
			}
		})
	}
}

// TestBulkItems checks that only the documents of a batch that failed are repeated, and refusals are not.
func TestBulkItems(t *testing.T) {
	x := newIndex(t)
	b, sum := demo(t)
	asked := map[string]int{}
	x.status = func(id string) int {
		asked[id]++
		switch {
		case strings.HasSuffix(id, "run/end"):
			return http.StatusBadRequest
		case strings.Contains(id, "/workload/") && asked[id] < 4:
			return http.StatusTooManyRequests
		case strings.HasSuffix(id, "3") && asked[id] < 3:
			return http.StatusServiceUnavailable
		}
		return 0
	}
	stats, err := start(t, b, x.target()).Finish(soon(t, 20*time.Second), b, sum)
	if err != nil {
		t.Fatal(err)
	}
	want := wantIDs(t, b)
	for _, id := range want {
		times := 1
		switch {
		case strings.Contains(id, "/workload/"):
			times = 4
		case strings.HasSuffix(id, "3"):
			times = 3
		}
		if asked[id] != times {
			t.Errorf("%s was sent %d times, want %d", id, asked[id], times)
		}
	}
	refused := b.Run.ID + "/run/end"
	want = slices.DeleteFunc(want, func(id string) bool { return id == refused })
	if diff := cmp.Diff(want, x.ids()); diff != "" {
		t.Error(diff)
	}
	if st := stats[0]; st.Refused != 1 || st.Pending != 0 || !strings.Contains(st.Error, "some_exception") ||
		strings.Contains(st.Error, "opensesame") {
		t.Errorf("%+v", st)
	}
	x.status = func(string) int { return 0 }
	before := x.requests
	if _, err = start(t, b, x.target()).Finish(t.Context(), b, sum); err != nil || x.requests != before+1 ||
		len(x.ids()) != len(want)+1 {
		t.Errorf("%v after %d requests for the refused document", err, x.requests-before)
	}
}

// TestBulkTooLarge checks that a request that is too large is halved.
func TestBulkTooLarge(t *testing.T) {
	x := newIndex(t)
	b, sum := demo(t)
	x.breaks(func(w http.ResponseWriter, r *http.Request) bool {
		if r.ContentLength > 8<<10 {
			http.Error(w, "", http.StatusRequestEntityTooLarge)
			return true
		}
		return false
	})
	stats, err := start(t, b, x.target()).Finish(soon(t, 20*time.Second), b, sum)
	if st := stats[0]; err != nil || st.Pending != 0 || int(st.Delivered+st.Refused) != len(wantIDs(t, b)) ||
		st.Delivered < 40 {
		t.Errorf("%+v, %v", st, err)
	}
}

// TestBulkTemplate checks that a template of the user stays, and that nothing is sent where none can be created.
func TestBulkTemplate(t *testing.T) {
	x := newIndex(t)
	x.templates["cnsbench"] = "mine"
	b, sum := demo(t)
	if _, err := start(t, b, x.target()).Finish(t.Context(), b, sum); err != nil || x.templates["cnsbench"] != "mine" {
		t.Errorf("%v, %v", x.templates, err)
	}
	x = newIndex(t)
	x.breaks(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			http.Error(w, "no permissions for [indices:admin/index_template/put]", http.StatusForbidden)
			return true
		}
		return false
	})
	stats, err := start(t, b, x.target()).Finish(t.Context(), b, sum)
	if st := stats[0]; err != nil || int(st.Refused) != len(wantIDs(t, b)) || x.requests != 0 ||
		!strings.Contains(st.Error, "index template cnsbench: response 403") {
		t.Errorf("%+v, %v", st, err)
	}
}

func TestFields(t *testing.T) {
	got := fields(map[string]int{"read": 1, "read.iops": 2, "read_iops": 3, "": 4, "canaryWrite/data": 5})
	want := map[string]int{"read": 1, "read_iops": 2, "read_iops_2": 3, "_2": 4, "canaryWrite_data": 5}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestTemplate checks that the template has a type for every field of the documents.
func TestTemplate(t *testing.T) {
	var parsed struct {
		Template struct {
			Mappings struct{ Properties map[string]map[string]any }
		}
	}
	if err := json.Unmarshal(template, &parsed); err != nil {
		t.Fatal(err)
	}
	known := parsed.Template.Mappings.Properties
	b, sum := demo(t)
	for d, err := range documents(b, sum, map[string]bool{"fio": true, "snapshots": true}) {
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(d.make())
		var doc map[string]any
		if err == nil {
			err = json.Unmarshal(text, &doc)
		}
		if err != nil {
			t.Fatal(err)
		}
		missing := func(place string, doc, known any) {
			of, _ := known.(map[string]any)
			for field := range doc.(map[string]any) {
				if of[field] == nil {
					t.Fatal(fmt.Sprint("no type for ", place, field))
				}
			}
		}
		all := map[string]any{}
		for name, field := range known {
			all[name] = field
		}
		missing("", doc, all)
		if o := doc["op"]; o != nil {
			missing("op.", o, known["op"]["properties"])
		}
	}
}
