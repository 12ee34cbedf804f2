package summary

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/attribution"
	"github.com/cnsbench/cnsbench/internal/analysis/cost"
	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/host"
	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/analysis/recovery"
	"github.com/cnsbench/cnsbench/internal/analysis/slo"
	"github.com/cnsbench/cnsbench/internal/analysis/tenant"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/version"
)

// Format is the version of the summary's JSON. Fields may be added within one.
const Format = 1

// AnalysisVersion is the version of the definitions of all figures. It grows when a figure of an existing bundle
// changes: its formula, its rounding, or the condition under which it is shown. A new figure does not change it.
// Version 1 is that of November 2026. Since version 2 a stall without an end lasts until its instance ended, not the
// run; the achieved rate of a backlog is at most the offered one; late starts are flagged also if most operations were
// never started; a backlog of less than one operation is not flagged; and even ends are taken for a rate limit only if
// chance does not explain them. Since version 3 the rate of an instance whose tool was started anew is its work over the
// time of its lives, not the sum of their rates, and the search for a recovery ends at the next op on the instance.
const AnalysisVersion = 3

// Analysis says what computed figures.
type Analysis struct {
	Version int    `json:"version"` // AnalysisVersion
	Program string `json:"program"` // version of cnsbench
	// AtRun is the version that judged the run at its end; 0: the bundle does not have it.
	AtRun int `json:"atRun,omitempty"`
}

// ThisAnalysis describes this program.
func ThisAnalysis() Analysis { return Analysis{Version: AnalysisVersion, Program: version.Version} }

// analysisOf describes this program and the analysis of the run. A difference is a warning: the recorded verdicts and
// flags, and a report of that time, may have other figures.
func analysisOf(r *bundle.Run) (a Analysis, warning string) {
	a = ThisAnalysis()
	a.AtRun, _ = strconv.Atoi(r.Versions[AnalysisKey])
	if a.AtRun != 0 && a.AtRun != a.Version {
		warning = fmt.Sprintf("the run was judged by version %d of the analysis (cnsbench %s); these figures are by version "+
			"%d (cnsbench %s) and may differ from a report of that time", a.AtRun, r.Versions["cnsbench"], a.Version, a.Program)
	}
	return a, warning
}

// AnalysisKey is the key of AnalysisVersion in the versions of a run.
const AnalysisKey = "analysis"

// Summary of a run. Names of fields end in their unit.
type Summary struct {
	Format       int                   `json:"format"`
	Analysis     Analysis              `json:"analysis"`
	RunID        string                `json:"runID"`
	Name         string                `json:"name"`
	Engine       string                `json:"engine"`
	State        bundle.State          `json:"state"`
	Reason       string                `json:"reason,omitempty"`
	Complete     bool                  `json:"complete"`       // false: the bundle lacks its end
	Live         bool                  `json:"live,omitempty"` // the run is still going on
	Seed         uint64                `json:"seed"`
	StartedAt    time.Time             `json:"startedAt"`
	BarrierAt    op.Time               `json:"barrierAt"`
	EndedAt      op.Time               `json:"endedAt"`
	Headline     []string              `json:"headline"`
	Verdicts     []slo.Verdict         `json:"verdicts"`
	Actions      []Action              `json:"actions"`
	Episodes     []Episode             `json:"episodes"`
	Workloads    []Workload            `json:"workloads"`
	Interference []interference.Effect `json:"interference"`
	Stalls       []interference.Stall  `json:"stalls"`
	// RateEffects compare the throughput of tools during and outside ops, ZeroPeriods are times without operations.
	RateEffects []interference.RateEffect `json:"rateEffects,omitempty"`
	ZeroPeriods []interference.Stall      `json:"zeroPeriods,omitempty"`
	// Recoveries are those of workloads after ops that replace their pods or change their volumes.
	Recoveries []Recoveries `json:"recoveries,omitempty"`
	// NoRecovery lists the ops without a recovery, with the reason.
	NoRecovery []recovery.Missing `json:"noRecovery,omitempty"`
	// Sampling is nil of older bundles.
	Sampling *Sampling `json:"sampling,omitempty"`
	// Queries are those to a Prometheus server.
	Queries []Query `json:"queries,omitempty"`
	// Volumes are those of which CSI drivers reported statistics, the fullest first.
	Volumes []VolumeStats      `json:"volumes,omitempty"`
	Tenants []tenant.Tenant    `json:"tenants,omitempty"`
	Rates   []bundle.RateStats `json:"rates"`
	// Traces are the files that rates replayed.
	Traces []bundle.Trace `json:"traces"`
	// Distributions were counted by other components over the whole run.
	Distributions []Distribution `json:"distributions"`
	// FindMax and Scaling are results of --find-max and --scale-workers; nil: not run.
	FindMax *FindMax `json:"findMax,omitempty"`
	Scaling *Scaling `json:"scaling,omitempty"`
	// Bounds are what limited the stages of object storage.
	Bounds []bundle.Bound `json:"bounds,omitempty"`
	// Endpoints are those of object storage, where a store has several. Outages are the times in which one did not
	// serve, of stores with one endpoint too.
	Endpoints []Endpoint      `json:"endpoints,omitempty"`
	Outages   []bundle.Outage `json:"outages,omitempty"`
	// Cost of the run, with the prices of --prices; nil: none were given.
	Cost *cost.Result `json:"cost,omitempty"`
	// Machines has the CPU use of the run's machines.
	Machines []host.Use    `json:"machines,omitempty"`
	Validity []bundle.Flag `json:"validity"`
	Warnings []string      `json:"warnings"`
}

