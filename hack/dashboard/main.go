// Command dashboard prints a dashboard: that for Grafana of the metrics of a run in progress, or that for OpenSearch
// Dashboards of the documents in an index.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// panel is a graph of one query, or of several with their legends.
type panel struct {
	title, description, unit string
	queries                  [][2]string // PromQL, legend
}

// rows of the dashboard. Three panels fit side by side.
var rows = []struct {
	title  string
	panels []panel
}{
	{"Operations", []panel{
		{"Operations per second", "Operations that ended, by action and outcome.", "ops", [][2]string{
			{`sum by (action, outcome) (rate(cnsbench_operations_total{run=~"$run"}[$__rate_interval]))`,
				"{{action}} {{outcome}}"}}},
		quantiles("Response", "From when an operation was due to its end; within a factor of two.",
			"cnsbench_operation_response_seconds", "action"),
		quantiles("Lateness of the runner", "From when an operation was due to its start. If it is not small, the runner "+
			"is too slow for the rate.", "cnsbench_operation_lateness_seconds", "action"),
	}},
	{"What takes the time", []panel{
		{"Mean time of each span", "Between two milestones of an operation, or of a call of the CSI driver.", "s",
			[][2]string{{`sum by (action, span) (rate(cnsbench_operation_span_seconds_sum{run=~"$run"}[$__rate_interval])) / ` +
				`sum by (action, span) (rate(cnsbench_operation_span_seconds_count{run=~"$run"}[$__rate_interval]))`,
				"{{action}} {{span}}"}}},
		quantiles("Service", "From the start of an operation to its end; within a factor of two.",
			"cnsbench_operation_service_seconds", "action"),
	}},
	{"Volumes in use", []panel{
		quantiles("Canary I/O", "Small I/Os beside the workload, from when each was due; within a factor of two.",
			"cnsbench_canary_response_seconds", "direction"),
		{"Canary errors per second", "Canary I/Os that failed.", "ops", [][2]string{
			{`sum by (workload, direction) (rate(cnsbench_canary_errors_total{run=~"$run"}[$__rate_interval]))`,
				"{{workload}} {{direction}}"}}},
	}},
	{"Workloads", []panel{
		{"Bytes per second", "Read and written by the processes of each instance.", "Bps", [][2]string{
			{`sum by (workload, direction) (rate(cnsbench_workload_bytes_total{run=~"$run"}[$__rate_interval]))`,
				"{{workload}} {{direction}}"}}},
		{"Calls per second", "Read and write calls of the processes of each instance.", "ops", [][2]string{
			{`sum by (workload, direction) (rate(cnsbench_workload_calls_total{run=~"$run"}[$__rate_interval]))`,
				"{{workload}} {{direction}}"}}},
		{"CPUs", "CPU time per second of the processes of each instance.", "short", [][2]string{
			{`sum by (workload) (rate(cnsbench_workload_cpu_seconds_total{run=~"$run"}[$__rate_interval]))`, "{{workload}}"}}},
		{"Resident memory", "Of the processes of each instance.", "bytes", [][2]string{
			{`sum by (workload) (cnsbench_workload_resident_memory_bytes{run=~"$run"})`, "{{workload}}"}}},
	}},
}

// quantiles is a panel with the median and p99 of a histogram.
func quantiles(title, description, metric, by string) panel {
	p := panel{title: title, description: description, unit: "s"}
	for _, q := range []string{"0.5", "0.99"} {
		p.queries = append(p.queries, [2]string{
			fmt.Sprintf(`histogram_quantile(%s, sum by (le, %s) (rate(%s_bucket{run=~"$run"}[$__rate_interval])))`, q, by, metric),
			fmt.Sprintf("{{%s}} p%s", by, map[string]string{"0.5": "50", "0.99": "99"}[q])})
	}
	return p
}

// datasource is that which the user selects.
var datasource = common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("$datasource")}

func (p *panel) build() *timeseries.PanelBuilder {
	b := timeseries.NewPanelBuilder().Title(p.title).Description(p.description).Unit(p.unit).Min(0).
		Datasource(datasource).Span(8).Height(8).Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).
		DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom))
	for i, q := range p.queries {
		b.WithTarget(prometheus.NewDataqueryBuilder().RefId(string(rune('A' + i))).Expr(q[0]).LegendFormat(q[1]))
	}
	return b
}

// grafana prints the dashboard for Grafana.
func grafana(w io.Writer) error {
	b := dashboard.NewDashboardBuilder("CNSBench").Uid("cnsbench").Tags([]string{"cnsbench", "storage"}).
		Description("A run of CNSBench in progress.").Refresh("5s").Time("now-15m", "now").Timezone("browser").
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus")).
		WithVariable(dashboard.NewQueryVariableBuilder("run").Label("Run").Datasource(datasource).
			Query(dashboard.StringOrMap{String: cog.ToPtr("label_values(cnsbench_run_info, run)")}).
			Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Multi(true).IncludeAll(true))
	for _, row := range rows {
		b.WithRow(dashboard.NewRowBuilder(row.title))
		for i := range row.panels {
			b.WithPanel(row.panels[i].build())
		}
	}
	built, err := b.Build()
	if err != nil {
		return err
	}
	to := json.NewEncoder(w)
	to.SetIndent("", "  ")
	to.SetEscapeHTML(false)
	return to.Encode(built)
}

func main() {
	printers := map[string]func(io.Writer) error{"grafana": grafana, "opensearch": opensearch}
	err := errors.New("usage: dashboard grafana|opensearch")
	if len(os.Args) == 2 && printers[os.Args[1]] != nil {
		err = printers[os.Args[1]](os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dashboard:", err)
		os.Exit(1)
	}
}
