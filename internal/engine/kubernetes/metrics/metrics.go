// Package metrics reads the metrics and flags of kubelets, CSI sidecars and storage controllers. Their counters are
// read before and after a run; the difference says how long their operations took, but not in which op.
package metrics

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/component"
	"github.com/cnsbench/cnsbench/internal/op"
)

const (
	// maxKubelets limits the number of nodes that are read; each answers about 1 MiB.
	maxKubelets   = 50
	scrapesAtOnce = 8
	scrapeWithin  = 10 * time.Second
	maxScrape     = 64 << 20
)

// exporter is a metrics endpoint.
type exporter struct {
	source  string
	read    func(ctx context.Context) ([]byte, error)
	kubelet bool
}

// Collector has the first readings of a run.
type Collector struct {
	exporters []exporter
	before    []families // by exporter; nil: not readable
	kubelets  bool       // at least one kubelet was read
	unread    []string   // reasons of failed readings
}

type families map[string]*dto.MetricFamily

// Start finds exporters and reads them for the first time. endpoints are further ones, URL or NAME=URL.
func Start(ctx context.Context, client *api.Client, endpoints []string) *Collector {
	m := &Collector{exporters: append(kubelets(ctx, client), controllerPods(ctx, client)...)}
	for _, endpoint := range endpoints {
		m.exporters = append(m.exporters, urlExporter(endpoint))
	}
	var errs []error
	m.before, errs = readAll(ctx, m.exporters)
	forbidden := map[string]bool{}
	for i, x := range m.exporters {
		switch err := errs[i]; {
		case err == nil:
			m.kubelets = m.kubelets || x.kubelet
		case apierrors.IsForbidden(err):
			right := "get pods/proxy, for sidecars and controllers"
			if x.kubelet {
				right = "get nodes/proxy, for kubelets"
			}
			if !forbidden[right] {
				m.unread = append(m.unread, "the right is missing: "+right)
			}
			forbidden[right] = true
		default:
			m.unread = append(m.unread, fmt.Sprintf("%s: %v", x.source, err))
		}
	}
	return m
}

// kubelets lists the kubelets. They are read through the API server, which requires the right to get nodes/proxy.
func kubelets(ctx context.Context, client *api.Client) []exporter {
	nodes, _, err := client.List(ctx, api.Nodes, "", metav1.ListOptions{})
	if err != nil {
		return nil
	}
	var list []exporter
	for _, n := range nodes[:min(len(nodes), maxKubelets)] {
		list = append(list, exporter{source: "kubelet " + n.GetName(), kubelet: true,
			read: proxied(client, api.Nodes.Path("", n.GetName(), "proxy")+"/metrics")})
	}
	return list
}

// controllerPods lists the sidecars and controllers that run as pods and have a metrics flag.
func controllerPods(ctx context.Context, client *api.Client) []exporter {
	pods, _, err := client.List(ctx, api.Pods, "", metav1.ListOptions{})
	if err != nil {
		return nil
	}
	var list []exporter
	for _, o := range pods {
		p := o.(*corev1.Pod)
		for i := range p.Spec.Containers {
			c := &p.Spec.Containers[i]
			x := component.Of(c)
			port, path := metricsAt(append(slices.Clone(c.Command), c.Args...))
			if !x.Operates || port == "" {
				continue
			}
			at := api.Pods.Path(p.Namespace, p.Name+":"+port, "proxy") + path
			list = append(list, exporter{source: x.Name + " " + p.Namespace + "/" + p.Name, read: proxied(client, at)})
		}
	}
	return list
}

// metricsAt returns the port and path of a sidecar's metrics from its flags.
func metricsAt(args []string) (port, path string) {
	path = "/metrics"
	for name, value := range flagsOf(args) {
		switch name {
		case "metrics-address", "http-endpoint":
			port = value[strings.LastIndex(value, ":")+1:]
		case "metrics-path":
			path = value
		}
	}
	return port, path
}

