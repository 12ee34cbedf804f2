package promquery_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/promquery"
)

// vector is an answer with one series for each value.
func vector(values ...string) string {
	var list []string
	for i, v := range values {
		list = append(list, fmt.Sprintf(`{"metric":{"__name__":"m","i":"%02d"},"value":[1700000000,"%s"]}`, i, v))
	}
	return `{"status":"success","data":{"resultType":"vector","result":[` + strings.Join(list, ",") + `]}}`
}

// first polls one query until n readings are there, and returns these. Instants that were missed are left out: requests
// may take longer than the interval where the machine is busy.
func first(t *testing.T, n int, c promquery.Config, expr string) (list []op.QueryReading) {
	t.Helper()
	c.Queries = []promquery.Query{{Name: "q", Expr: expr}}
	p, err := promquery.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	p.Poll(ctx, op.NewClock(), func(r op.QueryReading) {
		if r.Problem == op.QueryMissed {
			return
		}
		if list = append(list, r); len(list) == n {
			cancel()
		}
	})
	if len(list) < n {
		t.Fatalf("%d readings, want %d", len(list), n)
	}
	return list[:n]
}

// TestAnswers: each answer of a server has its class.
func TestAnswers(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	answers := map[string]http.HandlerFunc{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answers[r.FormValue("query")](w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(hang) }) // before Close, which waits for handlers
	says := func(status int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
		}
	}
	value := func(series int, v float64, labels map[string]string) op.QueryValue {
		return op.QueryValue{Series: series, Value: v, Labels: labels}
	}
	tests := []struct {
		name   string
		answer http.HandlerFunc
		want   op.QueryReading
	}{
		{"vector", says(200, vector("1.5", "-2")), op.QueryReading{Values: []op.QueryValue{
			value(0, 1.5, map[string]string{"__name__": "m", "i": "00"}),
			value(1, -2, map[string]string{"__name__": "m", "i": "01"})}}},
		{"scalar", says(200, `{"status":"success","data":{"resultType":"scalar","result":[1,"7"]}}`),
			op.QueryReading{Values: []op.QueryValue{value(0, 7, map[string]string{})}}},
		{"some not finite", says(200, vector("NaN", "3", "+Inf")), op.QueryReading{LeftOut: 2,
			Values: []op.QueryValue{value(0, 3, map[string]string{"__name__": "m", "i": "01"})}}},
		{"none finite", says(200, vector("NaN", "-Inf")), op.QueryReading{Problem: op.QueryNotFinite, LeftOut: 2}},
		{"no data", says(200, vector()), op.QueryReading{Problem: op.QueryNoData}},
		{"matrix", says(200, `{"status":"success","data":{"resultType":"matrix","result":[]}}`),
			op.QueryReading{Problem: op.QueryBadAnswer, Message: "the result is a matrix: want an instant vector or a scalar"}},
		{"bad query", says(400, `{"status":"error","errorType":"bad_data","error":"parse error"}`),
			op.QueryReading{Problem: op.QueryRejected, Message: "bad_data: parse error"}},
		{"no rights", says(401, "who are you"),
			op.QueryReading{Problem: op.QueryRejected, Message: "client_error: client error: 401"}},
		{"forbidden", says(403, "no"),
			op.QueryReading{Problem: op.QueryRejected, Message: "client_error: client error: 403"}},
		{"too many", says(429, "later"),
			op.QueryReading{Problem: op.QueryRejected, Message: "client_error: client error: 429"}},
		{"broken", says(500, "oops"), op.QueryReading{Problem: op.QueryFailed, Message: "server_error: server error: 500"}},
		{"unavailable", says(503, ""), op.QueryReading{Problem: op.QueryFailed, Message: "server_error: server error: 503"}},
		{"no Prometheus", says(200, "<html>"), op.QueryReading{Problem: op.QueryBadAnswer}},
		{"half an answer", says(200, vector("1")[:40]), op.QueryReading{Problem: op.QueryBadAnswer}},
		{"half a result", says(200, `{"status":"success","data":{"resultType":"vector","result":{}}}`),
			op.QueryReading{Problem: op.QueryBadAnswer}},
		{"long", says(200, strings.Repeat(" ", 5<<20)+vector("1")), op.QueryReading{Problem: op.QueryBadAnswer}},
		{"redirect", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(302)
		}, op.QueryReading{Problem: op.QueryBadAnswer, Message: "bad_response: bad response code 302"}},
		{"silent", func(http.ResponseWriter, *http.Request) { <-hang }, op.QueryReading{Problem: op.QueryTimeout}},
		{"stops midway", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, vector("1")[:30])
			w.(http.Flusher).Flush()
			<-hang
		}, op.QueryReading{Problem: op.QueryTimeout}},
	}
	for _, tt := range tests {
		answers[tt.name] = tt.answer
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			limit := 15 * time.Second
			if tt.want.Problem == op.QueryTimeout {
				limit = 100 * time.Millisecond
			}
			got := first(t, 1, promquery.Config{URL: server.URL, Interval: time.Hour, Timeout: limit}, tt.name)[0]
			if got.Query != "q" || got.WithinNanos <= 0 || int64(got.At) < got.WithinNanos {
				t.Errorf("got %+v", got)
			}
			got.Query, got.At, got.WithinNanos = "", 0, 0
			if tt.want.Message == "" {
				got.Message = ""
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestLabelsOnce: labels are in the first reading of a series only, and a query keeps a limited number of series.
func TestLabelsOnce(t *testing.T) {
	t.Parallel()
	values := make([]string, promquery.MaxSeries+3)
	for i := range values {
		values[i] = "1"
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, vector(values...))
	}))
	t.Cleanup(server.Close)
	list := first(t, 2, promquery.Config{URL: server.URL, Interval: 20 * time.Millisecond}, "m")
	for n, r := range list {
		if len(r.Values) != promquery.MaxSeries || r.LeftOut != 3 {
			t.Fatalf("%d values, %d left out", len(r.Values), r.LeftOut)
		}
		for i, v := range r.Values {
			if v.Series != i || (len(v.Labels) == 2) != (n == 0) {
				t.Errorf("reading %d: %+v", n, v)
			}
		}
	}
}

