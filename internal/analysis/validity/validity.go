// Package validity flags figures that cannot be trusted, with evidence. It corrects
// nothing.
package validity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/host"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// NoIO is a parser's flag for a workload that did no I/O.
const NoIO = "noIO"

// FailedOps and DroppedOps are the flags for ops without a result.
const (
	FailedOps  = "failedOps"
	DroppedOps = "droppedOps"
)

// ClockStep is the flag for wall clocks that were set during the run.
const ClockStep = "clockStep"

// OutputCut is the flag for discarded output of workloads. It is Invalid where figures
// were read from the output; its evidence then begins with INSTANCE/CONTAINER.
const OutputCut = "outputCut"

// Sources returns the INSTANCE/CONTAINER of a parser's flag. Older bundles have one flag
// for each, whose evidence begins with it.
func Sources(f bundle.Flag) []string {
	if len(f.Sources) > 0 {
		return f.Sources
	}
	source, _, _ := strings.Cut(f.Evidence, ": ")
	if f.Name == ReadsFromCache { // "INSTANCE read …"
		source, _, _ = strings.Cut(source, " ")
	}
	return []string{source}
}

// ReadsFromCache is the flag for reads that did not come from the device.
const ReadsFromCache = "readsFromCache"

// Metrics returns the metrics of the workloads that a flag concerns; nil: it concerns all their figures. Older bundles
// have none.
func Metrics(f bundle.Flag) []string {
	if f.Metrics == nil && f.Name == ReadsFromCache {
		return []string{metric.Read}
	}
	return f.Metrics
}

// Bounds of the flags.
const (
	lateBound      = int64(10e6) // ns: lateness p99 of a dispatcher that keeps up
	lateTailShare  = 0.1         // lateness p99 ÷ median response
	lateShare      = 0.05        // median lateness ÷ median response
	lateLeastOps   = 20          // fewer ops: info only
	skewBound      = int64(50e6) // ns between barrier and actual start
	failedWarning  = 0.01        // share of ops
	failedInvalid  = 0.10
	cpuShare       = 0.9        // of all CPUs
	leastBusyTime  = int64(1e9) // ns: shorter times are within the step of CPU accounting
	deviceShare    = 0.9        // device bytes ÷ client bytes on reads
	achievedShare  = 0.99
	harnessShare   = 0.05     // of an action's time that CNSBench's own parts take
	leastUnseen    = 0.01     // share of an action's time that may be the driver's
	leastReadBytes = 16 << 20 // fewer bytes: the ratio is not judged
)

// ClockShare is the greatest accepted error of an instant ÷ the measured time.
const ClockShare = 0.01

// Action has the figures of an action's ops that flags depend on.
type Action struct {
	Name                               string
	N, Failed, Censored, Dropped       int64
	Started                            int64 // of N
	Scheduled                          bool  // by a rate, not once at the start
	LatenessP50Ns, LatenessP99Ns       int64 // of those started
	ResponseP50Ns                      int64 // 0: unknown
	MaxErrorNs                         int64 // ± of the least certain milestone
	DoubtfulSpans                      []string
	OfferedPerSecond, StartedPerSecond float64 // 0: unknown
	DriverUnseen                       float64 // share of the time that may be the driver's
	Harness                            float64 // share of the time that CNSBench's own parts take in the op
}

// Check returns the flags recorded in the bundle, those that follow from the data, and
// more, worst first. A name and severity that is recorded is not computed again.
func Check(d *dataset.Data, actions []Action, more ...bundle.Flag) []bundle.Flag {
	flags := slices.Clone(d.Bundle.Run.Validity)
	add := func(f bundle.Flag, ok bool) {
		// A closed bundle has the flags of an earlier Check, with the words of its version.
		recorded := slices.ContainsFunc(d.Bundle.Run.Validity, func(g bundle.Flag) bool {
			return g.Name == f.Name && g.Severity == f.Severity
		})
		if ok && !recorded {
			flags = append(flags, f)
		}
	}
	add(incomplete(d))
	for _, a := range actions {
		add(dispatchLate(a))
		add(failures(a))
		add(dropped(a))
		add(belowOffered(a))
		add(clockError(a))
		add(harness(a))
	}
	add(driverUnseen(actions))
	add(generatorBusy(d))
	for _, u := range host.Of(d) {
		add(hostBusy(d, &u))
	}
	add(clockStep(d))
	add(skew(d))
	add(phases(d))
	add(phaseKilled(d))
	for _, f := range slices.Concat(cachedReads(d), missingOutputs(d), syncsDiffer(d), canarySaturated(d), more) {
		add(f, true)
	}
	order := []string{Invalid, Warning, Info}
	slices.SortStableFunc(flags, func(a, b bundle.Flag) int {
		return slices.Index(order, a.Severity) - slices.Index(order, b.Severity)
	})
	return flags
}

