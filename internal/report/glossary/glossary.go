// Package glossary explains the terms of a page: it links their first mention in each section to docs/glossary.md's
// sentence.
package glossary

import (
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/docs"
)

// words are the words of a page that are explained, in lower case, by the term of the glossary.
var words = map[string][]string{
	"achieved rate":         {"achieved"},
	"attribution":           {"attribution", "of the time"},
	"backlog":               {"backlog"},
	"barrier":               {"barrier"},
	"bootstrap":             {"moving-block bootstrap", "bootstrap"},
	"canary":                {"canary", "canaryread", "canarywrite", "canaries"},
	"censored":              {"censored", "not ended", "had not ended"},
	"closed loop":           {"closed loop"},
	"compliance":            {"compliance"},
	"critical path":         {"critical path"},
	"distribution function": {"distribution function", "distribution functions"},
	"dropped":               {"dropped", "never started"},
	"episode":               {"episode", "episodes"},
	"goodput":               {"goodput"},
	"heat map":              {"heat map", "heat maps"},
	"interference":          {"interference"},
	"interval":              {"95 % interval", "95 %"},
	"knee":                  {"knee"},
	"lateness":              {"lateness"},
	"milestone":             {"milestone", "milestones"},
	"objective (SLO)":       {"objective", "objectives"},
	"offered rate":          {"offered"},
	"open loop":             {"open loop"},
	"operation (op)":        {"operation", "operations", "ops", "op"},
	"ordinary time":         {"ordinary time", "stands out", "stand out"},
	"phase":                 {"phase", "phases"},
	"provider":              {"provider"},
	"quantile":              {"quantile", "quantiles", "p50", "p90", "p99", "p99.9"},
	"recovered":             {"recovered"},
	"response time":         {"response time", "response"},
	"seed":                  {"seed"},
	"service time":          {"service time"},
	"skew":                  {"skew"},
	"span":                  {"span", "spans"},
	"stall":                 {"stall", "stalls"},
	"tenant":                {"tenant", "tenants"},
	"aggressor":             {"aggressor"},
	"trigger":               {"trigger", "triggers"},
	"validity flag":         {"validity", "validity flag", "flag", "flags"},
	"violation":             {"violation", "violations"},
	"waterfall":             {"waterfall", "waterfalls"},
	"watch lag":             {"watch lag"},
}

// Entry is a term with its explanation.
type Entry struct{ Term, Text string }

// ID is the anchor of the entry.
func (e Entry) ID() string {
	return "term-" + strings.Trim(regexp.MustCompile(`[^a-z]+`).ReplaceAllString(strings.ToLower(e.Term), "-"), "-")
}

var (
	row  = regexp.MustCompile(`(?m)^\| (?:<a id="[^"]*"></a>)?\*\*([^*]+)\*\* \| (.*) \|$`)
	see  = regexp.MustCompile(` ?See \[[^\]]*\]\([^)]*\)(?: and \[[^\]]*\]\([^)]*\))?\.`)
	link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// Entries returns the entries of the glossary as plain text, without links.
func Entries() []Entry {
	var list []Entry
	for _, m := range row.FindAllStringSubmatch(docs.Glossary, -1) {
		text := link.ReplaceAllString(see.ReplaceAllString(m[2], ""), "$1")
		list = append(list, Entry{m[1], strings.NewReplacer("`", "", "*", "").Replace(text)})
	}
	return list
}

// Marker links terms of one page. It is not safe for concurrent use.
type Marker struct {
	entries map[string]Entry // by the word in lower case
	pattern *regexp.Regexp
	here    map[string]bool // terms that the section has linked
	used    map[string]Entry
}

// NewMarker returns a marker for one page.
func NewMarker() *Marker {
	m := &Marker{entries: map[string]Entry{}, used: map[string]Entry{}, here: map[string]bool{}}
	var all []string
	for _, e := range Entries() {
		for _, w := range words[e.Term] {
			m.entries[w] = e
			all = append(all, regexp.QuoteMeta(w))
		}
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	// A word within a longer name, such as snapshots.ready or max-stall, is no term.
	m.pattern = regexp.MustCompile(`(?i)(^|[\s(:,;·“])(` + strings.Join(all, "|") + `)($|[\s).:,;·”])`)
	return m
}

// Section begins a section: terms are linked again.
func (m *Marker) Section() { clear(m.here) }

// Mark links the terms of escaped HTML text that has no elements.
func (m *Marker) Mark(escaped string) string {
	var b strings.Builder
	for {
		at := m.pattern.FindStringSubmatchIndex(escaped)
		if at == nil {
			break
		}
		from, to := at[4], at[5]
		e := m.entries[strings.ToLower(escaped[from:to])]
		b.WriteString(escaped[:from])
		if m.here[e.Term] {
			b.WriteString(escaped[from:to])
		} else {
			m.here[e.Term], m.used[e.Term] = true, e
			fmt.Fprintf(&b, `<a class="term" href="#%s" title="%s">%s</a>`, e.ID(), html.EscapeString(e.Text), escaped[from:to])
		}
		escaped = escaped[to:]
	}
	return b.String() + escaped
}

// Used returns the entries of the terms that were linked, by name.
func (m *Marker) Used() []Entry {
	var list []Entry
	for _, e := range m.used {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b Entry) int {
		return strings.Compare(strings.ToLower(a.Term), strings.ToLower(b.Term))
	})
	return list
}
