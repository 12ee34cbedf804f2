package glossary

import (
	"slices"
	"strings"
	"testing"
)

// TestWords checks that each term that is explained has an entry, with a plain text and an anchor of its own.
func TestWords(t *testing.T) {
	ids := map[string]string{}
	entries := Entries()
	for term := range words {
		i := slices.IndexFunc(entries, func(e Entry) bool { return e.Term == term })
		if i < 0 {
			t.Errorf("docs/glossary.md has no %s", term)
			continue
		}
		if e := entries[i]; len(e.Text) < 20 || strings.ContainsAny(e.Text, "[]`*|<>") {
			t.Errorf("%s: %q", term, e.Text)
		}
		if other := ids[entries[i].ID()]; other != "" {
			t.Errorf("%s and %s have one anchor", term, other)
		}
		ids[entries[i].ID()] = term
	}
	if len(entries) < 60 {
		t.Errorf("%d entries", len(entries))
	}
}

// TestMark checks that the first mention in a section is linked, whole words only, and that no text is lost.
func TestMark(t *testing.T) {
	m := NewMarker()
	first := m.Mark("a stall, two stalls, the canary&#39;s and max-stall")
	if strings.Count(first, "<a ") != 1 || !strings.HasPrefix(first, `a <a class="term" href="#term-stall" title="`) ||
		!strings.HasSuffix(first, `>stall</a>, two stalls, the canary&#39;s and max-stall`) {
		t.Error(first)
	}
	if got := m.Mark("one stall"); got != "one stall" {
		t.Error(got)
	}
	m.Section()
	if got := m.Mark("one stall"); !strings.Contains(got, "#term-stall") {
		t.Error(got)
	}
	got := m.Mark("response time p99 response")
	if strings.Count(got, "<a ") != 2 || !strings.HasSuffix(got, "</a> response") {
		t.Error(got)
	}
	if u := m.Used(); len(u) != 3 || u[0].Term != "quantile" {
		t.Errorf("%v", u)
	}
	if strings.Contains(m.Mark("<script"), "<a") {
		t.Error("marked markup")
	}
}
