package entrycheck

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/workload"
	"github.com/cnsbench/cnsbench/internal/workload/variable"
)

const second = op.Time(time.Second)

// ran is a run of 4 s from the barrier, which opened after 2 s, with a value each second.
func ran() *Run {
	r := &Run{Run: bundle.Run{State: bundle.Complete, BarrierAt: 2 * second, EndedAt: 6*second + second/10},
		Create: &op.Op{Started: 0, Ended: second, Outcome: op.OK},
		Instance: bundle.Instance{Name: "test-0",
			Starts: []op.InstanceStart{{Container: "c", Intended: 2 * second, At: 2*second + 1000}},
			End:    &op.InstanceEnd{At: 6 * second, OK: true, Containers: []op.ContainerEnd{{Name: "c"}}}},
		Raw:    []bundle.RawFile{{Instance: "test-0", Container: "c", File: "output/a.txt", Bytes: 10}},
		Volume: Usage{Bytes: 1 << 20, Files: 1, Changed: true},
		Scalars: []bundle.Scalar{{Scalar: metric.Scalar{Metric: "ops", Unit: "1/s",
			Traits: metric.Traits{Kind: metric.Rate, Better: metric.Higher}, Value: 1}}}}
	s := bundle.Series{Series: metric.Series{Metric: "ops", Unit: "1/s", Step: int64(second)}}
	for i := range op.Time(4) {
		s.Points = append(s.Points, metric.Point{At: (2 + i) * second, Value: 1})
	}
	r.Series = []bundle.Series{s}
	return r
}

// sound are the facts of an entry without a fault.
func sound() *Facts {
	text, _ := variable.Parse("size")
	class, _ := variable.Parse("storageClass")
	pod := engine.Pod{Sync: []string{"c"}}
	pod.Name, pod.Labels = "test-0-p", map[string]string{workload.LabelInstance: "test-0"}
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	pod.Spec.Containers = []corev1.Container{{Name: "c", VolumeMounts: []corev1.VolumeMount{{Name: "data",
		MountPath: "/data"}}}}
	stopped := ran()
	stopped.Instance.End.At, stopped.Run.EndedAt = 4*second+second/10, 4*second+second/5
	damaged := func(code string) *Run {
		return &Run{Run: bundle.Run{Validity: []bundle.Flag{{Name: code, Evidence: "test-0/c: no end"}}}}
	}
	return &Facts{Entry: &workload.Entry{Name: "e", Origin: "e.yaml",
		Parts:    []workload.Part{{Key: "pod.yaml", Text: "{{storageClass}} {{volumeSize}}"}},
		Defaults: map[string]string{"volumeSize": "1Gi"},
		Types:    map[string]variable.Type{"volumeSize": text, "storageClass": class},
		Meanings: map[string]string{"volumeSize": "size", "storageClass": "class"}},
		Instance: engine.Workload{Claims: make([]corev1.PersistentVolumeClaim, 1), Pods: []engine.Pod{pod}},
		Outputs:  []plan.Output{{Container: "c", File: "/output/*.txt", Parser: "p.sh", Script: "#!/bin/sh"}},
		Timeout:  time.Minute, Grace: 5 * time.Second, StopAfter: 2 * time.Second,
		Full: ran(), Stopped: stopped, Half: damaged("parserWarning"), Empty: damaged("outputUnread")}
}

// verdicts are the checks that did not pass, as NAME: STATUS.
func verdicts(r Report) string {
	var list []string
	for _, c := range r.Checks {
		if c.Status != Pass {
			list = append(list, c.Name+": "+string(c.Status))
		}
	}
	return strings.Join(list, ", ")
}