func incomplete(d *dataset.Data) (bundle.Flag, bool) {
	return flag("incomplete", Warning, "the bundle is incomplete: %s", strings.Join(d.Bundle.Warnings, "; ")),
		!d.Bundle.Complete
}

// dispatchLate judges scheduled ops only: those of an action without a rate are all due
// at one instant. With few ops it is info.
func dispatchLate(a Action) (bundle.Flag, bool) {
	if !a.Scheduled || a.ResponseP50Ns <= 0 {
		return bundle.Flag{}, false
	}
	late := a.LatenessP99Ns > max(lateBound, int64(lateTailShare*float64(a.ResponseP50Ns)))
	severity := Info
	if a.Started >= lateLeastOps {
		large := float64(a.LatenessP50Ns) > lateShare*float64(a.ResponseP50Ns)
		if late = late || large; late {
			severity = Warning
		}
	}
	return flag("dispatchLate", severity,
		"%s: %d ops were started %s (median) to %s (p99) after they were due, median response %s",
		a.Name, a.Started, ns(a.LatenessP50Ns), ns(a.LatenessP99Ns), ns(a.ResponseP50Ns)), late
}

func failures(a Action) (bundle.Flag, bool) {
	bad := a.Failed + a.Censored
	share := float64(bad) / float64(max(1, a.N))
	severity := Info
	switch {
	case share > failedInvalid:
		severity = Invalid
	case share > failedWarning:
		severity = Warning
	}
	return flag(FailedOps, severity, "%s: of %d ops %d failed or timed out and %d had not ended", a.Name, a.N,
		a.Failed, a.Censored), bad > 0
}

func dropped(a Action) (bundle.Flag, bool) {
	return flag(DroppedOps, Warning, "%s: %d of %d ops were never started; they count as infinite", a.Name, a.Dropped,
		a.N), a.Dropped > 0
}

// belowOffered flags an action whose ops all succeeded: only a backlog of starts can make
// its achieved rate lower than the offered one. A backlog is at least one op.
func belowOffered(a Action) (bundle.Flag, bool) {
	share := a.StartedPerSecond / a.OfferedPerSecond
	return flag("achievedBelowOffered", Warning, "%s: %s of %s ops per second were started", a.Name,
			units.Count(a.StartedPerSecond), units.Count(a.OfferedPerSecond)),
		a.Dropped+a.Failed+a.Censored == 0 && a.OfferedPerSecond > 0 && share < achievedShare &&
			(1-share)*float64(a.N) >= 1
}

// clockError concerns the op's latency, or only some spans.
func clockError(a Action) (bundle.Flag, bool) {
	if a.ResponseP50Ns > 0 && float64(a.MaxErrorNs) > ClockShare*float64(a.ResponseP50Ns) {
		return flag("clockError", Warning, "%s: instants are known to ± %s, the median response is %s", a.Name,
			ns(a.MaxErrorNs), ns(a.ResponseP50Ns)), true
	}
	return flag("clockError", Info, "%s: the error of clocks is more than %g %% of the median of these spans: %s",
		a.Name, 100*ClockShare, strings.Join(a.DoubtfulSpans, ", ")), len(a.DoubtfulSpans) > 0
}

