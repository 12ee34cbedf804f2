package output

import (
	"bufio"
	"encoding/json"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// savedObject is a line of the dashboard for OpenSearch Dashboards.
type savedObject struct {
	ID, Type   string
	Attributes struct {
		Title, VisState, PanelsJSON, TimeFieldName, FieldFormatMap string
		KibanaSavedObjectMeta                                      struct{ SearchSourceJSON string }
	}
	References []struct{ Name, Type, ID string }
}

// mapping is a field of the index template.
type mapping struct {
	Type       string
	Enabled    *bool
	Dynamic    any
	Properties map[string]mapping
}

// typeOf is the type of a field in the index template; empty if it cannot be searched.
func typeOf(t *testing.T, field string) string {
	t.Helper()
	var all struct {
		Template struct {
			Mappings struct {
				mapping
				DynamicTemplates []map[string]struct {
					PathMatch string `json:"path_match"`
					Mapping   mapping
				} `json:"dynamic_templates"`
			}
		}
	}
	if err := json.Unmarshal(template, &all); err != nil {
		t.Fatal(err)
	}
	m := all.Template.Mappings.mapping
	for part := range strings.SplitSeq(field, ".") {
		next, ok := m.Properties[part]
		if !ok && m.Dynamic == true {
			for _, d := range all.Template.Mappings.DynamicTemplates {
				for _, rule := range d {
					if matched, _ := path.Match(rule.PathMatch, field); matched {
						return rule.Mapping.Type
					}
				}
			}
		}
		if m = next; !ok || m.Enabled != nil && !*m.Enabled {
			return ""
		}
	}
	return m.Type
}

func TestTypeOf(t *testing.T) {
	for field, want := range map[string]string{"op.outcome": "keyword", "op": "", "responseNs": "long", "spec.seed": "",
		"units.read_iops": "", "absent": "", "metrics.read_iops": "double", "latency.read.p99": "long",
		"latency.read.mean": "double", "op.message": "text", "op.absent": ""} {
		if got := typeOf(t, field); got != want {
			t.Errorf("%s: %q, want %q", field, got, want)
		}
	}
}

func savedObjects(t *testing.T) (list []savedObject) {
	t.Helper()
	f, err := os.Open("../../config/opensearch/cnsbench.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var o savedObject
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			t.Fatal(err)
		}
		list = append(list, o)
	}
	return list
}

// TestOpenSearchDashboard checks that each field that the dashboard for OpenSearch Dashboards names is in the index
// template, with a type that its use needs, and that references have a target.
func TestOpenSearchDashboard(t *testing.T) {
	objects := savedObjects(t)
	known := map[string]string{}
	for _, o := range objects {
		if known[o.ID] != "" {
			t.Errorf("%s twice", o.ID)
		}
		known[o.ID] = o.Type
	}
	charts, panels := 0, 0
	for _, o := range objects {
		for _, r := range o.References {
			if known[r.ID] != r.Type {
				t.Errorf("%s: no %s %s", o.ID, r.Type, r.ID)
			}
		}
		switch o.Type {
		case "index-pattern":
			if matched, _ := path.Match(o.Attributes.Title, "cnsbench"); !matched || o.Attributes.TimeFieldName != "timestamp" {
				t.Errorf("index pattern %+v", o.Attributes)
			}
			checkFormats(t, o.Attributes.FieldFormatMap)
		case "visualization":
			charts++
			checkChart(t, &o)
		case "dashboard":
			panels = len(o.References)
		}
	}
	if charts < 5 || panels != charts {
		t.Errorf("%d charts, %d of them on the dashboard", charts, panels)
	}
}

func checkFormats(t *testing.T, text string) {
	t.Helper()
	var formats map[string]any
	if err := json.Unmarshal([]byte(text), &formats); err != nil || len(formats) == 0 {
		t.Fatalf("%v: %s", err, text)
	}
	for field := range formats {
		if typeOf(t, field) != "long" {
			t.Errorf("a format of %s, which has type %q", field, typeOf(t, field))
		}
	}
}

// checkChart checks the fields of aggregations and of the query.
func checkChart(t *testing.T, o *savedObject) {
	t.Helper()
	var state struct {
		Aggs []struct {
			Type   string
			Params struct{ Field string }
		}
	}
	var search struct{ Query struct{ Query string } }
	if err := json.Unmarshal([]byte(o.Attributes.VisState), &state); err != nil || len(state.Aggs) < 2 {
		t.Fatalf("%s: %v: %s", o.ID, err, o.Attributes.VisState)
	}
	if err := json.Unmarshal([]byte(o.Attributes.KibanaSavedObjectMeta.SearchSourceJSON), &search); err != nil {
		t.Fatalf("%s: %v", o.ID, err)
	}
	wants := map[string]string{"terms": "keyword integer long boolean", "max": "long double integer",
		"percentiles": "long double", "date_histogram": "date"}
	for _, a := range state.Aggs {
		if a.Type == "count" {
			continue
		}
		if got := typeOf(t, a.Params.Field); got == "" || !strings.Contains(wants[a.Type], got) {
			t.Errorf("%s: %s of %s, which has type %q", o.Attributes.Title, a.Type, a.Params.Field, got)
		}
	}
	fields := regexp.MustCompile(`([a-zA-Z.]+):`).FindAllStringSubmatch(search.Query.Query, -1)
	if len(fields) == 0 {
		t.Errorf("%s: a query without a field: %q", o.Attributes.Title, search.Query.Query)
	}
	for _, f := range fields {
		if got := typeOf(t, f[1]); got != "keyword" {
			t.Errorf("%s: a query by %s, which has type %q", o.Attributes.Title, f[1], got)
		}
	}
}
