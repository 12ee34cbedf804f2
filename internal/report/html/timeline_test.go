package html

import (
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/figure"
)

// An operation has one look in both bands, and no other operation has it.
func TestLineClasses(t *testing.T) {
	p := figure.Panel{Bandwidth: []figure.Line{{Name: "small"}, {Name: "read"}, {Name: "large"}},
		Latency: []figure.Line{{Name: "read p99"}, {Name: "small p99"}, {Name: "large p99"}, {Name: "head p99"},
			{Name: "canary read max"}}}
	classes := lineClasses(p)
	looks := map[string]string{}
	for name, class := range classes {
		if other := looks[class]; other != "" {
			t.Errorf("%s and %s are both %q", name, other, class)
		}
		looks[class] = name
	}
	if len(classes) != 5 || classes["read"] != "c0" || classes["canary read"] != "c2 thin" {
		t.Errorf("%v", classes)
	}
}
