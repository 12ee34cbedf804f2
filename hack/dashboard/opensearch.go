package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
)

// pattern is the ID of the index pattern, whose indices have the documents of an elasticsearchSpec.
const pattern = "cnsbench-documents"

// visual is a visualization of the documents that match a query in KQL.
type visual struct {
	title, description, query string
	kind                      string // "histogram" (bars), "line", "table"
	metrics, buckets          []aggregation
}

// aggregation of OpenSearch Dashboards: its type, a field, and further parameters.
type aggregation struct {
	kind, field, label string
	params             map[string]any
}

// visuals of the dashboard, two side by side.
var visuals = []visual{
	{"Operations over time", "By outcome, at the time when each was due.", "kind: op", "histogram",
		[]aggregation{count}, []aggregation{overTime, split("op.outcome")}},
	{"Operations by action", "Response: from when an operation was due to its end. Failed ones are included.", "kind: op",
		"table", []aggregation{count, percentiles("responseNs", "Response", 50, 99),
			largest("responseNs", "Longest response"), percentiles("latenessNs", "Lateness", 99)},
		[]aggregation{rowsOf("action", 50), rowsOf("op.outcome", 10)}},
	{"Response p99", "Of operations that succeeded, by action.", "kind: op and op.outcome: ok", "line",
		[]aggregation{percentiles("responseNs", "Response", 99)}, []aggregation{overTime, split("action")}},
	{"Lateness of the runner p99", "From when an operation was due to its start. If it is not small, the runner " +
		"is too slow for the rate.", "kind: op", "line",
		[]aggregation{percentiles("latenessNs", "Lateness", 99)}, []aggregation{overTime, split("action")}},
	{"Failed operations", "By action, outcome and code.", "kind: op and not op.outcome: ok", "table",
		[]aggregation{count}, []aggregation{rowsOf("action", 50), rowsOf("op.outcome", 10), rowsOf("op.code", 20)}},
	{"Runs", "That have ended, with their exit status.", "kind: run and event: end", "table",
		[]aggregation{largest("exitCode", "Exit status")},
		[]aggregation{rowsOf("run", 100), rowsOf("benchmark", 10), rowsOf("engine", 10), rowsOf("state", 10)}},
	{"Validity flags", "Of runs that have ended.", "kind: run and event: end", "table",
		[]aggregation{count}, []aggregation{rowsOf("validity.name", 50), rowsOf("run", 20)}},
	{"I/O of instances", "Figures of workloads that report IOPS, such as fio.", "kind: workload", "table",
		[]aggregation{largest("metrics.read_iops", "Read IOPS"), largest("metrics.write_iops", "Write IOPS"),
			largest("latency.read.p99", "Read p99"), largest("latency.write.p99", "Write p99")},
		[]aggregation{rowsOf("run", 20), rowsOf("instance", 100)}},
}

var (
	count    = aggregation{kind: "count"}
	overTime = aggregation{kind: "date_histogram", field: "timestamp",
		params: map[string]any{"interval": "auto", "min_doc_count": 1, "drop_partials": false,
			"useNormalizedEsInterval": true, "scaleMetricValues": false, "extended_bounds": map[string]any{}}}
)

func split(field string) aggregation { return terms(field, 20) }

func rowsOf(field string, size int) aggregation { return terms(field, size) }

// terms has buckets for the most frequent values of a field.
func terms(field string, size int) aggregation {
	return aggregation{kind: "terms", field: field, params: map[string]any{"size": size, "order": "desc",
		"orderBy": "_key", "otherBucket": false, "missingBucket": false}}
}

func percentiles(field, label string, percents ...int) aggregation {
	return aggregation{"percentiles", field, label, map[string]any{"percents": percents}}
}

func largest(field, label string) aggregation { return aggregation{"max", field, label, nil} }

// state is the field visState of the visualization.
func (v *visual) state() map[string]any {
	var list []map[string]any
	add := func(a *aggregation, schema string) {
		params := map[string]any{}
		for key, value := range a.params {
			params[key] = value
		}
		if a.field != "" {
			params["field"] = a.field
		}
		if a.label != "" {
			params["customLabel"] = a.label
		}
		list = append(list, map[string]any{"id": strconv.Itoa(len(list) + 1), "enabled": true, "type": a.kind,
			"schema": schema, "params": params})
	}
	for i := range v.metrics {
		add(&v.metrics[i], "metric")
	}
	for i := range v.buckets {
		switch {
		case v.kind == "table":
			add(&v.buckets[i], "bucket")
		case i == 0:
			add(&v.buckets[i], "segment") // the axis of time
		default:
			add(&v.buckets[i], "group")
		}
	}
	return map[string]any{"title": v.title, "type": v.kind, "aggs": list, "params": v.params()}
}