// clockStep flags wall clocks that were set during the run.
func clockStep(d *dataset.Data) (bundle.Flag, bool) {
	type machine struct {
		where string
		op.WallReadings
	}
	var all []*machine
	byID := map[string]*machine{}
	for _, m := range slices.SortedStableFunc(slices.Values(d.Machines), func(a, b op.Machine) int {
		return cmp.Compare(a.At, b.At)
	}) {
		of := byID[m.ID]
		if of == nil {
			of = &machine{where: "the node of " + m.Instance}
			byID[m.ID], all = of, append(all, of)
		}
		if m.Instance == "" {
			of.where = where(d, &host.Use{})
		}
		of.Add(&m)
	}
	var parts []string
	for _, of := range all {
		for _, s := range of.Steps {
			direction := "forward"
			if s.ByNanos < 0 {
				direction = "back"
			}
			parts = append(parts, fmt.Sprintf("the wall clock of %s was set %s by %s between %.1f s and %.1f s of the run",
				of.where, direction, ns(max(s.ByNanos, -s.ByNanos)), float64(s.From)/1e9, float64(s.To)/1e9))
		}
	}
	return flag(ClockStep, Warning, "%s; durations and rates do not depend on it, and wall-clock times in outputs of "+
		"workloads are placed by it", strings.Join(parts[:min(maxNames, len(parts))], "; ")), len(parts) > 0
}

// harness flags figures that CNSBench's own parts make larger.
func harness(a Action) (bundle.Flag, bool) {
	return flag("harness", Warning, "%s: %.0f %% of its time is CNSBench's own: an init container copies the agent into "+
		"each pod. Use --agent image where nodes can mount images as volumes, or an image with the agent and --agent baked",
		a.Name, 100*a.Harness), a.Harness > harnessShare
}

// driverUnseen flags actions in which the driver's time cannot be separated.
func driverUnseen(actions []Action) (bundle.Flag, bool) {
	var parts []string
	for _, a := range actions {
		if a.DriverUnseen >= leastUnseen {
			parts = append(parts, fmt.Sprintf("%.0f %% of %s", 100*a.DriverUnseen, a.Name))
		}
	}
	return flag("driverUnseen", Info,
		"no calls of the driver were observed in %s: that time is the driver's or that of the "+
			"component named with it; a CSI proxy on the driver's socket separates them "+
			"(cnsbench install --csi-proxy DRIVER, or --csi-proxy of run)",
		strings.Join(parts, ", ")), len(parts) > 0
}

// generatorBusy compares the CPU time of all instances with the time in which any of
// them ran. The number of CPUs is known only where all ran on one machine.
func generatorBusy(d *dataset.Data) (bundle.Flag, bool) {
	env, err := d.Bundle.Environment()
	if err != nil || env.CPU.Count == 0 || !d.Bundle.Run.OneMachine() {
		return bundle.Flag{}, false
	}
	var cpu int64
	var ran []dataset.Window
	for i := range d.Samples {
		s := &d.Samples[i]
		if s.Last.At > s.First.At {
			cpu += s.Last.CPUNanos - s.First.CPUNanos
			ran = append(ran, dataset.Window{From: s.First.At, To: s.Last.At})
		}
	}
	slices.SortFunc(ran, func(a, b dataset.Window) int { return cmp.Compare(a.From, b.From) })
	var wall op.Time
	for _, span := range dataset.UnionOf(ran) {
		wall += span.To - span.From
	}
	cpus := float64(cpu) / float64(max(1, wall))
	return flag("generatorCPUBound", Warning,
			"the workloads used %.1f of %d CPUs: the load generator may be what was measured", cpus, env.CPU.Count),
		int64(wall) >= leastBusyTime && cpus > cpuShare*float64(env.CPU.Count)
}

// remoteStore reports whether an instance reads objects that are on no device of its own.
func remoteStore(d *dataset.Data, instance string) bool {
	c := d.Creates(dataset.ActionOf(instance))
	return c != nil && c.ObjectSpec != nil && c.ObjectSpec.Storage.FileSpec == nil
}