// TestDown: a server that is not there has a reading each interval.
func TestDown(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(nil)
	server.Close()
	for _, r := range first(t, 3, promquery.Config{URL: server.URL, Interval: 10 * time.Millisecond}, "m") {
		if r.Problem != op.QueryUnreachable || !strings.Contains(r.Message, "refused") {
			t.Errorf("got %+v", r)
		}
	}
}

// TestMissed: instants that pass during a request are missed, and each is a reading; no other query waits.
func TestMissed(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("query") == "slow" {
			<-release
		}
		_, _ = io.WriteString(w, vector("1"))
	}))
	t.Cleanup(server.Close)
	p, err := promquery.New(promquery.Config{URL: server.URL, Interval: 20 * time.Millisecond,
		Queries: []promquery.Query{{Name: "slow", Expr: "slow"}, {Name: "quick", Expr: "quick"}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var slow, quick []op.QueryReading
	p.Poll(ctx, op.NewClock(), func(r op.QueryReading) {
		if r.Query == "quick" {
			if quick = append(quick, r); len(quick) == 10 {
				close(release)
			}
			return
		}
		if slow = append(slow, r); r.Problem == "" && len(slow) > 1 {
			cancel()
		}
	})
	if len(slow) < 6 || slow[0].Problem != "" {
		t.Fatalf("slow: %+v", slow)
	}
	for i, r := range slow[1 : len(slow)-1] {
		if r.Problem != op.QueryMissed || i > 0 && r.At-slow[i].At != op.Time(20*time.Millisecond) {
			t.Errorf("slow %d: %+v", i+1, r)
		}
	}
}

// TestCredentials: each request has the credentials, which no message shows.
func TestCredentials(t *testing.T) {
	t.Parallel()
	got := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case got <- r.Method + " " + r.Header.Get("Authorization") + " " + r.URL.RequestURI():
		default:
		}
		_, _ = io.WriteString(w, vector("1"))
	}))
	t.Cleanup(server.Close)
	c := promquery.Config{URL: server.URL + "/p", Authorization: "Bearer x", RawQuery: "key=hidden", Interval: time.Hour}
	first(t, 1, c, "m")
	if want, got := "POST Bearer x /p/api/v1/query?key=hidden", <-got; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	c.URL = "http://127.0.0.1:1"
	if r := first(t, 1, c, "m")[0]; r.Problem != op.QueryUnreachable || strings.Contains(r.Message, "hidden") {
		t.Errorf("got %+v", r)
	}
}

// FuzzAnswer: whatever a server answers is a reading, and its values are finite.
func FuzzAnswer(f *testing.F) {
	f.Add(200, []byte(vector("1", "NaN")))
	f.Add(400, []byte(`{"status":"error","errorType":"bad_data","error":"x"}`))
	f.Add(200, []byte(`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"histogram":[1,{}]}]}}`))
	f.Add(200, []byte(`{"status":"success","data":{"resultType":"string","result":[1,"x"]}}`))
	f.Fuzz(func(t *testing.T, status int, text []byte) {
		if status < 200 || status > 599 {
			return
		}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write(text)
		}))
		defer server.Close()
		r := first(t, 1, promquery.Config{URL: server.URL, Interval: time.Hour}, "m")[0]
		if (r.Problem == "") != (len(r.Values) > 0) {
			t.Errorf("%+v", r)
		}
		for _, v := range r.Values {
			if v.Value-v.Value != 0 {
				t.Errorf("%v is not finite", v.Value)
			}
		}
	})
}
