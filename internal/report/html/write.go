package html

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"strings"
	"time"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/analysis/tenant"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/report/table"
	"github.com/cnsbench/cnsbench/internal/visible"
)

//go:embed page.html
var pageText string

// Write writes the report of a bundle, complete or not, with its summary.
func Write(w io.Writer, b *bundle.Bundle, s *summary.Summary) error {
	d, err := dataset.Read(b)
	if err != nil {
		return fmt.Errorf("report of %s: %w", b.Dir, err)
	}
	return WriteData(w, d, s)
}

// WriteData is Write of a bundle that is already read.
func WriteData(w io.Writer, d *dataset.Data, s *summary.Summary) error {
	b := d.Bundle
	p, err := newPage(d, s)
	if err != nil {
		return fmt.Errorf("report of %s: %w", b.Dir, err)
	}
	t, err := template.New("page").Funcs(functions).Parse(pageText)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	var text bytes.Buffer
	if err := t.Execute(&text, p); err != nil {
		return fmt.Errorf("report of %s: %w", b.Dir, err)
	}
	return linkTerms(&visible.Writer{To: w}, text.Bytes())
}

// functions of the template. It cannot call methods: a template that can, finds them by their names, and with it the
// linker keeps the exported methods of the whole program.
var functions = template.FuncMap{
	"ns":              units.Ns,
	"duration":        func(v int64) string { return units.Duration(float64(v)) },
	"count":           func(v *float64) string { return optional(v, units.Count) },
	"bytes":           func(v int64) string { return units.Bytes(float64(v)) },
	"times":           units.Count,
	"share":           func(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) },
	"percent":         func(q float64) string { return fmt.Sprintf("p%g", 100*q) },
	"amount":          summary.Amount,
	"instant":         summary.Instant,
	"opTime":          opTime,
	"visible":         visible.Text,
	"place":           summary.Place,
	"rate":            summary.Rate,
	"spread":          spread,
	"gain":            gain,
	"scaled":          scaleChart,
	"operations":      table.Operations,
	"episodes":        table.Episodes,
	"interference":    table.Interference,
	"metrics":         func(w summary.Workload) table.Table { return table.Metrics(&w) },
	"throughput":      table.Throughput,
	"instanceMetrics": func(w summary.Workload) table.Table { return table.InstanceMetrics(&w) },
	"values":          func(w summary.Workload) table.Table { return table.Values(&w) },
	"status":          statusClass,
	"lower":           strings.ToLower,
	"clip":            func(s string) string { return clip(s, 300) },
	"seconds":         tenant.Time,
	"tenantRatio":     tenant.Ratio,
	"objectsOnly":     (*page).objectsOnly, "unfinished": (*page).unfinished, "runLine": (*page).runLine,
	"command": (*page).command, "cleanup": (*page).cleanup, "file": (*page).file, "hasEntry": (*page).hasEntry,
	"findings": (*page).findings, "met": (*page).met, "shown": (*page).shown, "steps": (*page).steps,
	"drivers": (*page).drivers,
	"badge":   (*summary.Summary).Badge, "objectivesLine": (*summary.Summary).ObjectivesLine,
	"noRecoveries": (*summary.Summary).NoRecoveries,
	"triggerLines": (*summary.Summary).TriggerLines, "attributionLine": summary.Action.AttributionLine,
	"holds": (*summary.FindStep).Holds, "longest": summary.Latency.Max, "missing": (*summary.Query).Missing,
	"detailText": summary.Workload.DetailText, "samplingText": (*summary.Sampling).Text,
	"fromNs": metric.Outage.FromNs, "toNs": metric.Outage.ToNs, "named": interference.Stall.Named,
	"targetText": tenant.Target.Text, "targetResult": tenant.Target.Result, "limitEvidence": (*tenant.Limit).Evidence,
	"tenantMetrics": (*tenant.Tenant).Shown,
	"date":          func(t time.Time) string { return t.Format("2 January 2006, 15:04:05 -07:00") },
	"policy":        policy,
	"script":        scriptElement,
}
