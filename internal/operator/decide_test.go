package operator

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/operator/runnerstatus"
	"github.com/cnsbench/cnsbench/internal/runner/runnerpod"
)

var (
	begin  = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	config = &Config{Image: "cnsbench/cnsbench:test", StartTimeout: 10 * time.Minute}
)

// benchmark returns a Benchmark that has the operator's finalizer.
func benchmark(change ...func(*v1alpha1.Benchmark)) *v1alpha1.Benchmark {
	b := &v1alpha1.Benchmark{ObjectMeta: metav1.ObjectMeta{Name: "fio", Namespace: "ns", UID: "0b6c", Generation: 1,
		CreationTimestamp: metav1.NewTime(begin), Finalizers: []string{Finalizer}}}
	for _, c := range change {
		c(b)
	}
	return b
}

func begun(b *v1alpha1.Benchmark) { b.Status.RunID = RunID(b) }

func ran(b *v1alpha1.Benchmark) {
	begun(b)
	b.Status.StartTime = &metav1.Time{Time: begin.Add(5 * time.Second)}
}

func deleted(b *v1alpha1.Benchmark) {
	b.DeletionTimestamp = &metav1.Time{Time: begin.Add(time.Minute)}
}

func with(condition string, status metav1.ConditionStatus, reason string) func(*v1alpha1.Benchmark) {
	return func(b *v1alpha1.Benchmark) {
		meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{Type: condition, Status: status, Reason: reason})
	}
}

func job(conditions ...batchv1.JobCondition) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "fio-job"},
		Status: batchv1.JobStatus{Conditions: conditions}}
}

func jobEnd(t batchv1.JobConditionType, at time.Time) batchv1.JobCondition {
	return batchv1.JobCondition{Type: t, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded",
		Message: "it has failed", LastTransitionTime: metav1.NewTime(at)}
}

func podIn(s corev1.ContainerState, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "fio-pod"}, Spec: corev1.PodSpec{NodeName: "node-1"},
		Status: corev1.PodStatus{Phase: corev1.PodPending,
			ContainerStatuses: []corev1.ContainerStatus{{Name: runnerpod.Container, State: s}}}}
	for _, c := range change {
		c(p)
	}
	return p
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func up() corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(begin.Add(5 * time.Second))}}
}

func over(code int32, reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason,
		Message:   message,
		StartedAt: metav1.NewTime(begin.Add(5 * time.Second)), FinishedAt: metav1.NewTime(begin.Add(time.Minute))}}
}

func said(e runnerstatus.End) corev1.ContainerState {
	return over(int32(e.ExitCode), "Completed", string(e.Encode()))
}

func evicted(asked time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.DeletionTimestamp = &metav1.Time{Time: asked.Add(grace)}
		p.DeletionGracePeriodSeconds = new(int64(grace.Seconds()))
		p.Status.Conditions = append(p.Status.Conditions,
			corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
				Reason: "DeletionByTaintManager", Message: "the node is unreachable"})
	}
}

// does is a summary of a decision: the objects that it creates and deletes, and the status and reason of the main
// conditions.
type does struct {
	Acts     string // "+" creates, "-" deletes, for example "+runner"
	Complete string // status/reason
	Failed   string
	Ready    string
	Clean    string
}

func summarize(d decision) does {
	var acts []string
	for name, yes := range map[string]bool{"+finalizer": d.addFinalizer, "-finalizer": d.removeFinalizer,
		"+runner": d.createRunner, "+cleanup": d.createCleanup,
		"-runner": d.deleteRunner, "-cleanup": d.deleteCleanup, "lost": d.lost != "", "left": d.leftBehind != ""} {
		if yes {
			acts = append(acts, name)
		}
	}
	word := func(t string) string {
		c := meta.FindStatusCondition(d.status.Conditions, t)
		if c == nil {
			return ""
		}
		return string(c.Status) + "/" + c.Reason
	}
	s := does{Complete: word(v1alpha1.ConditionComplete), Failed: word(v1alpha1.ConditionFailed),
		Ready: word(v1alpha1.ConditionReady), Clean: word(v1alpha1.ConditionClean)}
	slices.Sort(acts)
	s.Acts = strings.Join(acts, " ")
	return s
}

