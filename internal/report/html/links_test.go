package html_test

import (
	"strings"
	"testing"

	xhtml "golang.org/x/net/html"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

// TestLinks checks that each link of a page leads to an element of it, that no two elements have one id, and that a
// stall leads to its operation, that to its bar, and the bar back.
func TestLinks(t *testing.T) {
	demo, _ := analysistest.Demo(t)
	for name, b := range map[string]*bundle.Bundle{"demo": demo, "killed": analysistest.Killed(t),
		"hostile": analysistest.Hostile(t), "objects": analysistest.Objects(t)} {
		page := write(t, "links "+name, b)
		ids, links := idsAndLinks(page)
		for id, n := range ids {
			if n > 1 {
				t.Errorf("%s: %d elements are %q", name, n, id)
			}
		}
		for _, to := range links {
			if ids[to] == 0 {
				t.Errorf("%s: nothing is %q", name, to)
			}
		}
	}
	page := write(t, "linked", demo)
	for _, want := range []string{`<tr id="stall-`, `<a href="#shade-`, `id="shade-`, `<a href="#op-`, `class="entry"`,
		`<a href="#bar-`, `id="bar-`, `data-op="`, `data-instance="`, `data-from="`, `data-to="`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
}

func idsAndLinks(page string) (ids map[string]int, links []string) {
	ids = map[string]int{}
	z := xhtml.NewTokenizer(strings.NewReader(page))
	for kind := z.Next(); kind != xhtml.ErrorToken; kind = z.Next() {
		for _, a := range z.Token().Attr {
			if a.Key == "id" {
				ids[a.Val]++
			}
			if to, ok := strings.CutPrefix(a.Val, "#"); a.Key == "href" && ok {
				links = append(links, to)
			}
		}
	}
	return ids, links
}

// TestTerms checks that a term is explained where it is first used, and that the list at the end has the used ones
// only.
func TestTerms(t *testing.T) {
	demo, _ := analysistest.Demo(t)
	page := write(t, "terms", demo)
	for _, want := range []string{`href="#term-stall" title="A time in which I/O was pending`,
		`<dt id="term-stall">stall</dt>`,
		`<dt id="term-canary">`, `<dt id="term-censored">`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	if strings.Contains(page, `<dt id="term-knee">`) {
		t.Error("the page explains a term that it does not use")
	}
}
