package entrycheck

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/workload"
)

func pass(format string, args ...any) Check {
	return Check{Status: Pass, Message: fmt.Sprintf(format, args...)}
}

func skip(format string, args ...any) Check {
	return Check{Status: Skip, Message: fmt.Sprintf(format, args...)}
}

// fail is a failed check; do says what to do.
func fail(do, format string, args ...any) Check {
	return Check{Status: Fail, Message: fmt.Sprintf(format, args...), Do: do}
}

func parses(f *Facts) Check {
	if len(f.Problems) == 0 && f.Entry != nil {
		return pass("%d files, %s, %s, %s", len(f.Entry.Parts), count(len(f.Instance.Claims), "volume"),
			count(len(f.Instance.Pods), "pod"), count(len(f.Entry.Variables()), "variable"))
	}
	var messages, hints []string
	for _, p := range f.Problems {
		messages = append(messages, p.Message)
		if p.Hint != "" {
			hints = append(hints, p.Hint)
		}
	}
	if len(hints) == 0 {
		hints = []string{"correct the file; docs/reference/workloads.md describes entries"}
	}
	return fail(strings.Join(hints, "; "), "%s", strings.Join(messages, "\n"))
}

// variables checks that each variable says what it is.
func variables(f *Facts) Check {
	if f.Entry == nil {
		return skip("the entry could not be read")
	}
	var wrong, do []string
	for _, name := range f.Entry.Variables() {
		if f.Entry.Meanings[name] == "" {
			wrong = append(wrong, name+" has no description")
			do = append(do, "cnsbench.description."+name)
		}
		if _, ok := f.Entry.Types[name]; ok {
			continue
		}
		if kind := typeFor(f.Entry.Defaults, name); kind != "" {
			wrong = append(wrong, name+" has no type, so that any text is accepted")
			do = append(do, "cnsbench.type."+name+": "+kind)
		}
	}
	if len(wrong) > 0 {
		return fail("add annotations to the entry: "+strings.Join(do, ", "), "%s", strings.Join(wrong, "; "))
	}
	return pass("all have a type, or are text, and a description")
}

// typeFor suggests the type of a variable that has none; empty: any text may be meant.
func typeFor(defaults map[string]string, name string) string {
	value, ok := defaults[name]
	switch {
	case name == "storageClass":
		return name
	case !ok:
		return "text, or another one"
	case value == "true" || value == "false":
		return "bool"
	}
	if _, err := strconv.ParseInt(value, 10, 64); err == nil {
		return "int"
	}
	if _, err := strconv.ParseFloat(value, 64); err == nil {
		return "number"
	}
	if _, err := time.ParseDuration(value); err == nil {
		return "duration"
	}
	if _, err := resource.ParseQuantity(value); err == nil {
		return "size"
	}
	return ""
}

func programs(f *Facts) Check {
	switch {
	case len(f.Problems) > 0:
		return skip("the entry does not parse")
	case len(f.Missing) > 0:
		return fail("install what is missing, or correct the command", "%s", strings.Join(f.Missing, "\n"))
	}
	return pass("those that containers and parsers name are here; what scripts start is not known before")
}

// notRun says why nothing was run; empty: it was.
func (f *Facts) notRun() string {
	switch {
	case len(f.Problems) > 0:
		return "the entry does not parse"
	case len(f.Missing) > 0:
		return "programs are missing"
	case f.Full == nil:
		return "it was not run"
	}
	return ""
}

// notReady says why the workload did no work; empty: it began.
func (f *Facts) notReady() string {
	if why := f.notRun(); why != "" {
		return why
	}
	if _, ok := f.Full.barrier(); !ok {
		return "it was not ready"
	}
	return ""
}