func TestDecide(t *testing.T) {
	failed := with(v1alpha1.ConditionFailed, metav1.ConditionTrue, reasonLost)
	complete := with(v1alpha1.ConditionComplete, metav1.ConditionTrue, reasonCompleted)
	clean := with(v1alpha1.ConditionClean, metav1.ConditionTrue, reasonByRunner)
	onNode7 := func(b *v1alpha1.Benchmark) {
		meta.SetStatusCondition(&b.Status.Conditions,
			metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: reasonUp,
				Message: "pod fio-pod on node n7"})
	}
	const pending = "False/Pending"
	cases := []struct {
		name    string
		o       observed
		after   time.Duration // time since the creation of the Benchmark; 0: one minute
		want    does
		message string // part of the message of some condition
	}{
		{name: "a new Benchmark gets its finalizer and its runner",
			o:    observed{benchmark: benchmark(func(b *v1alpha1.Benchmark) { b.Finalizers = nil })},
			want: does{Acts: "+finalizer +runner", Complete: pending, Failed: pending, Ready: pending}},
		{name: "a Job without a pod waits",
			o:    observed{benchmark: benchmark(begun), runner: work{job: job()}},
			want: does{Complete: "False/Starting", Failed: pending, Ready: "False/Starting"}},
		{name: "a Job that is refused its pod says why",
			o: observed{benchmark: benchmark(begun),
				runner: work{job: job(), trouble: `FailedCreate: serviceaccount "bench" not found`}},
			want:    does{Complete: "False/Starting", Failed: pending, Ready: "False/FailedCreate"},
			message: `Job fio-job: FailedCreate: serviceaccount "bench" not found`},
		{name: "and fails when the time is up", after: 11 * time.Minute,
			o: observed{benchmark: benchmark(begun),
				runner: work{job: job(), trouble: `FailedCreate: serviceaccount "bench" not found`}},
			want: does{Acts: "-runner", Complete: "False/FailedCreate", Failed: "True/FailedCreate",
				Ready: "False/Ended", Clean: "True/NothingMade"},
			message: "has not started within 10m0s"},
		{name: "an image that cannot be pulled",
			o: observed{benchmark: benchmark(begun),
				runner: work{job: job(), pod: podIn(waiting("ImagePullBackOff", "no such image"))}},
			want:    does{Complete: "False/Starting", Failed: pending, Ready: "False/ImagePullBackOff"},
			message: "pod fio-pod: no such image"},
		{name: "an image that never will be",
			o: observed{benchmark: benchmark(begun),
				runner: work{job: job(), pod: podIn(waiting("InvalidImageName", "bad"))}},
			want: does{Acts: "-runner", Complete: "False/InvalidImageName", Failed: "True/InvalidImageName",
				Ready: "False/Ended", Clean: "True/NothingMade"}},
		{name: "an unschedulable pod names the cause",
			o: observed{benchmark: benchmark(begun),
				runner: work{job: job(), pod: podIn(corev1.ContainerState{}, func(p *corev1.Pod) {
					p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
						Reason: "Unschedulable", Message: "0/2 nodes are available"}}
				})}},
			want:    does{Complete: "False/Starting", Failed: pending, Ready: "False/Unschedulable"},
			message: "0/2 nodes"},
		{name: "a runner that runs, without the results service",
			o:    observed{benchmark: benchmark(begun), runner: work{job: job(), pod: podIn(up())}},
			want: does{Complete: "False/Running", Failed: pending, Ready: "True/RunnerUp"}},
		{name: "a runner that tells where it stands",
			o: observed{benchmark: benchmark(ran), runner: work{job: job(), pod: podIn(up())},
				progress: &runnerstatus.Progress{Phase: "setting up"}},
			want: does{Complete: "False/SettingUp", Failed: pending, Ready: "True/RunnerUp"}},
		{name: "a run that is done",
			o: observed{benchmark: benchmark(ran),
				runner: work{job: job(), pod: podIn(said(runnerstatus.End{State: "complete", Clean: true}))}},
			want: does{Complete: "True/Completed", Failed: "False/Completed", Ready: "False/Ended",
				Clean: "True/ByRunner"}},
		{name: "a run whose operations failed in part is done, and says so",
			o: observed{benchmark: benchmark(ran), runner: work{job: job(), pod: podIn(said(runnerstatus.End{
				State: "complete", Clean: true, Ops: runnerstatus.Counts{"ok": 115, "error": 40, "timeout": 9}}))}},
			want: does{Complete: "True/OperationsFailed", Failed: "False/OperationsFailed", Ready: "False/Ended",
				Clean: "True/ByRunner"},
			message: "164 operations, 49 failed"},
		{name: "a file that is wrong, by the runner's own word",
			o: observed{benchmark: benchmark(ran), runner: work{job: job(), pod: podIn(said(runnerstatus.End{
				State: "failed", ExitCode: 1, Clean: true,
				Reason: "x.yaml:3:1: no snapshots of " + strings.Repeat("long ", 100)}))}},
			want: does{Complete: "False/InvalidBenchmark", Failed: "True/InvalidBenchmark", Ready: "False/Ended",
				Clean: "True/NothingMade"},
			message: "x.yaml:3:1: no snapshots of"},
		{name: "a run that missed an objective is done too",
			o: observed{benchmark: benchmark(ran),
				runner: work{job: job(), pod: podIn(said(runnerstatus.End{State: "complete", ExitCode: 3,
					Clean: true}))}},
			want: does{Complete: "True/ObjectivesMissed", Failed: "False/ObjectivesMissed", Ready: "False/Ended",
				Clean: "True/ByRunner"}},
		{name: "a run that left something is cleaned up",
			o: observed{benchmark: benchmark(ran),
				runner: work{job: job(), pod: podIn(said(runnerstatus.End{State: "failed", ExitCode: 2,
					Reason: "not everything could be removed"}))}},
			want: does{Acts: "+cleanup", Complete: "False/RunFailed", Failed: "True/RunFailed", Ready: "False/Ended",
				Clean: "False/CleaningUp"}, message: "not everything"},
		{name: "a file that is wrong",
			o: observed{benchmark: benchmark(begun),
				runner: work{job: job(), pod: podIn(over(1, "Error", "cnsbench: 1 problem"))}},
			want: does{Complete: "False/InvalidBenchmark", Failed: "True/InvalidBenchmark", Ready: "False/Ended",
				Clean: "True/NothingMade"}, message: "1 problem"},
		{name: "a runner out of memory is lost",
			o: observed{benchmark: benchmark(ran), runner: work{job: job(), pod: podIn(over(137, "OOMKilled", ""))}},
			want: does{Acts: "+cleanup lost", Complete: "False/RunnerLost", Failed: "True/RunnerLost",
				Ready: "False/Ended", Clean: "False/CleaningUp"}, message: "OOMKilled"},
		{name: "a runner whose pod was deleted is lost",
			o: observed{benchmark: benchmark(ran), runner: work{job: job(jobEnd(batchv1.JobFailed, begin))}},
			want: does{Acts: "+cleanup lost", Complete: "False/RunnerLost", Failed: "True/RunnerLost",
				Ready: "False/Ended", Clean: "False/CleaningUp"}, message: "pod of Job fio-job is gone"},
		{name: "and where it was is still known",
			o: observed{benchmark: benchmark(ran, onNode7),
				runner: work{job: job(jobEnd(batchv1.JobFailed, begin))}},
			want: does{Acts: "+cleanup lost", Complete: "False/RunnerLost", Failed: "True/RunnerLost",
				Ready: "False/Ended", Clean: "False/CleaningUp"}, message: "; it was pod fio-pod on node n7"},
		{name: "a runner whose Job was deleted is lost, and not made again",
			o: observed{benchmark: benchmark(ran)},
			want: does{Acts: "+cleanup lost", Complete: "False/RunnerLost", Failed: "True/RunnerLost",
				Ready: "False/Ended", Clean: "False/CleaningUp"}, message: "was deleted"},
		{name: "a runner on a node that does not answer gets a minute",
			o: observed{benchmark: benchmark(ran),
				runner: work{job: job(), pod: podIn(up(), evicted(begin.Add(30*time.Second)))}},
			want: does{Complete: "False/Running", Failed: pending, Ready: "True/RunnerUp"}},
		{name: "and is lost then", after: 2 * time.Minute,
			o: observed{benchmark: benchmark(ran),
				runner: work{job: job(), pod: podIn(up(), evicted(begin.Add(30*time.Second)))}},
			want: does{Acts: "+cleanup -runner lost", Complete: "False/RunnerLost", Failed: "True/RunnerLost",
				Ready: "False/Ended", Clean: "False/CleaningUp"}, message: "unreachable"},
		{name: "a pod that was refused by its node is lost",
			o: observed{benchmark: benchmark(begun),
				runner: work{job: job(), pod: podIn(corev1.ContainerState{}, func(p *corev1.Pod) {
					p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "OutOfcpu", "no CPU"
				})}},
			want: does{Acts: "-runner lost", Complete: "False/RunnerLost", Failed: "True/RunnerLost",
				Ready: "False/Ended", Clean: "True/NothingMade"}, message: "OutOfcpu"},
		{name: "a pod that others than its kubelet declared dead is lost",
			o: observed{benchmark: benchmark(ran), runner: work{job: job(), pod: podIn(up(), func(p *corev1.Pod) {
				p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "NodeLost", "the node is gone"
			})}},
			want: does{Acts: "+cleanup -runner lost", Complete: "False/RunnerLost", Failed: "True/RunnerLost",
				Ready: "False/Ended", Clean: "False/CleaningUp"}, message: "the node is gone"},
		{name: "one that is declared dead without a word is named with its node",
			o: observed{benchmark: benchmark(ran), runner: work{job: job(), pod: podIn(up(), func(p *corev1.Pod) {
				p.Spec.NodeName, p.Status.Phase = "n7", corev1.PodFailed
			})}},
			want: does{Acts: "+cleanup -runner lost", Complete: "False/RunnerLost", Failed: "True/RunnerLost", Ready: "False/Ended", Clean: "False/CleaningUp"}, message: "on node n7 failed: its container was not seen to end"},
		{name: "a runner whose end nobody saw is judged by its Job",
			o: observed{benchmark: benchmark(ran), runner: work{job: job(jobEnd(batchv1.JobComplete, begin))}},
			want: does{Acts: "+cleanup", Complete: "True/Completed", Failed: "False/Completed", Ready: "False/Ended",
				Clean: "False/CleaningUp"}, message: "its termination message with it"},
		{name: "a lost run waits for its clean-up",
			o: observed{benchmark: benchmark(ran, failed),
				cleanup: work{job: job(), pod: podIn(waiting("ImagePullBackOff", "no such image"))}},
			want: does{Failed: "True/RunnerLost", Clean: "False/CleaningUp"}, message: "no such image"},
		{name: "and is clean afterwards",
			o: observed{benchmark: benchmark(ran, failed),
				cleanup: work{job: job(jobEnd(batchv1.JobComplete, begin))}},
			want: does{Failed: "True/RunnerLost", Clean: "True/ByCleanup"}},
		{name: "a clean-up that failed says why",
			o: observed{benchmark: benchmark(ran, failed),
				cleanup: work{job: job(jobEnd(batchv1.JobFailed, begin)),
					pod: podIn(over(2, "Error", "cnsbench: may not delete pods"))}},
			want: does{Failed: "True/RunnerLost", Clean: "False/CleanupFailed"}, message: "may not delete pods"},
		{name: "and is tried again", after: 5 * time.Minute,
			o: observed{benchmark: benchmark(ran, failed),
				cleanup: work{job: job(jobEnd(batchv1.JobFailed, begin))}},
			want: does{Acts: "-cleanup", Failed: "True/RunnerLost", Clean: "False/CleanupFailed"}},
		{name: "what has ended and is clean is left alone",
			o: observed{benchmark: benchmark(ran, complete, clean),
				runner: work{job: job(jobEnd(batchv1.JobComplete, begin))}},
			want: does{Complete: "True/Completed", Clean: "True/ByRunner"}},
		{name: "also when its Job is gone",
			o:    observed{benchmark: benchmark(ran, complete, clean)},
			want: does{Complete: "True/Completed", Clean: "True/ByRunner"}},

		{name: "deleted before it began",
			o: observed{benchmark: benchmark(deleted)},
			want: does{Acts: "-finalizer", Complete: pending, Failed: pending, Ready: pending,
				Clean: "True/NothingMade"}},
		{name: "deleted before its pod could be made: nothing is left, which later nobody could tell",
			o: observed{benchmark: benchmark(begun, deleted),
				runner: work{job: job(), trouble: "FailedCreate: no such ServiceAccount"}},
			want: does{Acts: "-runner", Complete: "False/Starting", Failed: pending, Ready: "False/FailedCreate",
				Clean: "True/NothingMade"}},
		{name: "a runner that nobody saw may have left something",
			o: observed{benchmark: benchmark(begun)},
			want: does{Acts: "+cleanup lost", Complete: "False/RunnerLost", Failed: "True/RunnerLost",
				Ready: "False/Ended", Clean: "False/CleaningUp"}},
		{name: "a runner that began after it was given up is watched again",
			o: observed{benchmark: benchmark(begun, deleted,
				with(v1alpha1.ConditionClean, metav1.ConditionTrue,
					reasonNothing)), runner: work{job: job(), pod: podIn(up())}},
			want: does{Acts: "-runner", Complete: "False/Running", Failed: pending, Ready: "True/RunnerUp"}},
		{name: "deleted while it runs: the runner is told to end",
			o:    observed{benchmark: benchmark(ran, deleted), runner: work{job: job(), pod: podIn(up())}},
			want: does{Acts: "-runner", Complete: "False/Running", Failed: pending, Ready: "True/RunnerUp"}},
		{name: "and waited for",
			o:    observed{benchmark: benchmark(ran, deleted), runner: work{pod: podIn(up())}},
			want: does{Complete: "False/Running", Failed: pending, Ready: "True/RunnerUp"}},
		{name: "until it says that nothing is left",
			o: observed{benchmark: benchmark(ran, deleted),
				runner: work{job: job(), pod: podIn(said(runnerstatus.End{State: "interrupted", ExitCode: 130,
					Clean: true}))}},
			want: does{Acts: "-finalizer", Complete: "False/Interrupted", Failed: "True/Interrupted",
				Ready: "False/Ended", Clean: "True/ByRunner"}},
		{name: "or is gone without a word",
			o: observed{benchmark: benchmark(ran, deleted)},
			want: does{Acts: "+cleanup lost", Complete: "False/Interrupted", Failed: "True/Interrupted",
				Ready: "False/Ended", Clean: "False/CleaningUp"}},
		{name: "deleted while it is cleaned up",
			o:    observed{benchmark: benchmark(ran, failed, deleted), cleanup: work{job: job(), pod: podIn(up())}},
			want: does{Failed: "True/RunnerLost", Clean: "False/CleaningUp"}},
		{name: "deleted after it is clean",
			o: observed{benchmark: benchmark(ran, complete, clean, deleted),
				runner: work{job: job(jobEnd(batchv1.JobComplete, begin))}},
			want: does{Acts: "-finalizer", Complete: "True/Completed", Clean: "True/ByRunner"}},
		{name: "a namespace that goes does not wait for a clean-up that cannot be",
			o:    observed{benchmark: benchmark(ran, failed, deleted), closing: true},
			want: does{Acts: "-finalizer left", Failed: "True/RunnerLost"}},
		{name: "but for a runner that still cleans up",
			o:    observed{benchmark: benchmark(ran, deleted), closing: true, runner: work{pod: podIn(up())}},
			want: does{Complete: "False/Running", Failed: pending, Ready: "True/RunnerUp"}},
		{name: "a Benchmark that is let go is not touched any more",
			o: observed{benchmark: benchmark(deleted,
				func(b *v1alpha1.Benchmark) { b.Finalizers = []string{"other"} })},
			want: does{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.o.now = begin.Add(time.Minute)
			if c.after != 0 {
				c.o.now = begin.Add(c.after)
			}
			before := c.o.benchmark.DeepCopy()
			d := config.decide(c.o)
			if diff := cmp.Diff(c.want, summarize(d)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, c.o.benchmark); diff != "" {
				t.Errorf("the observation was changed:\n%s", diff)
			}
			if c.message != "" && !strings.Contains(messages(d), c.message) {
				t.Errorf("no condition has %q:\n%s", c.message, messages(d))
			}
		})
	}
}