// Action has the results of one action's ops.
type Action struct {
	Name string  `json:"name"`
	Kind op.Kind `json:"kind"`
	Rate string  `json:"rate,omitempty"`
	N    int64   `json:"n"` // all ops, of any outcome
	// NoOps says why there is no op; empty if there is one.
	NoOps    string               `json:"noOps,omitempty"`
	Outcomes map[op.Outcome]int64 `json:"outcomes"`
	// OfferedPerSecond is the rate of intended ops, nil with fewer than two instants; AchievedPerSecond the
	// throughput of those that succeeded (package throughput), nil with fewer than two.
	OfferedPerSecond  *float64 `json:"offeredPerSecond"`
	AchievedPerSecond *float64 `json:"achievedPerSecond"`
	Lateness          Latency  `json:"lateness"` // started − intended, of ops that were started
	Response          Latency  `json:"response"` // ended − intended
	Service           Latency  `json:"service"`  // ended − started
	// Milestones: from intended, each. Spans: between them.
	Milestones []Span            `json:"milestones"`
	Spans      []Span            `json:"spans"`
	Failures   []dataset.Failure `json:"failures"`
	// Attribution is the time of successful ops by component, largest first; the shares
	// add up to one.
	Attribution []attribution.Share `json:"attribution"`
	// Causes are the steps that take longer than their ordinary time, at most three; StandsOut says in words which
	// of them stands out, with its evidence, or that none does; empty without successful ops.
	Causes    []attribution.Cause `json:"causes"`
	StandsOut string              `json:"standsOut"`
}

// Span is the time between two instants of an op. An op may have it several times
// (volumes, retries): n counts each.
type Span struct {
	Name    string  `json:"name"`
	From    string  `json:"from"`
	To      string  `json:"to"`
	Latency Latency `json:"latency"`
}

// Workload has the results of one action's instances.
type Workload struct {
	Action  string   `json:"action"`
	Metrics []Metric `json:"metrics"` // all instances: rates added up, histograms merged
	// Values are the other metrics that its parser declares.
	Values []dataset.Figure `json:"values,omitempty"`
	// Variants of instances in the file, in order of their first instance.
	Variants []Variant `json:"variants"`
	// Phases of the workload, in order; absent where it does not change. With phases the
	// rates of Metrics are unknown.
	Phases    []Phase    `json:"phases,omitempty"`
	Instances []Instance `json:"instances"`
	// Syncs are the calls for durability of its processes, in calls; absent: they were not to be counted.
	Syncs *dataset.Syncs `json:"syncs,omitempty"`
	// Step: it is a step of FindMax or Scaling, which have its figures too.
	Step bool `json:"step,omitempty"`
	// CutOff: an instance did not write its end; the figures cover what there is.
	CutOff bool `json:"cutOff,omitempty"`
	// Invalid says why its figures must not be used.
	Invalid string `json:"invalid,omitempty"`
}

// Phase is a part of the run in which a workload's variables were the same.
type Phase struct {
	Phase      int      `json:"phase"`      // from 0, before the first in the file
	StartAfter string   `json:"startAfter"` // the barrier: "10s"; empty of phase 0
	Vars       string   `json:"vars"`       // that changed: "rateIops=300"
	Metrics    []Metric `json:"metrics"`

	Values []dataset.Figure `json:"values,omitempty"`
}

