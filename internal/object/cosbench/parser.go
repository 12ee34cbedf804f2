package cosbench

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/hints"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/selector"
)

type parser struct {
	model.Problems
	getenv func(string) (string, bool)
	hosts  []string
	seen   map[entry]bool // keys of operations' configs that were already checked
}

// level is the settings that an element inherits.
type level struct {
	config  config
	auth    *node
	storage *node
}

// down returns the level below n. The nearest auth and storage replace outer ones completely.
func (p *parser) down(l level, n *node) level {
	if a, ok := n.attrs["config"]; ok {
		var odd []string
		l.config, odd = l.config.with(a)
		for _, o := range odd {
			p.Warn(a.line, "write key=value", "%q in the config of <%s> has no value and is ignored", clip(o), n.name)
		}
	}
	for _, c := range n.children {
		switch c.name {
		case "auth":
			l.auth = c
		case "storage":
			l.storage = c
		}
	}
	return l
}

// only reports attributes and children that the grammar does not have. COSBench ignores such attributes and rejects
// files with such children.
func (p *parser) only(n *node, attrs, children string) {
	if n.checked {
		return // an element that several works share
	}
	n.checked = true
	known := strings.Fields(attrs)
	for _, name := range slices.Sorted(maps.Keys(n.attrs)) {
		switch {
		case slices.Contains(known, name), strings.HasPrefix(name, "xmlns"), name == "schemaLocation",
			name == "noNamespaceSchemaLocation":
			continue
		}
		hint := hints.Nearest(name, known)
		if slices.Contains(operationKeys, name) && slices.Contains(known, "config") {
			hint = fmt.Sprintf("%[1]s is a key of config: write config=\"%[1]s=…\"", name)
		}
		p.warnAt(n.attrs[name].at, hint, "<%s> has no attribute %s: it is ignored, as in COSBench", n.name, clip(name))
	}
	known = strings.Fields(children)
	for _, c := range n.children {
		if slices.Contains(known, c.name) {
			continue
		}
		hint := "nothing stands in it"
		if children != "" {
			hint = hints.Or(hints.Nearest(c.name, known), "in it stand "+strings.Join(known, ", "))
		}
		p.Fail(c.line, hint, "<%s> is not allowed in <%s>: COSBench rejects it too", clip(c.name), n.name)
		p.column(c.at)
	}
}

// warnAt adds a warning at a place.
func (p *parser) warnAt(at place, hint, format string, args ...any) {
	p.Warn(at.line, hint, format, args...)
	p.column(at)
}

// column sets the column of the last problem.
func (p *parser) column(at place) { p.Problems[len(p.Problems)-1].Column = at.column }

// integer parses an integer attribute from 0 to highest.
func (p *parser) integer(n *node, name string, otherwise, highest int64) int64 {
	a, ok := n.attrs[name]
	if !ok || strings.TrimSpace(a.value) == "" {
		return otherwise
	}
	v, err := strconv.ParseInt(strings.TrimSpace(a.value), 10, 64)
	if err != nil || v < 0 || v > highest {
		p.Fail(a.line, fmt.Sprintf("a whole number from 0 to %d", highest), "invalid %s=%q of <%s>", name,
			clip(a.value), n.name)
		return otherwise
	}
	return v
}

func (p *parser) size(n *node, name string) int64 {
	a, ok := n.attrs[name]
	if !ok || strings.TrimSpace(a.value) == "" {
		return 0
	}
	v, err := selector.ParseBytes(a.value)
	if err != nil {
		p.Fail(a.line, "", "%s of <%s>: %v", name, n.name, err)
	}
	return v
}

func (p *parser) seconds(n *node, name string, otherwise time.Duration) time.Duration {
	a, ok := n.attrs[name]
	if !ok || strings.TrimSpace(a.value) == "" {
		return otherwise
	}
	v, err := parseSeconds(a.value)
	if err != nil {
		p.Fail(a.line, "", "%s of <%s>: %v", name, n.name, err)
		return otherwise
	}
	return v
}

// failOnce reports a problem once if many works share its element.
func (p *parser) failOnce(line int, hint, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if !slices.ContainsFunc(p.Problems, func(q model.Problem) bool { return q.Line == line && q.Message == message }) {
		p.Fail(line, hint, "%s", message)
	}
}

func (p *parser) warnOnce(line int, hint, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if !slices.ContainsFunc(p.Problems, func(q model.Problem) bool { return q.Line == line && q.Message == message }) {
		p.Warn(line, hint, "%s", message)
	}
}