func ready(f *Facts) Check {
	if why := f.notRun(); why != "" {
		return skip("%s", why)
	}
	made := f.Full.Create
	switch {
	case made == nil:
		return fail("correct what the message says", "the run did not begin: %s", f.Full.why())
	case made.Outcome == op.Timeout || made.Outcome == op.Censored:
		return fail("give what waits a limit of its own, after which it fails with a message; or raise --timeout",
			"it was not ready within %v: init containers must end, and the others start%s", f.Timeout, f.Full.lastBegun())
	case made.Outcome != op.OK:
		return fail("correct what the message says", "%s", made.Message)
	}
	return pass("after %v", rounded(time.Duration(made.Ended-made.Started)))
}

// lastBegun names the container that began last, for a message.
func (r *Run) lastBegun() string {
	if n := len(r.Instance.Starts); n > 0 {
		return "; the last that began is " + r.Instance.Starts[n-1].Container
	}
	return "; none began"
}

// why is the reason of a run that failed.
func (r *Run) why() string {
	if r.Run.Reason != "" {
		return r.Run.Reason
	}
	if r.Err != nil {
		return r.Err.Error()
	}
	return "for no known reason"
}

// barrier checks that containers of workloads wait at the barrier, and began after it opened.
func barrier(f *Facts) Check {
	if why := f.notReady(); why != "" {
		return skip("%s", why)
	}
	opened, _ := f.Full.barrier()
	waiting := 0
	for i := range f.Instance.Pods {
		p := &f.Instance.Pods[i]
		if !p.Service && len(p.Sync) == 0 {
			return fail(`add the annotation sync: "true" to the pod, or the names of the containers that do the I/O`,
				"pod %s does not wait at the barrier: it begins before the measurement",
				strings.TrimPrefix(p.Name, p.Labels[workload.LabelInstance]+"-"))
		}
		waiting += len(p.Sync)
	}
	if waiting == 0 {
		return skip("all pods are servers, which do not wait")
	}
	var skew time.Duration
	begun := 0
	for _, s := range f.Full.Instance.Starts {
		if !s.Intended.Known() {
			continue
		}
		begun++
		skew = max(skew, time.Duration(s.At-opened))
		if s.At+maxClockError < opened {
			return fail("report this: the barrier did not hold", "container %s began %v before the barrier opened",
				s.Container, time.Duration(opened-s.At))
		}
	}
	if begun == 0 {
		return fail("read the messages of the other checks", "no container began after the barrier opened")
	}
	return pass("%s waited, and began at most %v after it opened", count(begun, "container"), rounded(skew))
}

// maxClockError is how far two clocks of one machine may differ, in ns.
const maxClockError = 1e6

// Endless reports whether no pod ends by itself.
func (f *Facts) Endless() bool {
	for i := range f.Instance.Pods {
		if !f.Instance.Pods[i].Service {
			return false
		}
	}
	return true
}

// ended reports whether the instance ended by itself.
func (f *Facts) ended() bool {
	end := f.Full.Instance.End
	return end != nil && !f.Endless() && f.Full.lasted() < f.Timeout
}

func ends(f *Facts) Check {
	switch why := f.notReady(); {
	case why != "":
		return skip("%s", why)
	case f.Endless():
		return skip("it is a server, which the run ends")
	case !f.ended():
		return fail("give it a duration or an amount of work as a variable, with a small value in an annotation "+
			"cnsbench.test.VAR or by --vars; or raise --timeout", "it still ran %v after the barrier opened", f.Timeout)
	}
	return pass("%v after the barrier opened", rounded(f.Full.lasted()))
}

// failed reports whether the workload ended with a failure.
func (f *Facts) failed() bool { return f.Full.Instance.End != nil && !f.Full.Instance.End.OK }

func exits(f *Facts) Check {
	switch why := f.notReady(); {
	case why != "":
		return skip("%s", why)
	case f.Full.Instance.End == nil && f.Endless() && f.Full.Run.State == bundle.Complete:
		return skip("it is a server, which the run ends")
	case f.Full.Instance.End == nil || !f.Full.Instance.End.OK:
		return fail("read its messages; --out keeps all of them in raw/", "%s", f.Full.why())
	case !f.ended():
		return skip("it did not end by itself")
	}
	return pass("0")
}