// proxied reads a path through the API server.
func proxied(client *api.Client, path string) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) { return client.Text(ctx, path) }
}

// urlExporter returns an exporter that the user has given, as URL or NAME=URL.
func urlExporter(at string) exporter {
	name, url, ok := strings.Cut(at, "=")
	if !ok || strings.Contains(name, "/") {
		name, url = at, at
	}
	return exporter{source: name, read: func(ctx context.Context) ([]byte, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return nil, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, err
		}
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("%s answered %s", url, resp.Status)
		}
		return io.ReadAll(io.LimitReader(resp.Body, maxScrape))
	}}
}

// readAll reads exporters in parallel.
func readAll(ctx context.Context, list []exporter) ([]families, []error) {
	found, errs := make([]families, len(list)), make([]error, len(list))
	var g errgroup.Group
	g.SetLimit(scrapesAtOnce)
	for i, x := range list {
		g.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, scrapeWithin)
			defer cancel()
			text, err := x.read(ctx)
			if err == nil {
				found[i], err = parseMetrics(text)
			}
			errs[i] = err
			return nil
		})
	}
	_ = g.Wait() // errors are in errs
	return found, errs
}

// parseMetrics keeps the families in sampleName.
func parseMetrics(text []byte) (families, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	all, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	kept := families{}
	for name := range sampleName {
		if f := all[name]; f != nil {
			kept[name] = f
		}
	}
	return kept, nil
}

// sampleName returns, for each used family, the name of a sample; "" leaves it out.
var sampleName = map[string]func(labels map[string]string) string{
	"csi_operations_seconds":         csiCall,
	"csi_sidecar_operations_seconds": csiCall,
	"storage_operation_duration_seconds": func(l map[string]string) string {
		if l["operation_name"] == "" || l["volume_plugin"] == "" {
			return ""
		}
		return l["operation_name"] + ifNot(l["status"], "success") + ", " + strings.TrimPrefix(l["volume_plugin"],
			"kubernetes.io/csi:")
	},
	"workqueue_queue_duration_seconds": queue("waiting in queue "),
	"workqueue_work_duration_seconds":  queue("work on queue "),
	"workqueue_retries_total":          queue("tried again, of queue "),
	rateLimiter: func(l map[string]string) string {
		return "waiting for its own rate limiter, " + l["verb"]
	},
}

const rateLimiter = "rest_client_rate_limiter_duration_seconds"

func csiCall(l map[string]string) string {
	method := l["method_name"][strings.LastIndex(l["method_name"], "/")+1:]
	if method == "" || strings.Contains(method, "Get") || method == "Probe" {
		return "" // calls that change nothing
	}
	return method + ifNot(l["grpc_status_code"], "OK") + ", " + l["driver_name"]
}

// ifNot returns " how" unless how is well.
func ifNot(how, well string) string {
	if how == well {
		return ""
	}
	return " " + how
}

// storageQueues matches the names of queues of storage controllers.
var storageQueues = regexp.MustCompile(`claim|volume|pvc|pv\b|snapshot|content|attach|csi|resiz|modify`)

func queue(what string) func(map[string]string) string {
	return func(l map[string]string) string {
		if !storageQueues.MatchString(strings.ToLower(l["name"])) {
			return ""
		}
		return what + l["name"]
	}
}