// params are the options of a kind of visualization.
func (v *visual) params() map[string]any {
	if v.kind == "table" {
		return map[string]any{"perPage": 20, "showPartialRows": false, "showMetricsAtAllLevels": false, "showTotal": false,
			"totalFunc": "sum", "percentageCol": ""}
	}
	mode := "normal"
	if v.kind == "histogram" {
		mode = "stacked"
	}
	axis := func(id, kind, position string) map[string]any {
		return map[string]any{"id": id, "type": kind, "position": position, "show": true, "style": map[string]any{},
			"scale": map[string]any{"type": "linear", "mode": "normal"}, "labels": map[string]any{"show": true, "truncate": 100},
			"title": map[string]any{}}
	}
	value := axis("ValueAxis-1", "value", "left")
	value["name"] = "LeftAxis-1"
	return map[string]any{"type": v.kind, "grid": map[string]any{"categoryLines": false}, "addTooltip": true,
		"addLegend": true, "legendPosition": "right", "times": []any{}, "addTimeMarker": false,
		"categoryAxes": []any{axis("CategoryAxis-1", "category", "bottom")}, "valueAxes": []any{value},
		"seriesParams": []any{map[string]any{"show": true, "type": v.kind, "mode": mode, "valueAxis": "ValueAxis-1",
			"data": map[string]any{"id": "1", "label": v.title}, "drawLinesBetweenPoints": true, "showCircles": true}}}
}

// object is a saved object.
type object struct {
	ID         string            `json:"id"`
	Type       string            `json:"type"`
	Attributes map[string]any    `json:"attributes"`
	References []reference       `json:"references"`
	Migration  map[string]string `json:"migrationVersion"` // the version of the attributes' form
}

type reference struct {
	Name string `json:"name"`
	Type string `json:"type"`
	ID   string `json:"id"`
}

// text is a value as JSON in a text, as saved objects have it.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // of a value of this file
	}
	return string(b)
}

// indexPattern has the unit of the times, which are in nanoseconds.
func indexPattern() object {
	formats := map[string]any{}
	for _, field := range []string{"responseNs", "serviceNs", "latenessNs", "latency.read.p99", "latency.write.p99"} {
		formats[field] = map[string]any{"id": "duration",
			"params": map[string]any{"inputFormat": "nanoseconds", "outputFormat": "asMilliseconds", "outputPrecision": 3}}
	}
	return object{pattern, "index-pattern", map[string]any{"title": "cnsbench*", "timeFieldName": "timestamp",
		"fieldFormatMap": text(formats)}, []reference{}, map[string]string{"index-pattern": "7.6.0"}}
}

func (v *visual) object(id string) object {
	const index = "kibanaSavedObjectMeta.searchSourceJSON.index"
	search := map[string]any{"query": map[string]any{"query": v.query, "language": "kuery"}, "filter": []any{},
		"indexRefName": index}
	return object{id, "visualization", map[string]any{"title": "CNSBench: " + v.title, "description": v.description,
		"visState": text(v.state()), "uiStateJSON": "{}", "version": 1,
		"kibanaSavedObjectMeta": map[string]any{"searchSourceJSON": text(search)}},
		[]reference{{index, "index-pattern", pattern}}, map[string]string{"visualization": "7.10.0"}}
}

// opensearch prints the index pattern, the visualizations and the dashboard as lines of JSON.
func opensearch(w io.Writer) error {
	const width, height = 24, 15 // of 48 columns
	to := json.NewEncoder(w)
	to.SetEscapeHTML(false)
	objects := []object{indexPattern()}
	var panels []any
	var panelsOf []reference
	for i := range visuals {
		id := fmt.Sprintf("cnsbench-%d", i+1)
		objects = append(objects, visuals[i].object(id))
		name, index := fmt.Sprintf("panel_%d", i), strconv.Itoa(i+1)
		panels = append(panels, map[string]any{"version": "2.18.0", "panelIndex": index, "panelRefName": name,
			"embeddableConfig": map[string]any{}, "gridData": map[string]any{"i": index, "x": i % 2 * width, "y": i / 2 * height,
				"w": width, "h": height}})
		panelsOf = append(panelsOf, reference{name, "visualization", id})
	}
	empty := map[string]any{"query": map[string]any{"query": "", "language": "kuery"}, "filter": []any{}}
	objects = append(objects, object{"cnsbench", "dashboard", map[string]any{"title": "CNSBench",
		"description": "Runs of CNSBench: operations, workloads, validity.", "hits": 0, "version": 1, "timeRestore": false,
		"optionsJSON": text(map[string]any{"useMargins": true, "hidePanelTitles": false}), "panelsJSON": text(panels),
		"kibanaSavedObjectMeta": map[string]any{"searchSourceJSON": text(empty)}}, panelsOf,
		map[string]string{"dashboard": "7.9.3"}})
	for i := range objects {
		if err := to.Encode(&objects[i]); err != nil {
			return err
		}
	}
	return nil
}