func messages(d decision) string {
	var b strings.Builder
	for _, c := range d.status.Conditions {
		b.WriteString(c.Type + ": " + c.Message + "\n")
	}
	return b.String()
}

// TestLogTail checks that the log tail starts with a full line and contains no progress lines.
func TestLogTail(t *testing.T) {
	const live = "    12.3s  running [=====               ]  12 ok\n"
	cut := "hots of snapshots\n" + live + "panic: " + strings.Repeat("x", keptLog)
	for message, want := range map[string]string{
		"": "", "one line": "one line", live + "\nit broke\n": "it broke", cut: "panic: " + strings.Repeat("x",
			keptLog),
	} {
		if got := logTail(message); got != want {
			t.Errorf("%.40q: %.80q, want %.80q", message, got, want)
		}
	}
}

// TestMessages checks that the message for a printer column is one short line with the beginning of the text, and that
// every Event has a text.
func TestMessages(t *testing.T) {
	d := &decision{}
	d.fail(begin, reasonInvalid, "x.yaml:3:1: wrong\n"+strings.Repeat("and more ", 100))
	c := meta.FindStatusCondition(d.status.Conditions, v1alpha1.ConditionComplete)
	if len(c.Message) > maxColumn || !strings.HasPrefix(c.Message, "x.yaml:3:1: wrong and") {
		t.Errorf("column %q", c.Message)
	}
	if f := meta.FindStatusCondition(d.status.Conditions, v1alpha1.ConditionFailed); !strings.Contains(f.Message,
		"\n") {
		t.Errorf("the whole is lost: %q", f.Message)
	}
	for reason := range meanings {
		for _, condition := range []string{
			v1alpha1.ConditionInitialized, v1alpha1.ConditionComplete, v1alpha1.ConditionFailed, v1alpha1.ConditionClean} {
			told := transitions(nil, []metav1.Condition{{Type: condition, Status: metav1.ConditionTrue,
				Reason: reason}})
			for _, e := range told {
				if e.message == "" {
					t.Errorf("the Event of %s/%s has no text", condition, reason)
				}
			}
		}
	}
}