// difference returns what an exporter counted between two readings. A counter that decreased was reset by a
// restart: all of its value counts.
func difference(source string, before, after families) []op.Distribution {
	var list []op.Distribution
	for name, f := range after {
		old := map[string]*dto.Metric{}
		if b := before[name]; b != nil {
			for _, m := range b.Metric {
				old[labelsKey(m)] = m
			}
		}
		for _, m := range f.Metric {
			about := sampleName[name](labelsOf(m))
			if about == "" {
				continue
			}
			d := op.Distribution{Source: source, Name: about, How: name + ", difference over the run"}
			setDifference(&d, old[labelsKey(m)], m)
			if d.N > 0 {
				list = append(list, d)
			}
		}
	}
	slices.SortFunc(list, func(a, b op.Distribution) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// setDifference sets the counts of d to the difference of two samples.
func setDifference(d *op.Distribution, before, after *dto.Metric) {
	h, old := after.GetHistogram(), before.GetHistogram()
	if h == nil {
		now, was := after.GetCounter().GetValue(), before.GetCounter().GetValue()
		if now < was {
			was = 0
		}
		d.N = int64(now - was)
		return
	}
	if h.GetSampleCount() < old.GetSampleCount() {
		old = nil
	}
	d.N = int64(h.GetSampleCount() - old.GetSampleCount())
	d.SumNs = int64(math.Round((h.GetSampleSum() - old.GetSampleSum()) * 1e9))
	had := map[float64]uint64{}
	for _, b := range old.GetBucket() {
		had[b.GetUpperBound()] = b.GetCumulativeCount()
	}
	below := int64(0)
	for _, b := range h.GetBucket() {
		if math.IsInf(b.GetUpperBound(), 0) {
			continue
		}
		upTo := int64(b.GetCumulativeCount()) - int64(had[b.GetUpperBound()])
		d.Buckets = append(d.Buckets, op.Bucket{UpToNs: int64(b.GetUpperBound() * 1e9), N: upTo - below})
		below = upTo
	}
}

func labelsOf(m *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, l := range m.Label {
		labels[l.GetName()] = l.GetValue()
	}
	return labels
}

func labelsKey(m *dto.Metric) string {
	var parts []string
	for _, l := range m.Label {
		parts = append(parts, l.GetName()+"="+l.GetValue())
	}
	slices.Sort(parts)
	return strings.Join(parts, "\x00")
}

// Collect reads everything again. It returns the differences, and findings from them.
func (m *Collector) Collect(ctx context.Context, drivers []string) (list []op.Distribution, findings []engine.Finding) {
	if m == nil {
		return nil, nil
	}
	after, errs := readAll(ctx, m.exporters)
	for i, x := range m.exporters {
		if m.before[i] == nil {
			continue // reported by Start
		}
		if errs[i] != nil {
			m.unread = append(m.unread, fmt.Sprintf("%s, after the run: %v", x.source, errs[i]))
			continue
		}
		d := difference(x.source, m.before[i], after[i])
		list = append(list, ofDrivers(x, d, drivers)...)
		findings = append(findings, rateLimitFindings(x.source, d)...)
	}
	return list, findings
}

// ofDrivers drops the kubelets' counts of other drivers.
func ofDrivers(x exporter, all []op.Distribution, drivers []string) []op.Distribution {
	if !x.kubelet {
		return all
	}
	return slices.DeleteFunc(all, func(d op.Distribution) bool {
		return !slices.ContainsFunc(drivers, func(driver string) bool { return strings.Contains(d.Name, driver) })
	})
}

// rateLimitedMean is the mean wait for a client's rate limiter above which it is reported, in nanoseconds.
const rateLimitedMean = 10e6

// rateLimitFindings reports controllers that their own rate limiter delayed.
func rateLimitFindings(source string, all []op.Distribution) []engine.Finding {
	var list []engine.Finding
	for _, d := range all {
		if strings.HasPrefix(d.How, rateLimiter) && float64(d.SumNs) > rateLimitedMean*float64(d.N) {
			list = append(list, engine.Finding{Name: "clientRateLimited", Severity: "info", Evidence: fmt.Sprintf(
				"%s spent %v %s, in %d requests: its --kube-api-qps "+
					"bounds the result", source, time.Duration(d.SumNs).Round(time.Millisecond), d.Name, d.N)})
		}
	}
	return list
}

// Kubelets says whether the metrics of a kubelet could be read.
func (m *Collector) Kubelets() bool { return m != nil && m.kubelets }

// Unread lists the exporters that could not be read, each with the reason.
func (m *Collector) Unread() []string {
	if m == nil {
		return nil
	}
	return m.unread
}
