package output

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

// receiver takes documents as an index of Elasticsearch does: one a POST.
type receiver struct {
	*httptest.Server
	mu    sync.Mutex
	docs  map[string]map[string]any // by id
	times map[string]int
	// fault, if it returns true, has answered.
	fault atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
}

func receive(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{docs: map[string]map[string]any{}, times: map[string]int{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if f := r.fault.Load(); f != nil && (*f)(w, req) {
			return
		}
		var doc map[string]any
		b, err := io.ReadAll(req.Body)
		if err == nil {
			err = json.Unmarshal(b, &doc)
		}
		id, _ := doc["id"].(string)
		if err != nil || id == "" || req.Method != http.MethodPost || req.URL.Path != "/fio/_doc/" ||
			req.Header.Get("Content-Type") != "application/json" || req.Header.Get(idHeader) != id {
			http.Error(w, "what is this?", http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		r.docs[id] = doc
		r.times[id]++
		r.mu.Unlock()
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"result":"created"}`)
	}))
	t.Cleanup(func() {
		r.Server.CloseClientConnections()
		r.Server.Close()
	})
	return r
}

func (r *receiver) breaks(f func(http.ResponseWriter, *http.Request) bool) {
	if f == nil {
		r.fault.Store(nil)
		return
	}
	r.fault.Store(&f)
}

func (r *receiver) ids() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []string
	for id := range r.docs {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func (r *receiver) target(actions ...string) Target {
	t := Target{Name: "es", URL: r.URL + "/fio/_doc/", Actions: map[string]bool{}}
	for _, a := range actions {
		t.Actions[a] = true
	}
	return t
}

// quick has a limit of requests that no response of the tests' servers exceeds: one that comes too late is sent again.
var quick = Options{Backoff: time.Millisecond, Patience: 5 * time.Millisecond, Limit: time.Minute}

// optionsFor are quick, with a limit that ends requests that hang.
func optionsFor(fault string) Options {
	o := quick
	if fault == "hangs" {
		o.Limit = 200 * time.Millisecond
	}
	return o
}

// shared is one bundle for all tests, each with an outbox of its own: to make
// one takes longer than to send it.
var shared struct {
	sync.Once
	dir string
	sum *summary.Summary
}

// scratch holds that bundle and the outboxes.
var scratch string

// TestMain fails if the tests leave a goroutine behind.
func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "output-"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(scratch)
		os.Exit(code)
	}))
}

func demo(t *testing.T) (*bundle.Bundle, *summary.Summary) {
	t.Helper()
	shared.Do(func() {
		b, _ := analysistest.Demo(t)
		shared.dir = filepath.Join(scratch, "bundle")
		err := os.CopyFS(shared.dir, os.DirFS(b.Dir))
		if err == nil {
			shared.sum, err = summary.Make(b)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	b, err := bundle.Open(shared.dir)
	if err != nil {
		t.Fatal(err)
	}
	return b, shared.sum
}

// outboxAt is where the test's own outbox lies.
func outboxAt(t *testing.T) string {
	return filepath.Join(scratch, strings.ReplaceAll(t.Name(), "/", "-"))
}

func start(t *testing.T, b *bundle.Bundle, targets ...Target) *Sender {
	t.Helper()
	return startWith(t, quick, b, targets...)
}

func startWith(t *testing.T, o Options, b *bundle.Bundle, targets ...Target) *Sender {
	t.Helper()
	s, err := Start(t.Context(), outboxAt(t), b.Run, targets, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func soon(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// finishWhen finishes as soon as all targets have delivered at least so many documents and retried as often.
func finishWhen(t *testing.T, s *Sender, b *bundle.Bundle, sum *summary.Summary, delivered, retried []int64,
) []bundle.OutputStats {
	t.Helper()
	ctx, cancel := context.WithCancel(soon(t, 20*time.Second))
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			reached := true
			for i, to := range s.targets {
				to.mu.Lock()
				reached = reached && to.delivered.n >= delivered[i] && to.retried >= retried[i]
				to.mu.Unlock()
			}
			if reached {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	stats, err := s.Finish(ctx, b, sum)
	if err != nil {
		t.Fatal(err)
	}
	return stats
}

// opsOf reads the ops of an action.
func opsOf(t *testing.T, b *bundle.Bundle, action string) (ops []op.Op) {
	t.Helper()
	for o, err := range b.Ops() {
		if err != nil {
			t.Fatal(err)
		}
		if o.Action == action {
			ops = append(ops, o)
		}
	}
	return ops
}

// wantIDs of a demo whose target has both actions.
func wantIDs(t *testing.T, b *bundle.Bundle) []string {
	ids := []string{"run/start", "run/end", "workload/fio-0", "workload/fio-1", "workload/fio-2"}
	for _, action := range []string{"fio", "snapshots"} {
		for _, o := range opsOf(t, b, action) {
			ids = append(ids, opKey(o.ID))
		}
	}
	for i := range ids {
		ids[i] = b.Run.ID + "/" + ids[i]
	}
	slices.Sort(ids)
	return ids
}

func TestDocuments(t *testing.T) {
	r := receive(t)
	b, sum := demo(t)
	s := start(t, b, r.target("fio", "snapshots"))
	ops := opsOf(t, b, "snapshots")
	for _, o := range ops[:10] { // while the run goes on
		s.Op(o)
	}
	for end := time.Now().Add(20 * time.Second); len(r.ids()) < 11; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("while the run went on came %v", r.ids())
		}
	}
	stats, err := s.Finish(t.Context(), b, sum)
	if err != nil {
		t.Fatal(err)
	}
	want := wantIDs(t, b)
	if diff := cmp.Diff(want, r.ids()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]bundle.OutputStats{{Name: "es", Delivered: int64(len(want))}}, stats); diff != "" {
		t.Error(diff)
	}
	for id, n := range r.times {
		if n != 1 {
			t.Errorf("%s came %d times", id, n)
		}
	}
	if HasOutbox(outboxAt(t)) {
		t.Error("an outbox is left though all was delivered")
	}
	checkOp(t, r.docs[b.Run.ID+"/"+opKey(ops[3].ID)], ops[3])
	last := ops[len(ops)-1]
	checkOp(t, r.docs[b.Run.ID+"/"+opKey(last.ID)], last)
	checkWorkload(t, r.docs[b.Run.ID+"/workload/fio-1"], sum)
	end := r.docs[b.Run.ID+"/run/end"]
	if end["state"] != "complete" || end["ended"] != "2026-01-02T03:05:08Z" ||
		end["started"] != "2026-01-02T03:04:05Z" || end["spec"] == nil || end["exitCode"] != 0.0 {
		t.Errorf("%v", end)
	}
}

func checkOp(t *testing.T, doc map[string]any, want op.Op) {
	t.Helper()
	b, err := json.Marshal(doc["op"])
	if err != nil {
		t.Fatal(err)
	}
	var got op.Op
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Milestones) == 0 {
		got.Milestones = nil
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	response, ok := want.Response()
	if got, has := doc["responseNs"].(float64); has != ok || ok && int64(got) != response {
		t.Errorf("response %v, want %d %v", doc["responseNs"], response, ok)
	}
	if doc["kind"] != "op" || doc["schema"] != 1.0 || doc["benchmark"] != "synthetic" {
		t.Errorf("%v", doc)
	}
}

func checkWorkload(t *testing.T, doc map[string]any, sum *summary.Summary) {
	t.Helper()
	var want int64
	for _, m := range sum.Workloads[0].Instances[1].Metrics {
		if m.Name == "write" {
			want = *m.Latency.P99.Ns
		}
	}
	write, _ := doc["latency"].(map[string]any)["write"].(map[string]any)
	metrics, _ := doc["metrics"].(map[string]any)
	units, _ := doc["units"].(map[string]any)
	if write["p99"] != float64(want) || want == 0 || write["basis"] != "lat" || metrics["read.iops"] != 400.0 ||
		units["read.iops"] != "1/s" || doc["ok"] != true {
		t.Errorf("p99 %d wanted:\n%v", want, doc)
	}
}

// Whatever the receiver does, everything comes in the end.
func TestFaults(t *testing.T) {
	var n atomic.Int64
	for name, fault := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"away": func(w http.ResponseWriter, _ *http.Request) bool {
			if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
				_ = conn.Close()
			}
			return true
		},
		"error 500": func(w http.ResponseWriter, _ *http.Request) bool {
			http.Error(w, "broken", http.StatusInternalServerError)
			return true
		},
		"hangs": func(_ http.ResponseWriter, r *http.Request) bool {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
			return true
		},
		"closes in mid-answer": func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "{")
			return true
		},
		"each third request fails": func(w http.ResponseWriter, _ *http.Request) bool {
			if n.Add(1)%3 > 0 {
				return false
			}
			w.Header().Set("Retry-After", "0")
			http.Error(w, "busy", http.StatusTooManyRequests)
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := receive(t)
			b, sum := demo(t)
			var asked atomic.Int64
			r.breaks(func(w http.ResponseWriter, q *http.Request) bool {
				return (name == "each third request fails" || asked.Add(1) <= 3) && fault(w, q)
			})
			s := startWith(t, optionsFor(name), b, r.target("fio", "snapshots"))
			began := time.Now()
			for _, o := range append(opsOf(t, b, "fio"), opsOf(t, b, "snapshots")...) {
				for range 100 { // more than the queue holds
					s.Op(o)
				}
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("the run waited %v", took)
			}
			stats, err := s.Finish(soon(t, 20*time.Second), b, sum)
			if err != nil {
				t.Fatal(err)
			}
			want := wantIDs(t, b)
			if diff := cmp.Diff(want, r.ids()); diff != "" {
				t.Error(diff)
			}
			if stats[0].Pending != 0 || stats[0].Delivered != int64(len(want)) || stats[0].Retried == 0 ||
				stats[0].Error != "" {
				t.Errorf("%+v", stats)
			}
		})
	}
}

// What is left when the time is over is sent later, and nothing else again.
func TestPending(t *testing.T) {
	r := receive(t)
	b, sum := demo(t)
	s := start(t, b, r.target("fio", "snapshots"))
	for end := time.Now().Add(20 * time.Second); len(r.ids()) < 1; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the start never came")
		}
	}
	r.breaks(func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, "down for the night", http.StatusServiceUnavailable)
		return true
	})
	stats := finishWhen(t, s, b, sum, []int64{1}, []int64{1})
	want := wantIDs(t, b)
	if st := stats[0]; st.Delivered != 1 || st.Pending != int64(len(want)-1) || !strings.Contains(st.Error, "503") ||
		!strings.Contains(st.Error, "down for the night") {
		t.Errorf("%+v", st)
	}
	if !HasOutbox(outboxAt(t)) {
		t.Fatal("there is no outbox")
	}
	r.breaks(nil)
	stats, err := start(t, b, r.target("fio", "snapshots")).Finish(t.Context(), b, sum)
	if err != nil || stats[0].Pending != 0 || stats[0].Delivered != int64(len(want)) {
		t.Errorf("%+v, %v", stats, err)
	}
	if diff := cmp.Diff(want, r.ids()); diff != "" {
		t.Error(diff)
	}
	if n := r.times[b.Run.ID+"/run/start"]; n != 1 {
		t.Errorf("the start came %d times", n)
	}
	if HasOutbox(outboxAt(t)) {
		t.Error("the outbox is left")
	}
}

// A run that was killed has its outbox and its bundle: what it had sent and
// what it has not.
func TestPendingOfAKilledRun(t *testing.T) {
	r := receive(t)
	b := analysistest.Killed(t)
	sum, err := summary.Make(b)
	if err != nil {
		t.Fatal(err)
	}
	stats, err := start(t, b, r.target("fio")).Finish(t.Context(), b, sum)
	if err != nil || stats[0].Delivered != 5 { // start, end, three ops
		t.Errorf("%+v, %v\n%v", stats, err, r.ids())
	}
	if end := r.docs[b.Run.ID+"/run/end"]; end["state"] != "running" || end["ended"] != nil {
		t.Errorf("%v", end)
	}
}

// A receiver that refuses is asked once for each document.
func TestRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request)
		want   string
	}{
		"400": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "mapper_parsing_exception", 400) },
			"mapper_parsing_exception"},
		"401": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", http.StatusUnauthorized) },
			"401"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/other", http.StatusFound) },
			"redirect to /other"},
	} {
		t.Run(name, func(t *testing.T) {
			r := receive(t)
			var asked atomic.Int64
			r.breaks(func(w http.ResponseWriter, req *http.Request) bool {
				asked.Add(1)
				tt.answer(w, req)
				return true
			})
			b, sum := demo(t)
			stats, err := start(t, b, r.target("fio")).Finish(t.Context(), b, sum)
			if err != nil {
				t.Fatal(err)
			}
			const all = 2 + 3 + 3 // run, workloads, ops
			if st := stats[0]; st.Refused != all || st.Pending != 0 || st.Retried != 0 || asked.Load() != all ||
				!strings.Contains(st.Error, tt.want) {
				t.Errorf("%+v, %d requests", st, asked.Load())
			}
			if !HasOutbox(outboxAt(t)) {
				t.Error("there is no outbox to try again from")
			}
		})
	}
}

// Two targets do not wait for each other, and each gets its own actions.
func TestTargetsAreApart(t *testing.T) {
	good, bad := receive(t), receive(t)
	bad.breaks(func(w http.ResponseWriter, _ *http.Request) bool { http.Error(w, "", 500); return true })
	b, sum := demo(t)
	first, second := good.target("snapshots"), bad.target()
	second.Name = "bad"
	secret := "ApiKey x"
	first.Authorization = secret
	good.breaks(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == secret {
			return false
		}
		http.Error(w, "", http.StatusUnauthorized)
		return true
	})
	stats := finishWhen(t, start(t, b, first, second), b, sum, []int64{2 + 40, 0}, []int64{0, 1})
	if stats[0].Delivered != 2+40 || stats[1].Pending != 2 || stats[1].Delivered != 0 {
		t.Errorf("%+v", stats)
	}
	box, err := os.ReadFile(OutboxOf(outboxAt(t)))
	if err != nil || strings.Contains(string(box), secret) {
		t.Errorf("%s, %v", box, err)
	}
}

// TestOutboxWithoutEnd: an outbox is read up to a limit, and the error says what
// to do.
func TestOutboxWithoutEnd(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bundle")
	box := OutboxOf(dir)
	if err := errors.Join(os.WriteFile(box, nil, 0o644), os.Truncate(box, 1<<40)); err != nil {
		t.Fatal(err)
	}
	_, err := openOutbox(dir, "run")
	if !errors.Is(err, bounded.ErrTooLarge) || !strings.Contains(err.Error(), box) ||
		!strings.Contains(err.Error(), "remove it") {
		t.Errorf("an outbox of 1 TiB: %v", err)
	}
}

func TestKeys(t *testing.T) {
	var k keys
	for _, id := range []int64{5, 1, 3, 2, 9, 4, 1, 7, 8} {
		k.add(opKey(id))
	}
	k.add("run/start")
	b, err := json.Marshal(&k)
	if want := `{"ops":"1-5,7-9","others":["run/start"]}`; err != nil || string(b) != want {
		t.Errorf("%s, %v", b, err)
	}
	var read keys
	if err := json.Unmarshal(b, &read); err != nil {
		t.Fatal(err)
	}
	for id := range int64(12) {
		if k.has(opKey(id)) != read.has(opKey(id)) || k.has(opKey(id)) != (id >= 1 && id <= 9 && id != 6) {
			t.Errorf("%d: %v, %v", id, k.has(opKey(id)), read.has(opKey(id)))
		}
	}
	if k.n != 9 || read.n != 9 {
		t.Errorf("%d and %d keys", k.n, read.n)
	}
}

func FuzzKeys(f *testing.F) {
	for _, seed := range []string{`{"ops":"1-5,7","others":["run/end"]}`, `{"ops":"5-1"}`, `{"ops":"1,1"}`,
		`{"ops":"-3"}`, `{}`, `[]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var k, again keys
		if json.Unmarshal(b, &k) != nil {
			return
		}
		text, err := json.Marshal(&k)
		if err == nil {
			err = json.Unmarshal(text, &again)
		}
		if err == nil && again.n != k.n {
			err = fmt.Errorf("%d keys, then %d", k.n, again.n)
		}
		if err != nil {
			t.Errorf("%s: %v", b, errors.Join(err))
		}
	})
}
