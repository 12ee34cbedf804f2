package web

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/analysis/reproduction"
	"github.com/cnsbench/cnsbench/internal/bundle/server"
)

const hostile = `<img src=x onerror=alert(1)>"&'%2F ` + "\u202e"

// addRun copies the kept bundle as another run, which began so many days after it.
func addRun(t *testing.T, dir, name string, day int) {
	t.Helper()
	copyDir(t, kept+"/bundle", dir)
	file := filepath.Join(dir, runFile)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var run map[string]any
	if err := json.Unmarshal(text, &run); err != nil {
		t.Fatal(err)
	}
	run["name"], run["runID"] = name, fmt.Sprintf("%08d", day)
	run["clock"].(map[string]any)["start"] = time.Date(2026, 11, 1+day, 0, 0, 0, 0, time.UTC)
	if text, err = json.Marshal(run); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// historyDir has four runs of one Benchmark, one of them in a folder and one copied, one with a link out of the
// directory, and two of another Benchmark.
func historyDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for i, id := range []string{"z", "m", "deep/a", "deep/a=b"} {
		addRun(t, filepath.Join(dir, id), hostile, i)
	}
	copyDir(t, filepath.Join(dir, "m"), filepath.Join(dir, "copy"))
	addRun(t, filepath.Join(dir, "linked"), hostile, 9)
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "linked", "raw", "x")); err != nil {
		t.Fatal(err)
	}
	addRun(t, filepath.Join(dir, "other1"), "other", 20)
	addRun(t, filepath.Join(dir, "other2"), "other", 21)
	copyDir(t, kept+"/study", filepath.Join(dir, "deep", "study"))
	return dir
}

// fakeHistory answers with the runs that it was given, or that are in the folder.
func fakeHistory(_ context.Context, dir string, runs []Labelled) (*Answer, error) {
	r := &compare.Result{History: []compare.History{{Metric: "one"}, {Metric: "two"}}}
	if dir != "" {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			runs = append(runs, Labelled{Label: e.Name()})
		}
	}
	for _, x := range runs {
		r.Levels = append(r.Levels, x.Label)
	}
	value := "64k"
	return &Answer{Result: r, Objectives: []string{"two"}, Changed: map[string][]reproduction.Difference{
		r.Levels[0]: {{Fact: "load.bs", Group: reproduction.Request, Now: &value}}}}, nil
}