// volume checks that the volume is used.
func volume(f *Facts) Check {
	if why := f.notRun(); why != "" {
		return skip("%s", why)
	}
	all := fmt.Sprintf("all block I/O of its processes: %s written, %s read", size(f.Full.Counters.WriteBytes),
		size(f.Full.Counters.ReadBytes))
	used := f.Full.Volume
	switch mounts := f.mounts(); {
	case len(f.Instance.Claims) == 0:
		return fail("add a PersistentVolumeClaim with storageClassName: \"{{storageClass}}\", and mount it",
			"it has no volume, so nothing of the storage is measured")
	case len(mounts) == 0:
		return fail("add a volumeMount of the claim to the container that does the I/O",
			"no container mounts its volume")
	case used.Bytes > 0:
		return pass("it had up to %s in %s; %s", size(used.Bytes), count(used.Files, "file"), all)
	case used.Changed:
		return pass("files were made or removed on it; %s", all)
	case f.notReady() != "":
		return skip("%s", f.notReady())
	case f.failed():
		return skip("nothing was written to its volume: the workload failed")
	default:
		return fail("let it write to and read from "+strings.Join(mounts, ", "),
			"nothing was written to its volume; %s", all)
	}
}

// mounts are where containers mount claims.
func (f *Facts) mounts() (list []string) {
	for i := range f.Instance.Pods {
		spec := &f.Instance.Pods[i].Spec
		for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
			for _, m := range c.VolumeMounts {
				claim := slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool {
					return v.Name == m.Name && v.PersistentVolumeClaim != nil
				})
				if claim && !slices.Contains(list, m.MountPath) {
					list = append(list, m.MountPath)
				}
			}
		}
	}
	return list
}

// noticeable is how long a workload may take to end before that is compared with its own duration.
const noticeable = 300 * time.Millisecond

// stops checks that the workload ends when it is asked to.
func stops(f *Facts) Check {
	if why := f.notReady(); why != "" {
		return skip("%s", why)
	}
	r := f.Stopped
	if r == nil {
		return skip("it ended by itself %v after the barrier opened, too early to be stopped", rounded(f.Full.lasted()))
	}
	if _, ok := r.barrier(); !ok {
		return fail("run it again: it is not ready each time", "the second run did not begin: %s", r.why())
	}
	const do = "handle SIGTERM: in a script start the program with exec, or use trap; a program that ignores it delays " +
		"the end of every run"
	took := time.Duration(r.Run.EndedAt-r.Run.BarrierAt) - f.StopAfter // a server has no end of its own
	if end := r.Instance.End; end != nil {
		took = r.lasted() - f.StopAfter
		for _, c := range end.Containers {
			if c.Signal == "SIGKILL" && !c.OOM {
				return fail(do, "container %s did not end within %v of SIGTERM and was killed", c.Name, f.Grace)
			}
		}
	}
	switch {
	case took < 0:
		return skip("it ended by itself before it was to be stopped")
	case took >= f.Grace:
		return fail(do, "it did not end within %v of SIGTERM", f.Grace)
	case took > noticeable && r.lasted() > f.Full.lasted()*9/10:
		return fail(do, "it went on for %v after SIGTERM, until its own end", rounded(took))
	}
	if len(r.Left) > 0 {
		return fail("see leaks", "left behind: %s", strings.Join(r.Left, ", "))
	}
	return pass("%v after it was asked to; nothing was left", rounded(took))
}

// leaks checks that the runs left nothing.
func leaks(f *Facts) Check {
	if why := f.notRun(); why != "" {
		return skip("%s", why)
	}
	var left []string
	for _, r := range []*Run{f.Full, f.Stopped, f.Half, f.Empty} {
		if r != nil {
			left = append(left, r.Left...)
		}
	}
	if len(left) > 0 {
		return fail("run cnsbench cleanup on the bundle (--out keeps it), and report this", "left behind: %s",
			strings.Join(left, ", "))
	}
	return pass("no process, mount or directory")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func size(n int64) string { return units.Bytes(float64(n)) }

func rounded(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(100 * time.Microsecond)
}