// Title formats the phase: "phase 1 (rateIops=300)".
func (p Phase) Title() string {
	if p.Vars == "" {
		return fmt.Sprintf("phase %d", p.Phase)
	}
	return fmt.Sprintf("phase %d (%s)", p.Phase, p.Vars)
}

// Variant has the instances with the same variables.
type Variant struct {
	Vars      string   `json:"vars"` // that differ: "bs=4k rw=read"
	Instances int      `json:"instances"`
	Metrics   []Metric `json:"metrics"`

	Values []dataset.Figure `json:"values,omitempty"`
}

// Instance of a workload.
type Instance struct {
	Name    string   `json:"name"`
	Metrics []Metric `json:"metrics"`
	Phases  []Phase  `json:"phases,omitempty"`

	Values []dataset.Figure `json:"values,omitempty"`
	// SkewNs is the delay of the last container after its barrier; nil without one.
	SkewNs      *int64            `json:"skewNs"`
	SkewErrorNs int64             `json:"skewErrorNs"`
	EndedAt     op.Time           `json:"endedAt"` // null: never seen to end
	OK          *bool             `json:"ok"`
	Containers  []op.ContainerEnd `json:"containers"`
	CPUs        *float64          `json:"cpus"` // mean CPUs in use
	// Detail is absent unless spec.metrics.level is detailed.
	Detail *Detail `json:"detail,omitempty"`
	// Driver: it is a load generator process of object storage, on this or another host,
	// without containers and without an observed end.
	Driver      bool   `json:"driver,omitempty"`
	MaxRSSBytes int64  `json:"maxRSSBytes,omitempty"` // of a driver, of the readings
	Host        string `json:"host,omitempty"`        // that it was on, of several that share an object storage run
	CutOff      bool   `json:"cutOff,omitempty"`
}

// Metric of I/O. Latency is of single I/Os: the canary's response, or the tool's own view.
type Metric struct {
	Name              string   `json:"name"`             // "read", "write", "canaryWrite", …
	Volume            string   `json:"volume,omitempty"` // of a canary
	PerSecond         *float64 `json:"perSecond"`
	BandwidthBytesSec *float64 `json:"bandwidthBytesPerSecond"`
	Basis             string   `json:"basis,omitempty"`
	Errors            int64    `json:"errors"`
	// OK and Lost are operations that succeeded, and that were due and never done, where a tool counts them.
	OK      int64   `json:"ok,omitempty"`
	Lost    int64   `json:"lost,omitempty"`
	Latency Latency `json:"latency"`
	// Service and Lateness are of a canary: its times from the start of an I/O, and those from when it was due to its
	// start, whose sum is the response.
	Service  *Latency `json:"service,omitempty"`
	Lateness *Latency `json:"lateness,omitempty"`
	// Part: it is a part of another metric, such as read.firstByte of read.
	Part bool `json:"part,omitempty"`
	// Unmeasured: it is of a preparing or cleaning stage.
	Unmeasured bool `json:"unmeasured,omitempty"`
}

func notNil[T any](l *[]T) {
	if *l == nil {
		*l = []T{}
	}
}

// OneLine returns a tool's text as one line of at most about 200 characters.
func OneLine(s string) string {
	s = strings.TrimRight(strings.Join(strings.Fields(s), " "), ".")
	r := []rune(s)
	if len(r) <= keptHead+keptTail {
		return s
	}
	head, tail := string(r[:keptHead]), string(r[len(r)-keptTail:])
	if i := strings.LastIndexByte(head, ' '); i > 0 { // whole words
		head = head[:i]
	}
	if _, rest, ok := strings.Cut(tail, " "); ok {
		tail = rest
	}
	return head + " … " + tail
}

// The parts of a long text that OneLine keeps, in characters: its begin and its end.
const (
	keptHead = 60
	keptTail = 140
)

func plural(n int64, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// Query has the answers of a Prometheus server to a query, from the barrier on.
type Query struct {
	Name     string `json:"name"`
	Expr     string `json:"expr"`
	Instants int64  `json:"instants"`
	// Gaps are the instants without a value, by reason. FirstGap says when the first was, and why.
	Gaps     map[op.QueryProblem]int64 `json:"gaps"`
	FirstGap string                    `json:"firstGap,omitempty"`
	Series   []QuerySeries             `json:"series"`
}

// QuerySeries is one series of a query. Its mean is over the instants with a value.
type QuerySeries struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
	N      int64             `json:"n"`
	Mean   float64           `json:"mean"`
	Min    float64           `json:"min"`
	Max    float64           `json:"max"`
}