// historyServer serves a directory; ask sends a request to it, with headers NAME, VALUE.
func historyServer(t *testing.T, dir string) (ask func(path string, headers ...string) (int, string)) {
	t.Helper()
	s, err := New(t.Context(), Options{Dir: dir, Render: render, History: fakeHistory})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(server.Guard(s.Handler(), nil))
	t.Cleanup(func() {
		web.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(path string, headers ...string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, web.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
			if headers[i] == "Host" {
				r.Host = headers[i+1]
			}
		}
		answer, err := web.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		if kind := answer.Header.Get("Content-Type"); strings.HasPrefix(path, "/api/") && strings.Contains(kind, "html") {
			t.Errorf("GET %s: content type %s", path, kind)
		}
		return answer.StatusCode, string(text)
	}
}

// TestHistorySeries: the runs of a Benchmark are in order of their start, those that were chosen too, and those of a
// folder by their names; copies and what is refused are left out, and the notes say so.
func TestHistorySeries(t *testing.T) {
	t.Parallel()
	ask := historyServer(t, historyDir(t))
	for _, tt := range []struct {
		query string
		ids   []string
		kinds string
		notes []string
		order string
	}{
		{"name=" + url.QueryEscape(hostile), []string{"z", "copy", "deep/a", "deep/a=b"}, "bundle",
			[]string{"copies of other runs (the same run ID and start) are left out: 1", "linked is left out: "}, "start"},
		{"name=other", []string{"other1", "other2"}, "bundle", nil, "start"},
		{"run=other2&run=z&run=deep/a%3Db/", []string{"z", "deep/a=b", "other2"}, "bundle", nil, "start"},
		{"folder=deep", []string{"deep/a", "deep/a=b", "deep/study"}, "bundle bundle study", nil, "name"},
	} {
		status, text := ask("/api/v1/history?" + tt.query)
		var s Series
		if err := json.Unmarshal([]byte(text), &s); err != nil || status != 200 {
			t.Fatalf("%s: %d %.300s, %v", tt.query, status, text, err)
		}
		var ids, kinds []string
		for _, r := range s.Runs {
			ids, kinds = append(ids, r.ID), append(kinds, r.Kind)
		}
		if tt.kinds == "bundle" {
			kinds = slices.Compact(kinds)
		}
		if !slices.Equal(ids, tt.ids) || strings.Join(kinds, " ") != tt.kinds || s.Order != tt.order {
			t.Errorf("%s: %q %v by %s", tt.query, ids, kinds, s.Order)
		}
		if len(s.Notes) != len(tt.notes) {
			t.Errorf("%s: notes %q", tt.query, s.Notes)
		}
		for i, want := range tt.notes {
			if !strings.Contains(s.Notes[i], want) {
				t.Errorf("%s: note %q, want %q", tt.query, s.Notes[i], want)
			}
		}
		if len(s.Runs[0].Changed) != 1 || len(s.Runs[1].Changed) != 0 || !slices.Equal(s.Objectives, []string{"two"}) {
			t.Errorf("%s: %+v", tt.query, s)
		}
	}
	_, text := ask("/api/v1/history?name=other&metric=two")
	var s Series
	if err := json.Unmarshal([]byte(text), &s); err != nil || len(s.Result.History) != 1 ||
		s.Result.History[0].Metric != "two" {
		t.Errorf("metric=two: %+v, %v", s.Result, err)
	}
}

// TestHistoryRefused: requests without sense, paths out of the directory, and requests from elsewhere.
func TestHistoryRefused(t *testing.T) {
	t.Parallel()
	ask := historyServer(t, historyDir(t))
	many := strings.Repeat("&run=z", maxHistory+1)
	for _, tt := range []struct {
		query  string
		status int
		says   string
	}{
		{"", 400, "want one of name, folder, and 1 to 200 times run"},
		{"name=other&folder=deep", 400, "want one of"},
		{"x=1" + many, 400, "want one of"},
		{"name=nothing", 404, "no run of a Benchmark with the name"},
		{"name=" + url.QueryEscape("<script>"), 404, `no run of a Benchmark with the name \"<script>\"`},
		{"run=none", 404, "there is no run none"},
		{"run=..%2F..%2Fetc", 404, "there is no run"},
		{"run=deep/study", 404, "there is no run"},
		{"run=linked", 500, "refused"},
		{"folder=..%2Fetc", 404, "there is no folder"},
		{"folder=%2Fetc", 404, "there is no folder"},
		{"folder=none", 404, "there is no folder"},
		{"folder=z/run.json", 404, "there is no folder"},
		{"folder=_", 500, "refused"}, // linked is in it
	} {
		if status, text := ask("/api/v1/history?" + tt.query); status != tt.status || !strings.Contains(text, tt.says) {
			t.Errorf("%s: %d %.300s, want %d %s", tt.query, status, text, tt.status, tt.says)
		}
	}
	for _, header := range [][]string{{"Host", "evil.example"}, {"Origin", "http://evil.example"}} {
		for _, path := range []string{"/api/v1/history?name=other", "/history?name=other"} {
			if status, _ := ask(path, header...); status != 403 {
				t.Errorf("%s with %s: %d, want 403", path, header, status)
			}
		}
	}
}

// TestHistoryLinks: runs of a Benchmark with three or more link to its history, also from the strip of a report.
func TestHistoryLinks(t *testing.T) {
	t.Parallel()
	ask := historyServer(t, historyDir(t))
	_, text := ask("/api/v1/runs")
	var list List
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	for _, r := range list.Entries {
		if want := map[bool]int{true: 5}[r.Name == hostile]; r.History != want {
			t.Errorf("%s: a history of %d runs, want %d", r.ID, r.History, want)
		}
	}
	link := `href="/history?name=` + strings.ReplaceAll(url.QueryEscape(hostile), "+", "&#43;") + `"`
	if _, text := ask("/runs/deep/a%3Db/"); !strings.Contains(text, link) || strings.Contains(text, "<img src=x") {
		t.Errorf("no %s in the report", link)
	}
	if _, text := ask("/runs/other1/"); strings.Contains(text, "/history?") {
		t.Error("a report of one of two runs links to a history")
	}
	if status, text := ask("/history?name=other"); status != 200 || !strings.Contains(text, `<div id="app">`) {
		t.Errorf("%d %.200s", status, text)
	}
}
