package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"time"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/bundle"
)

const (
	// renderTimeout bounds rendering, and the wait for it.
	renderTimeout = 2 * time.Minute
	// maxPage bounds a page.
	maxPage = 64 << 20
)

// runPage serves the report of a run; of a run in progress the application, unless the report so far is asked for.
func (s *Server) runPage(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	dir, err := s.place(id, runFile)
	if err != nil {
		s.missing(w, r, "studies", studyFile) // it says why
		return
	}
	b, err := bundle.Look(dir)
	if err == nil && b.Live && !r.URL.Query().Has("report") {
		s.app(http.StatusOK)(w, r)
		return
	}
	s.page(w, r, "report", dir, bar{Name: cleanID(id), API: apiPath(id, "summary"), Live: err == nil && b.Live,
		History: s.historyPage(cleanID(id)), Compare: "/?select=" + template.URLQueryEscaper(cleanID(id))})
}

// studyState serves the application for the page of a study.
func (s *Server) studyState(w http.ResponseWriter, r *http.Request) {
	if _, err := s.place(r.PathValue("id"), studyFile); err != nil {
		s.missing(w, r, "runs", runFile)
		return
	}
	s.app(http.StatusOK)(w, r)
}

// missing answers a request for a run that is a study, or a study that is a run, with its other page; else with the
// application, which says that there is none.
func (s *Server) missing(w http.ResponseWriter, r *http.Request, other, file string) {
	id := cleanID(r.PathValue("id"))
	if _, err := s.place(id, file); err == nil {
		http.Redirect(w, r, link(other, id), http.StatusFound)
		return
	}
	s.app(http.StatusNotFound)(w, r)
}

// studyPage serves the report of a study.
func (s *Server) studyPage(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	dir, err := s.place(id, studyFile)
	if err != nil {
		s.app(http.StatusNotFound)(w, r)
		return
	}
	s.page(w, r, "study", dir, bar{Name: cleanID(id), Study: link("studies", cleanID(id))})
}

func cleanID(id string) string { return strings.TrimSuffix(id, "/") }

func apiPath(id, what string) string {
	return "/api/v1/runs/" + template.URLQueryEscaper(cleanID(id)) + "/" + what
}

// bar is the strip above a report.
type bar struct {
	Name, API, Compare, Study, History string
	Live                               bool
}

var barPage = template.Must(template.New("bar").Parse(
	`<div class="cnsbench-bar" role="navigation" aria-label="CNSBench">` +
		`<a class="home" href="/">CNSBench</a><a href="/">Runs</a><a href="/new">New</a><a href="/queue">Queue</a>` +
		`{{with .Study}}<a href="{{.}}">Study</a>{{end}}` +
		`<span class="place">{{.Name}}</span>{{if .Live}}<a href="?">Live</a>{{end}}` +
		`{{with .History}}<a href="{{.}}">History</a>{{end}}` +
		`{{with .Compare}}<a href="{{.}}">Compare with …</a>{{end}}{{with .API}}<a href="{{.}}">JSON</a>{{end}}</div>`))

// page renders a page and serves it with the bar.
func (s *Server) page(w http.ResponseWriter, r *http.Request, what, dir string, b bar) {
	text, err := s.render(r.Context(), what, dir)
	var policy string
	if err == nil {
		text, policy, err = framed(text, b)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err != nil {
		s.unreadable(w, b, what, dir, err)
		return
	}
	w.Header().Set("Content-Security-Policy", policy)
	_, _ = w.Write(text) // the reader may be gone
}

// unreadablePage is served where a report cannot be made.
var unreadablePage = template.Must(template.Must(barPage.Clone()).New("unreadable").Parse(
	`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" ` +
		`content="width=device-width, initial-scale=1"><title>{{.Bar.Name}} · CNSBench</title>` +
		`<link rel="stylesheet" href="/assets/index.css"><link rel="stylesheet" href="/assets/bar.css"></head><body>` +
		`{{template "bar" .Bar}}<main><div class="message bad" role="alert"><strong>There is no report: {{.What}} ` +
		`cannot be read</strong> {{.Error}}</div>{{with .Command}}<p>What is damaged: <code>{{.}}</code></p>{{end}}` +
		`<p><a href="/">All runs</a></p></main></body></html>`))

// unreadable says why there is no page, and what to do.
func (s *Server) unreadable(w http.ResponseWriter, b bar, what, dir string, err error) {
	v := struct {
		Bar                  bar
		What, Error, Command string
	}{b, "this bundle", bounded.Text(err.Error(), 2000), ""}
	if v.Bar.Name, v.Bar.API = bounded.Text(b.Name, 200), ""; what == "study" {
		v.What = "this study"
	} else if !b.Live {
		v.Command = "cnsbench verify " + quoted(dir)
	}
	w.WriteHeader(http.StatusInternalServerError)
	_ = unreadablePage.Execute(w, v) // the reader may be gone
}

// quoted is a word of a shell.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// render renders a bundle or a study, after those before it.
func (s *Server) render(ctx context.Context, what, dir string) ([]byte, error) {
	ctx, done, err := s.turn(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	out := limited{most: maxPage}
	err = s.Render(ctx, what, dir, &out)
	return out.Bytes(), err
}

// turn waits until one more request that takes memory and time may begin; the caller calls done at its end.
func (s *Server) turn(ctx context.Context) (_ context.Context, done func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, renderTimeout)
	select {
	case s.heavy <- struct{}{}:
		return ctx, func() { <-s.heavy; cancel() }, nil
	case <-ctx.Done():
		cancel()
		return nil, nil, ctx.Err()
	}
}

// limited is a buffer of limited size.
type limited struct {
	bytes.Buffer
	most int
}

func (l *limited) Write(b []byte) (int, error) {
	if l.Len()+len(b) > l.most {
		return 0, fmt.Errorf("the page is longer than %d bytes", l.most)
	}
	return l.Buffer.Write(b)
}

// policyTag is the Content-Security-Policy in the head of a report, before all that is from a bundle.
var policyTag = regexp.MustCompile(`<meta http-equiv="Content-Security-Policy" content="([^"]*)">`)

// framed adds the bar to a report and returns the report's policy, which allows in addition the file with the style of
// the bar. The policy becomes a header: in the page it would refuse that file.
func framed(page []byte, b bar) (_ []byte, policy string, err error) {
	head := page[:min(len(page), 4<<10)]
	tag := policyTag.FindSubmatchIndex(head)
	body := bytes.Index(page, []byte("<body>"))
	if tag == nil || body < tag[1] {
		return nil, "", errors.New("the report has no policy in its head, or no body")
	}
	policy = html.UnescapeString(string(page[tag[2]:tag[3]]))
	if !strings.Contains(policy, "style-src ") {
		return nil, "", fmt.Errorf("the report has a policy without style-src: %s", bounded.Text(policy, 200))
	}
	policy = strings.Replace(policy, "style-src ", "style-src 'self' ", 1) + "; " + framePolicy
	var out bytes.Buffer
	out.Write(page[:tag[0]])
	out.WriteString(`<link rel="stylesheet" href="/assets/bar.css">`)
	out.Write(page[tag[1] : body+len("<body>")])
	b.Name = bounded.Text(b.Name, 200)
	if err := barPage.Execute(&out, b); err != nil {
		return nil, "", err
	}
	out.Write(page[body+len("<body>"):])
	return out.Bytes(), policy, nil
}