// cachedReads compares the bytes that the tool read with those that the kernel read from
// devices for it, over the time of the samples. The kernel counts them for block devices only.
func cachedReads(d *dataset.Data) []bundle.Flag {
	var flags []bundle.Flag
	for i := range d.Samples {
		s := &d.Samples[i]
		if remoteStore(d, s.Instance) {
			continue
		}
		client := 0.0
		for _, x := range d.Series {
			if x.Instance != s.Instance || x.Metric != metric.Read+metric.Bandwidth {
				continue
			}
			for _, p := range x.Points {
				if p.At >= s.First.At && p.At+op.Time(x.Step) <= s.Last.At {
					client += p.Value * float64(x.Step) / 1e9
				}
			}
		}
		device := float64(s.Last.ReadBytes - s.First.ReadBytes)
		if client <= leastReadBytes || device >= deviceShare*client {
			continue
		}
		var f bundle.Flag
		if s.Last.Uncounted != "" {
			f = flag("deviceReadsUnknown", Info, "%s: it is not known whether the %s that it read came from a cache: %s. "+
				"To know, compare with the counters of the provider, or repeat with caches dropped (on the servers too) "+
				"or direct I/O", s.Instance, units.Bytes(client), s.Last.Uncounted.Words())
		} else {
			f = flag(ReadsFromCache, Invalid, "%s: it read %s, of which only %s (%.0f %%) came from the device",
				s.Instance, units.Bytes(client), units.Bytes(device), 100*device/client)
		}
		f.Sources, f.Metrics = []string{s.Instance}, []string{metric.Read}
		flags = append(flags, f)
	}
	return flags
}

// phases notes that a comparison over time may span phases.
func phases(d *dataset.Data) (bundle.Flag, bool) {
	var changing []string
	for _, a := range d.Spec.Actions {
		if len(d.Phases(a.Name)) > 0 {
			changing = append(changing, a.Name)
		}
	}
	return flag("phases", Info, "%s has phases: a comparison over time is also one of phases",
			strings.Join(changing, ", ")),
		len(changing) > 0 && len(d.Spec.Actions) > len(changing)
}

// phaseKilled names the containers that did not end with their phase: they ran beside the next one until they were killed.
func phaseKilled(d *dataset.Data) (bundle.Flag, bool) {
	var killed []string
	for _, i := range d.Instances {
		if i.End == nil {
			continue
		}
		for _, c := range i.End.Containers {
			if c.PhaseOver && c.Signal == "SIGKILL" {
				killed = append(killed, fmt.Sprintf("%s/%s: %s", i.Name, c.Name, c.Message))
			}
		}
	}
	return flag("phaseKilled", Warning, "%s", strings.Join(killed, "; ")), len(killed) > 0
}

func skew(d *dataset.Data) (bundle.Flag, bool) {
	worst, label := int64(0), ""
	for _, i := range d.Instances {
		for _, s := range i.Starts {
			if s.Intended.Known() && s.At.Known() && int64(s.At-s.Intended) > worst {
				worst, label = int64(s.At-s.Intended), i.Name+"/"+s.Container
			}
		}
	}
	return flag("startSkew", Warning, "%s began %s after the barrier opened", label, ns(worst)), worst > skewBound
}

// missingOutputs lists by action the instances without figures: invalid where others of
// the action have some, info where they left output that no parser read. A workload
// with neither is not expected to have figures.
func missingOutputs(d *dataset.Data) []bundle.Flag {
	has, parsed, raw := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, h := range slices.Concat(d.Totals, d.Slices) {
		has[h.Instance], parsed[h.Action] = true, true
	}
	for _, s := range d.Scalars {
		has[s.Instance], parsed[s.Action] = true, true
	}
	files, _ := d.Bundle.RawFiles() // an unreadable list counts as empty
	for _, f := range files {
		raw[f.Instance] = raw[f.Instance] || f.Bytes > 0
	}
	var actions []string
	missing := map[string][]string{}
	for _, i := range d.Instances {
		action := dataset.ActionOf(i.Name)
		if has[i.Name] || !parsed[action] && !raw[i.Name] {
			continue
		}
		if missing[action] == nil {
			actions = append(actions, action)
		}
		missing[action] = append(missing[action], i.Name)
	}
	var flags []bundle.Flag
	for _, a := range actions {
		if parsed[a] {
			f := flag("outputMissing", Invalid, "no figures of %s; other instances of %s have some", Instances(missing[a]),
				a)
			f.Sources = missing[a]
			flags = append(flags, f)
		} else {
			flags = append(flags, flag("outputMissing", Info, "%s left output without figures", Instances(missing[a])))
		}
	}
	return flags
}

// maxNames is how many instances are named in one piece of evidence.
const maxNames = 5

// Instances names instances in a sentence: one by name, several by number and the names
// of the first.
func Instances(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	list := names[:min(maxNames, len(names))]
	more := ""
	if len(names) > maxNames {
		more = ", …"
	}
	return fmt.Sprintf("%d instances (%s%s)", len(names), strings.Join(list, ", "), more)
}
