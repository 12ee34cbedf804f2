package summary

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
)

func named(names ...string) []Metric {
	var ms []Metric
	for _, n := range names {
		one := 1.0
		ms = append(ms, Metric{Name: n, PerSecond: &one})
	}
	return ms
}

// TestStagesOfBenchmark: what is measured is first, the rest in the order of its
// stages, and only the measured is a headline.
func TestStagesOfBenchmark(t *testing.T) {
	const object = `{"actions":[{"name":"o","createObjSpec":{"workload":"object","objectSpec":{"stages":[%]}}},{"name":"fio","createObjSpec":{"workload":"fio"}}]}`
	const around = `{"name":"prepare","works":[{"type":"prepare"}]},%,{"name":"cleanup","works":[{"type":"cleanup"}]},{"name":"all.gone","works":[{"type":"dispose"}]}`
	for _, tt := range []struct {
		name, stages string
		metrics      []string
		want         string // those not measured in brackets
		line         string
	}{
		{"one is measured", strings.Replace(around, "%", `{"name":"main","works":[{"type":"normal"}]}`, 1),
			[]string{"all.gone.dispose", "cleanup.delete", "prepare.write", "prepare.write.firstByte", "read",
				"read.firstByte"},
			"read read.firstByte (prepare.write) (prepare.write.firstByte) (cleanup.delete) (all.gone.dispose)",
			"o, 0 instances: read 1 IOPS; read.firstByte 1 IOPS."},
		{"two are", strings.Replace(around, "%",
			`{"name":"z","works":[{"type":"normal"}]},{"name":"a","works":[{"type":"normal"},{"type":"prepare"}]}`, 1),
			[]string{"a.read", "cleanup.delete", "prepare.write", "z.read"},
			"z.read a.read (prepare.write) (cleanup.delete)",
			"o, 0 instances: z.read 1 IOPS; a.read 1 IOPS."},
		{"a part has the name of a stage before it",
			`{"name":"write","works":[{"type":"prepare"}]},{"name":"main","works":[{"type":"normal"}]}`,
			[]string{"write", "write.firstByte"}, "write write.firstByte", "o, 0 instances: write 1 IOPS; write.firstByte 1 IOPS."},
		{"none is", `{"name":"prepare","works":[{"type":"prepare"}]}`, []string{"prepare.write"}, "(prepare.write)",
			"o, 0 instances: prepare.write 1 IOPS."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := &dataset.Data{Bundle: &bundle.Bundle{}}
			if err := json.Unmarshal([]byte(strings.Replace(object, "%", tt.stages, 1)), &d.Spec); err != nil {
				t.Fatal(err)
			}
			s := &Summary{Workloads: []Workload{{Action: "o", Metrics: named(tt.metrics...), Instances: nil}}}
			s.stages(d)
			var got []string
			for _, m := range s.Workloads[0].Metrics {
				if m.Unmeasured {
					m.Name = "(" + m.Name + ")"
				}
				got = append(got, m.Name)
			}
			if text := strings.Join(got, " "); text != tt.want {
				t.Errorf("the order is %s, want %s", text, tt.want)
			}
			if lines := workloadLines(s); len(lines) != 1 || lines[0] != tt.line {
				t.Errorf("it says %q, want %q", lines, tt.line)
			}
		})
	}
	d := &dataset.Data{Bundle: &bundle.Bundle{}}
	if err := json.Unmarshal([]byte(strings.Replace(object, "%", "", 1)), &d.Spec); err != nil {
		t.Fatal(err)
	}
	s := &Summary{Workloads: []Workload{{Action: "fio", Metrics: named("cleanup.x", "read")}}}
	if s.stages(d); s.Workloads[0].Metrics[0].Unmeasured || s.Workloads[0].Metrics[0].Name != "cleanup.x" {
		t.Error("metrics of another tool were sorted by stages")
	}
}

// TestStepsOfUnfinished: a run that was killed in a search says how far it came in
// one line; whole runs have stages of whatever name.
func TestStepsOfUnfinished(t *testing.T) {
	s := &Summary{}
	for _, a := range []string{"warm", "main.find01.one", "main.find02.one", "other.w8.r1", "main.finder"} {
		s.Workloads = append(s.Workloads, Workload{Action: a, Metrics: named("read")})
	}
	want := []string{"warm, 0 instances: read 1 IOPS.",
		"main: 2 steps of a search or a scaling, cut off before its end; the result is written at the end of the run.",
		"other: 1 step of a search or a scaling, cut off before its end; the result is written at the end of the run.", "main.finder, 0 instances: read 1 IOPS."}
	if got := workloadLines(s); !slices.Equal(got, want) {
		t.Errorf("it says\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if s.Complete = true; len(workloadLines(s)) != 5 {
		t.Error("stages of a whole run were folded")
	}
}

// TestStagesOfObjectRun: of a run of object storage on its own stages that prepare
// and clear away are no headlines, unless nothing else is there.
func TestStagesOfObjectRun(t *testing.T) {
	d := &dataset.Data{Bundle: &bundle.Bundle{Run: bundle.Run{Engine: bundle.Objects, Plan: json.RawMessage(
		`{"stages":[{"name":"init","works":[{"name":"init","kind":"init"}]},{"name":"main","works":[{"name":"one","kind":"normal"},{"name":"fill","kind":"prepare"}]},{"name":"w","works":[{"name":"w","kind":"normal"}]}]}`)}}}
	for _, tt := range []struct{ actions, want []string }{
		{[]string{"init", "main.one", "main.fill", "w", "main.find01"}, []string{"main.one", "w", "main.find01"}},
		{[]string{"init", "main.fill"}, []string{"init", "main.fill"}},
	} {
		s := &Summary{Complete: true}
		for _, a := range tt.actions {
			s.Workloads = append(s.Workloads, Workload{Action: a, Metrics: named("read")})
		}
		s.stages(d)
		var got []string
		for _, l := range workloadLines(s) {
			who, _, _ := strings.Cut(l, ",")
			got = append(got, who)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("of %v the headlines are %v, want %v", tt.actions, got, tt.want)
		}
	}
}
