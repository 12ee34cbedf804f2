package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/lagprobe"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/proxies"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Report reports on the whole run: concurrent runs, failed attempts and possible orphans, and the counts of
// kubelets and controllers.
func (e *Engine) Report(ctx context.Context) engine.RunReport {
	if e.Client == nil || e.watches == nil {
		return engine.RunReport{Findings: e.leases.Findings()} // not opened
	}
	counted, findings := e.metrics.Collect(ctx, e.DriversInUse())
	orphans, listed := proxies.FindOrphans(ctx, e.Run, e.inventory)
	findings = append(findings, orphans...)
	findings = append(findings, e.Attempts.Findings(listed)...)
	findings = append(findings, e.unobservedFindings()...)
	findings = append(findings, outageFindings(watch.Outages(e.watches.Gaps(), e.Session.Clock.Now()))...)
	if e.Session.Sampling.Level == op.SampleDetailed {
		findings = append(findings, engine.Finding{Name: "volumeStatsMissing", Severity: "info", Evidence: "statistics of " +
			"volumes by their drivers are missing: only the kubelet of a node can ask a driver (NodeGetVolumeStats)"})
	}
	findings = append(findings, e.leases.Findings()...)
	return engine.RunReport{Findings: findings, Distributions: append(lagprobe.Lags(e.watches, e.probes), counted...)}
}

// unobservedFindings says that staging and publishing were not observed, and why.
func (e *Engine) unobservedFindings() []engine.Finding {
	if e.Tracker.SeesNodeCalls() || !e.hadPods() {
		return nil
	}
	why := "no CSI proxy was given, and this run may use no installed one (docs/reference/kubernetes.md)"
	switch {
	case e.metrics.Kubelets():
		why += "; the result has the kubelets' counts of the whole run"
	case len(e.metrics.Unread()) > 0:
		why += ", and kubelets' metrics could not be read: " + strings.Join(e.metrics.Unread(), "; ")
	}
	return []engine.Finding{{Name: "stagedUnobserved", Severity: "info",
		Evidence: "the times of staging and publishing were not observed in any op: " + why}}
}

// leastOutage is the shortest time in which the API server does not answer that is reported.
const leastOutage = op.Time(time.Second)

// outageFindings reports the time in which the API server could not be reached.
func outageFindings(list []watch.Outage) []engine.Finding {
	list = slices.DeleteFunc(list, func(o watch.Outage) bool { return o.To-o.From < leastOutage })
	if len(list) == 0 {
		return nil
	}
	total, texts := op.Time(0), make([]string, len(list))
	for i, o := range list {
		total += o.To - o.From
		texts[i] = fmt.Sprintf("from %.1f to %.1f s", time.Duration(o.From).Seconds(), time.Duration(o.To).Seconds())
	}
	return []engine.Finding{{Name: "apiUnavailable", Severity: "warning", Evidence: fmt.Sprintf(
		"the API server could not be reached for %.1f s of the run: %s. Ops of that time include the wait for it, and their "+
			"instants are known to these intervals only", time.Duration(total).Seconds(), tracker.JoinFirst(texts))}}
}

func (e *Engine) hadPods() bool {
	for _, s := range e.watches.Lags() {
		if s.Kind == api.Pods.String() {
			return s.Events > 0
		}
	}
	return false
}
