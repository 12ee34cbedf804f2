package expr

import (
	"strings"
	"testing"
)

// TestPrometheusQueries: value takes the name of a query where it takes no metric of an action.
func TestPrometheusQueries(t *testing.T) {
	t.Parallel()
	env := Env{Actions: map[string][]string{"fio": {"tps"}}, Queries: []string{"heads", "a-b"}}
	for text, want := range map[string]string{
		`value(heads) > 1`:                "value(heads)",
		`value("heads") > 1`:              "value(heads)",
		`value("a-b", during("fio")) > 1`: `value("a-b", during("fio"))`,
		`value(fio.tps) > 1`:              "value(fio.tps)",
		`value(head) > 1`:                 `no query "head" in spec.metrics.prometheus.queries; did you mean "heads"?`,
		`value("fio") > 1`:                `no query "fio"`,
		`value(fio) > 1`:                  "value applies to a metric of a workload's tool",
		`value(heads, phase(1)) > 1`:      "value takes a metric and windows",
		`value(heads) < duration("1s")`:   `"<" does not go with number and duration`,
		`p99(heads) < duration("1s")`:     `action "heads" not found`,
	} {
		var got string
		p, err := Compile(text, env)
		if err != nil {
			got = err.Error()
		} else {
			q := p.Queries()[0]
			if got = q.String(); q.OfPrometheus() != !strings.Contains(got, "fio.") {
				t.Errorf("%s: of Prometheus: %v", text, q.OfPrometheus())
			}
			if again, err := Compile(got+" > 1", Env{}); err != nil || again.Queries()[0].String() != got {
				t.Errorf("%s compiles to %v, %v", got, again, err)
			}
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
