package html_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	xhtml "golang.org/x/net/html"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/report/html"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

var keep = flag.String("keep", "", "directory to keep the pages in, to look at them")

// write returns the page of a bundle without its script, after a check of that.
func write(t *testing.T, name string, b *bundle.Bundle) string {
	t.Helper()
	s, err := summary.Make(b)
	if err != nil {
		t.Fatal(err)
	}
	return writeSummary(t, name, b, s)
}

func writeSummary(t *testing.T, name string, b *bundle.Bundle, s *summary.Summary) string {
	t.Helper()
	var page bytes.Buffer
	if err := html.Write(&page, b, s); err != nil {
		t.Fatal(err)
	}
	if *keep != "" {
		if err := os.WriteFile(filepath.Join(*keep, name+".html"), page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return strings.ReplaceAll(blanks.ReplaceAllString(withoutScript(t, page.String()), " "), "> <", "><")
}

// blanks are the same to a reader, wherever the template breaks its lines.
var blanks = regexp.MustCompile(`\s+`)

// withoutScript removes the script of a page. It fails unless there is one, whose hash the page's policy names.
func withoutScript(t testing.TB, page string) string {
	t.Helper()
	before, rest, found := strings.Cut(page, "<script>")
	script, after, closed := strings.Cut(rest, "</script>")
	if !found || !closed {
		t.Fatal("the page has no script")
	}
	if want := sha256.Sum256([]byte(script)); policyOf(page) != "default-src 'none'; style-src 'unsafe-inline'; "+
		"script-src 'sha256-"+base64.StdEncoding.EncodeToString(want[:])+"'" {
		t.Errorf("the policy is %q", policyOf(page))
	}
	return before + after
}

// policyOf returns the Content-Security-Policy in a page.
func policyOf(page string) string {
	z := xhtml.NewTokenizer(strings.NewReader(page))
	for z.Next() != xhtml.ErrorToken {
		tok := z.Token()
		if slices.Contains(tok.Attr, xhtml.Attribute{Key: "http-equiv", Val: "Content-Security-Policy"}) {
			return tok.Attr[1].Val
		}
	}
	return ""
}

// unlinked is a page without the links of terms, so that its sentences are whole.
func unlinked(page string) string {
	return regexp.MustCompile(`<a class="term"[^>]*>([^<]*)</a>`).ReplaceAllString(page, "$1")
}

// TestWrite: every sort of bundle gives a whole page that says what matters
// and refers to nothing outside.
func TestWrite(t *testing.T) {
	demo, _ := analysistest.Demo(t)
	live := analysistest.Killed(t)
	live.Live = true
	tests := []struct {
		name    string
		bundle  *bundle.Bundle
		says    []string
		saysNot []string
	}{
		{"demo", demo, []string{"37 stalls of I/O", "snapshots/7", "CreateSnapshot", "p99 from 299",
			"ResourceExhausted", "<svg", "no data", "fio-1-data", "droppedOps",
			`<section id="logs">`, "alive at "}, []string{"not complete"}},
		{"empty", analysistest.Empty(t), []string{"No operation was recorded", "The run had none",
			"There is nothing to draw"}, []string{"not complete"}},
		{"killed", analysistest.Killed(t), []string{"This run is not complete", "the run was killed", "Not recorded",
			`>incomplete</span>`, "<title>synthetic (incomplete) ·", "cnsbench cleanup /",
			`snapshots<span class="sub">snapshot, rate often</span><span class="sub">no op: the bundle was never closed`},
			[]string{"<h3>snapshots</h3>"}},
		{"live", live, []string{"This run is not complete", "in progress", `>running</span>`},
			[]string{`>incomplete</span>`, "(incomplete)", "cnsbench cleanup"}},
		{"objects", analysistest.Objects(t), []string{"<h3>main</h3>", ">3 errors<", "cnsbench object run"},
			[]string{"not complete", "<h2>Operations</h2>", "<h2>Interference</h2>"}},
		{"objects, cut off", analysistest.CutOff(t),
			[]string{`<h3>main.one <span class="tag doubtful">incomplete</span>`, ">30 errors<",
				"<h3>prepare</h3>"}, nil},
		{"hostile", analysistest.Hostile(t), []string{"&lt;script", `\x1b[2J\x07\u202e\ufffd password=***`},
			[]string{"<script", "<img", "\x1b", "\a", "\u202e", "hunter2"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			page := write(t, tt.name, tt.bundle)
			text := unlinked(page)
			for _, want := range tt.says {
				if !strings.Contains(text, want) {
					t.Errorf("the page does not say %q", want)
				}
			}
			for _, bad := range append(tt.saysNot, "ZgotmplZ", "%!", "&lt;nil&gt;", "NaN", "-9223372036854775808") {
				if strings.Contains(page, bad) {
					t.Errorf("the page has %q", bad)
				}
			}
			selfContained(t, page)
		})
	}
}

// TestOpLogs checks that a failed op links to its log lines, which are folded and only of its window.
func TestOpLogs(t *testing.T) {
	demo, _ := analysistest.Demo(t)
	page := write(t, "logs", demo)
	link := regexp.MustCompile(`<a href="#(op-\d+)">op \d+</a>`).FindStringSubmatch(page)
	if link == nil {
		t.Fatal("no failure has a link to its log lines")
	}
	_, rest, found := strings.Cut(page, `<div id="`+link[1]+`" class="entry">`)
	if !found {
		t.Fatalf("%s is linked and not there", link[1])
	}
	lines, _, _ := strings.Cut(rest, "</details>")
	if n := strings.Count(lines, "alive at "); n < 8 || n > 12 { // 2 s and the op, four a second
		t.Errorf("%d lines of its window:\n%s", n, lines)
	}
}

// TestReproduce: the command has the flags that shaped the run, for a shell.
func TestReproduce(t *testing.T) {
	tests := []struct {
		name, plan string
		says       []string
	}{
		{"as given", `{"args":["--set","spec.runtime=3s","--set","a=it's $HOME","--inject","x.yaml"],"inject":"kind: <b>Fault"}`,
			[]string{`<pre>cnsbench run synthetic.yaml --set spec.runtime=3s --set &#39;a=it&#39;\&#39;&#39;s $HOME&#39; --inject x.yaml</pre>`, "<pre>kind: &lt;b&gt;Fault</pre>"}},
		{"unknown", `{}`, []string{`<pre>cnsbench run synthetic.yaml --engine local</pre>`}},
		{"no plan", ``, []string{`<pre>cnsbench run synthetic.yaml --engine local</pre>`, "<code>cnsbench verify BUNDLE</code>"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := analysistest.Empty(t)
			b.Run.Plan = []byte(tt.plan)
			page := write(t, "reproduce", b)
			for _, want := range tt.says {
				if !strings.Contains(page, want) {
					t.Errorf("the page does not say %q", want)
				}
			}
		})
	}
}

// The page says which files the rates replayed.
func TestReplayed(t *testing.T) {
	b := analysistest.Empty(t)
	b.Run.Source.Traces = []bundle.Trace{{Rate: "churn", File: "<b>/a.csv.gz", SHA256: "0123abcd", Records: 4711}}
	page := write(t, "replayed", b)
	want := `<td class="name">churn</td><td>&lt;b&gt;/a.csv.gz</td><td class="n">4711</td><td class="wide"><code>0123abcd</code></td>`
	if !strings.Contains(page, want) {
		t.Errorf("the page does not say %q", want)
	}
	if strings.Contains(write(t, "not replayed", analysistest.Empty(t)), "SHA-256") {
		t.Error("a page speaks of traces where there are none")
	}
}

// selfContained fails on anything that a browser would fetch or run.
func selfContained(t testing.TB, page string) {
	t.Helper()
	forbidden := []string{"script", "link", "img", "image", "use", "iframe", "object", "embed", "base", "form", "audio",
		"video", "source", "foreignobject"}
	refers := []string{"src", "href", "srcset", "data", "action", "poster", "background", "xlink:href", "formaction",
		"ping"}
	z := xhtml.NewTokenizer(strings.NewReader(page))
	var tags []string
	for {
		switch z.Next() {
		case xhtml.ErrorToken:
			if !slices.Contains(tags, "html") {
				t.Error("this is no page")
			}
			return
		case xhtml.StartTagToken, xhtml.SelfClosingTagToken:
			tok := z.Token()
			tags = append(tags, tok.Data)
			if slices.Contains(forbidden, tok.Data) {
				t.Errorf("element %s", tok)
			}
			for _, a := range tok.Attr {
				outside := slices.Contains(refers, a.Key) && !strings.HasPrefix(a.Val, "#")
				if outside || strings.HasPrefix(a.Key, "on") || a.Key == "style" && strings.Contains(a.Val, "url") {
					t.Errorf("%s refers outside", tok)
				}
			}
		case xhtml.TextToken:
			if len(tags) > 0 && tags[len(tags)-1] == "style" &&
				regexp.MustCompile(`(?i)url\(|@import|expression\(`).Match(z.Text()) {
				t.Error("the style refers outside")
			}
		}
	}
}

func TestSelfContainedCanFail(t *testing.T) {
	for _, bad := range []string{`<img src="x.png">`, `<a href="http://x">`, `<p onclick="x()">`,
		`<style>a{background:url(x)}</style>`} {
		probe := &probe{TB: t}
		selfContained(probe, "<html>"+bad+"</html>")
		if !probe.failed {
			t.Errorf("%s was not seen", bad)
		}
	}
}

// probe notes that a check failed.
type probe struct {
	testing.TB
	failed bool
}

func (p *probe) Errorf(string, ...any) { p.failed = true }
func (p *probe) Error(...any)          { p.failed = true }

// TestSameBytes checks that a page depends on the bundle alone: not on the time, the directory or the time zone.
func TestSameBytes(t *testing.T) {
	b, _ := analysistest.Demo(t)
	at(t, b.Dir, "+09:00")
	b, err := bundle.Open(b.Dir)
	if err != nil {
		t.Fatal(err)
	}
	want := write(t, "first", b)
	copied := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.CopyFS(copied, os.DirFS(b.Dir)); err != nil {
		t.Fatal(err)
	}
	zone := time.Local
	t.Cleanup(func() { time.Local = zone })
	for name, place := range map[string]*time.Location{"again": zone, "east": time.FixedZone("EAST", 9*3600),
		"the zone of the run": time.FixedZone("RUN", 0)} {
		time.Local = place
		again, err := bundle.Open(copied)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(write(t, name, again), "\n")); diff != "" {
			t.Errorf("%s: the page differs:\n%s", name, diff)
		}
	}
}

// at moves the start of a run into a time zone.
func at(t *testing.T, dir, zone string) {
	t.Helper()
	path := filepath.Join(dir, "run.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	moved := regexp.MustCompile(`("start": "[^"]*)Z"`).ReplaceAll(text, []byte("${1}"+zone+`"`))
	if bytes.Equal(moved, text) {
		t.Fatal("run.json has no start in UTC")
	}
	if err := os.WriteFile(path, moved, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestAnalysisVersion checks that a page names its analysis, and says if the run was judged by another.
func TestAnalysisVersion(t *testing.T) {
	b := analysistest.Empty(t)
	page := write(t, "version", b)
	if !strings.Contains(page, fmt.Sprintf("version %d of the analysis</footer>", summary.AnalysisVersion)) ||
		strings.Contains(page, "judged by version") {
		t.Error("the page does not name its analysis, or warns of another")
	}
	b.Run.Versions = map[string]string{"cnsbench": "v9", summary.AnalysisKey: "99"}
	if page = write(t, "another", b); !strings.Contains(page, "judged by version 99 of the analysis (cnsbench v9)") {
		t.Error("the page does not say that another version of the analysis judged the run")
	}
}

// TestValues: the metrics of a tool that are no latencies have a table, with a row for each instance where there are
// several.
func TestValues(t *testing.T) {
	b, _ := analysistest.Demo(t)
	s, err := summary.Make(b)
	if err != nil {
		t.Fatal(err)
	}
	w := &s.Workloads[0]
	w.Values = []dataset.Figure{{Metric: "tps", Unit: "1/s", Traits: metric.Traits{Kind: metric.Rate, Better: metric.Higher},
		Value: 150, Instances: len(w.Instances), Min: 40, Max: 60}}
	for i := range w.Instances {
		w.Instances[i].Values = []dataset.Figure{{Metric: "tps", Unit: "1/s", Value: 50, Instances: 1}}
	}
	page := writeSummary(t, "values", b, s)
	if n := strings.Count(page, "<td>tps</td>"); n != 1+len(w.Instances) ||
		!strings.Contains(page, `<td class="n">150/s</td><td>rate</td><td>higher</td>`) {
		t.Errorf("%d rows of TPS", n)
	}
}