func TestJudge(t *testing.T) {
	flag := func(r *Run, name string) {
		r.Run.Validity = append(r.Run.Validity, bundle.Flag{Name: name, Evidence: "test-0/c: text"})
	}
	const early = "barrier: skip, volume: skip, ends: skip, exit: skip, output: skip, parser: skip, metrics: skip, " +
		"series: skip, stops: skip, halfOutput: skip, emptyOutput: skip"
	for _, tt := range []struct {
		name string
		harm func(*Facts)
		want string // verdicts
		says string // by the first of them
	}{
		{name: "sound", harm: func(*Facts) {}},
		{name: "does not parse", harm: func(f *Facts) { f.Problems = []Problem{{"bad", "write good"}}; f.Full = nil },
			want: "parses: fail, programs: skip, ready: skip, " + early + ", leaks: skip", says: "bad"},
		{name: "a variable without a type", harm: func(f *Facts) { delete(f.Entry.Types, "volumeSize") },
			want: "variables: fail", says: "volumeSize has no type"},
		{name: "text needs no type", harm: func(f *Facts) {
			f.Entry.Defaults["image"], f.Entry.Meanings["image"] = "{{TOOLS_IMAGE}}", "image"
		}},
		{name: "a variable without a description", harm: func(f *Facts) { delete(f.Entry.Meanings, "storageClass") },
			want: "variables: fail", says: "storageClass has no description"},
		{name: "a program is missing", harm: func(f *Facts) { f.Missing = []string{"no x"}; f.Full = nil },
			want: "programs: fail, ready: skip, " + early + ", leaks: skip", says: "no x"},
		{name: "never ready", harm: func(f *Facts) {
			f.Full.Create.Outcome, f.Full.Run.BarrierAt, f.Full.Volume = op.Timeout, op.Never, Usage{}
			f.Full.Instance.Starts[0].Container = "init"
		}, want: "ready: fail, " + early, says: "the last that began is init"},
		{name: "refused", harm: func(f *Facts) {
			f.Full.Create.Outcome, f.Full.Create.Message = op.Error, "no room"
			f.Full.Run.BarrierAt, f.Full.Volume = op.Never, Usage{}
		}, want: "ready: fail, " + early, says: "no room"},
		{name: "no barrier", harm: func(f *Facts) { f.Instance.Pods[0].Sync = nil }, want: "barrier: fail",
			says: "pod p does not wait"},
		{name: "before the barrier", harm: func(f *Facts) { f.Full.Instance.Starts[0].At = second },
			want: "barrier: fail", says: "1s before"},
		{name: "unused volume", harm: func(f *Facts) { f.Full.Volume = Usage{} }, want: "volume: fail", says: "/data"},
		{name: "no volume", harm: func(f *Facts) { f.Instance.Claims = nil }, want: "volume: fail",
			says: "it has no volume"},
		{name: "files came and went", harm: func(f *Facts) { f.Full.Volume = Usage{Changed: true} }},
		{name: "endless", harm: func(f *Facts) { f.Timeout = 3 * time.Second }, want: "ends: fail, exit: skip",
			says: "still ran 3s"},
		{name: "fails", harm: func(f *Facts) {
			f.Full.Instance.End.OK, f.Full.Run.Reason = false, "exited with 1"
			f.Full.Raw, f.Full.Scalars, f.Full.Series, f.Half, f.Empty = nil, nil, nil, nil, nil
		}, want: "exit: fail, output: skip, parser: skip, metrics: skip, series: skip, halfOutput: skip, emptyOutput: skip",
			says: "exited with 1"},
		{name: "no output", harm: func(f *Facts) { f.Full.Raw, f.Full.Scalars, f.Full.Series = nil, nil, nil },
			want: "output: fail, parser: skip, metrics: skip, series: skip, halfOutput: skip, emptyOutput: skip",
			says: "/output/*.txt was not written"},
		{name: "an empty output", harm: func(f *Facts) { f.Full.Raw[0].Bytes = 0 }, want: "output: fail", says: "is empty"},
		{name: "unread", harm: func(f *Facts) {
			flag(f.Full, "outputUnread")
			f.Full.Scalars, f.Full.Series = nil, nil
			f.Empty.Run.Validity[0].Name = "parserFailed"
		}, want: "parser: fail, metrics: skip, series: skip", says: "outputUnread"},
		{name: "flagged", harm: func(f *Facts) { flag(f.Full, "notDirect") }},
		{name: "no metric", harm: func(f *Facts) { f.Full.Scalars, f.Full.Series = nil, nil },
			want: "metrics: fail, series: skip", says: "found none"},
		{name: "no series", harm: func(f *Facts) { f.Full.Series = nil }, want: "series: skip", says: "over time"},
		{name: "an hour late", harm: func(f *Facts) { f.Full.Series[0].Points[3].At += 3600 * second },
			want: "series: fail", says: "go beyond"},
		{name: "another clock", harm: func(f *Facts) {
			for i := range f.Full.Series[0].Points {
				f.Full.Series[0].Points[i].At += 3600 * second
			}
		}, want: "series: fail", says: "ran from 0 to 4s"},
		{name: "a part of the time", harm: func(f *Facts) {
			f.Full.Series[0].Step /= 10
			f.Full.Series[0].Points = f.Full.Series[0].Points[:1]
		}, want: "series: fail", says: "cover"},
		{name: "a slow start", harm: func(f *Facts) {
			f.Full.Series[0].Step /= 10
			f.Full.Series[0].Points = f.Full.Series[0].Points[2:]
			f.Full.Series[0].Points[1].At += 9 * second / 10
		}},
		{name: "ignores SIGTERM", harm: func(f *Facts) { f.Stopped.Instance.End.Containers[0].Signal = "SIGKILL" },
			want: "stops: fail", says: "container c did not end within 5s"},
		{name: "ignores SIGTERM until its own end", harm: func(f *Facts) { f.Stopped.Instance.End.At = 6 * second },
			want: "stops: fail", says: "2s after SIGTERM"},
		{name: "a server", harm: func(f *Facts) {
			f.Instance.Pods[0].Service, f.Instance.Pods[0].Sync = true, nil
			f.Full.Instance.End, f.Stopped.Instance.End, f.Full.Series = nil, nil, nil
		}, want: "barrier: skip, ends: skip, exit: skip, series: skip"},
		{name: "a server that ignores SIGTERM", harm: func(f *Facts) {
			f.Instance.Pods[0].Service, f.Instance.Pods[0].Sync = true, nil
			f.Full.Instance.End, f.Stopped.Instance.End, f.Full.Series = nil, nil, nil
			f.Stopped.Run.EndedAt = 9 * second
		}, want: "barrier: skip, ends: skip, exit: skip, series: skip, stops: fail"},
		{name: "too short to be stopped", harm: func(f *Facts) { f.Stopped = nil }, want: "stops: skip", says: "too early"},
		{name: "silent about half an output", harm: func(f *Facts) {
			f.Half.Scalars, f.Half.Run.Validity = f.Full.Scalars, nil
		}, want: "halfOutput: fail", says: "1 metric and no warning"},
		{name: "the same flag with all of it", harm: func(f *Facts) {
			flag(f.Full, "slow")
			f.Half.Scalars, f.Half.Run.Validity[0].Name = f.Full.Scalars, "slow"
		}, want: "halfOutput: fail"},
		{name: "crashes", harm: func(f *Facts) {
			f.Empty.Run.Validity[0] = bundle.Flag{Name: "parserFailed",
				Evidence: "exit code 1: Traceback (most recent call last):\n  x\nIndexError: y"}
		}, want: "emptyOutput: fail", says: "IndexError: y"},
		{name: "panics", harm: func(f *Facts) {
			f.Half.Run.Validity[0] = bundle.Flag{Name: "outputUnread", Evidence: "w-0/w: the parser panicked: index out of range"}
		}, want: "halfOutput: fail", says: "index out of range"},
		{name: "leaks", harm: func(f *Facts) { f.Stopped.Left = []string{"mount /x"} }, want: "stops: fail, leaks: fail",
			says: "mount /x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := sound()
			tt.harm(f)
			r := Judge(f)
			if got := verdicts(r); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if tt.says != "" {
				for _, c := range r.Checks {
					if c.Status != Pass {
						if !strings.Contains(c.Message+c.Do, tt.says) {
							t.Errorf("%s says %q, want %q", c.Name, c.Message, tt.says)
						}
						break
					}
				}
			}
			for _, c := range r.Checks {
				if c.Message == "" || (c.Do == "") == (c.Status == Fail) {
					t.Errorf("%s: %s says %q and to do %q", c.Name, c.Status, c.Message, c.Do)
				}
			}
			if r.Passed+r.Failed+r.Skipped != len(r.Checks) {
				t.Errorf("%d, %d and %d of %d checks", r.Passed, r.Failed, r.Skipped, len(r.Checks))
			}
		})
	}
}

func TestText(t *testing.T) {
	f := sound()
	f.Vars = map[string]string{"volumeSize": "1Mi"}
	f.Full.Scalars, f.Full.Series, f.Half, f.Empty = nil, nil, nil, nil
	r := Judge(f)
	var b strings.Builder
	if err := r.Text(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"workload e (e.yaml), with volumeSize=1Mi\n",
		"  FAIL  metrics      parser p.sh found none\n",
		"                     to do: let the parser", "  skip               halfOutput, emptyOutput: there is no output",
		"12 passed, 1 failed, 3 skipped\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	for line := range strings.Lines(b.String()) {
		if len(line) > columns+1 {
			t.Errorf("a line of %d columns: %s", len(line), line)
		}
	}
}
