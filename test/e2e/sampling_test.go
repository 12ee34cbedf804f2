//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// samplingJSON is the part of the summary about samples.
type samplingJSON struct {
	Sampling struct {
		Level    string
		Interval int64
		Costs    []struct {
			Level          string
			Samples        int
			CPUShare       float64
			EachNs         int64
			VolumeReadings int
			VolumeCPUShare float64
		}
		Steps []struct {
			At       int64
			Level    string
			Overhead float64
		}
	}
	Workloads []struct {
		Instances []struct {
			Detail *struct{ Volumes []struct{ UsedBytes int64 } }
		}
	}
	Volumes []struct {
		Volume, Driver   string
		Readings, Failed int
		Bytes, Inodes    *struct{ Total, Used, Available int64 }
		Abnormal         *int
	}
	Validity []struct{ Name, Severity, Evidence string }
}

// sampleJSON is a line of samples.jsonl.
type sampleJSON struct {
	At           int64
	WriteBytes   int64
	Level        string
	SamplerNanos int64
	Detail       *struct {
		IOWaitNanos int64
		Volumes     []struct {
			Volume    string
			UsedBytes int64
		}
	}
}

func (b *box) samples() (list []sampleJSON) {
	b.Helper()
	text, err := os.ReadFile(filepath.Join(b.bundle(), "series", "samples.jsonl"))
	if err != nil && !os.IsNotExist(err) {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var s sampleJSON
		decode(b, line, &s)
		list = append(list, s)
	}
	return list
}

// TestSampleLevels runs a workload at each level: the level and its interval are recorded, its cost is measured, and
// what it has is there, and no more.
func TestSampleLevels(t *testing.T) {
	for _, level := range []string{"none", "basic", "detailed"} {
		t.Run(level, func(t *testing.T) {
			b := newBox(t)
			r := b.bench(writesAtOnce+head+`spec:
  actions: [{name: w, createObjSpec: {workload: w}}]
  metrics: {level: `+level+`, interval: 250ms}
`, "--output", "json").wants(t, 0)
			var s samplingJSON
			decode(t, r.stdout, &s)
			if s.Sampling.Level != level || s.Sampling.Interval != int64(250*time.Millisecond) {
				t.Errorf("sampling %+v", s.Sampling)
			}
			list := b.samples()
			if level == "none" {
				if len(list) > 0 || len(s.Sampling.Costs) > 0 {
					t.Errorf("%d samples, costs %v", len(list), s.Sampling.Costs)
				}
				return
			}
			if len(list) < 10 {
				t.Fatalf("%d samples of 5 s each 250 ms", len(list))
			}
			last := list[len(list)-1]
			if last.Level != level || last.WriteBytes < 1<<20 || (last.Detail != nil) != (level == "detailed") {
				t.Errorf("last sample %+v", last)
			}
			if d := last.Detail; d != nil && (len(d.Volumes) != 1 || d.Volumes[0].Volume == "" || d.Volumes[0].UsedBytes == 0) {
				t.Errorf("volumes %+v", d.Volumes)
			}
			if x := s.Workloads[0].Instances[0].Detail; (x != nil) != (level == "detailed") || x != nil && len(x.Volumes) != 1 {
				t.Errorf("the summary has %+v", x)
			}
			c := s.Sampling.Costs
			if len(c) != 1 || c[0].Level != level || c[0].CPUShare <= 0 || c[0].CPUShare > 0.5 || c[0].EachNs <= 0 {
				t.Errorf("costs %+v", c)
			}
			b.volumesBySampling(level, &s)
			t.Logf("%s: %+v", level, c)
			b.clean()
		})
	}
}

// volumesBySampling checks that the driver was asked for its volume at the level detailed only, and what that has cost.
func (b *box) volumesBySampling(level string, s *samplingJSON) {
	b.Helper()
	text, err := os.ReadFile(filepath.Join(b.bundle(), "series", "volumes.jsonl"))
	if level != "detailed" {
		if !os.IsNotExist(err) || s.Volumes != nil {
			b.Errorf("%s: %s, %v", level, text, err)
		}
		return
	}
	n, c := strings.Count(string(text), "\n"), s.Sampling.Costs[0]
	if n < 10 || c.VolumeReadings < 10 || c.VolumeCPUShare <= 0 || c.VolumeCPUShare > 0.5 {
		b.Errorf("%d readings of 5 s each 250 ms, of %d the cost is %v", n, c.VolumeReadings, c.VolumeCPUShare)
	}
	if len(s.Volumes) != 1 {
		b.Fatalf("volumes %+v", s.Volumes)
	}
	v := s.Volumes[0]
	if !strings.HasSuffix(v.Driver, ".csi.cnsbench.dev") || v.Failed > 0 || v.Readings != n || v.Abnormal != nil ||
		v.Bytes == nil || v.Bytes.Used == 0 || v.Bytes.Available == 0 || v.Inodes == nil {
		b.Errorf("%+v, %d lines", v, n)
	}
}

// TestMaxOverhead: a run that may spend next to nothing on samples goes down level by level, says so, and takes no more
// samples but one at the end of the workload.
func TestMaxOverhead(t *testing.T) {
	b := newBox(t)
	r := b.bench(strings.Replace(writesAtOnce, "sleep 1.5", "sleep 12", 1)+head+`spec:
  actions: [{name: w, createObjSpec: {workload: w}}]
  metrics: {level: detailed, interval: 200ms, maxOverhead: 0.001}
`, "--output", "json").wants(t, 0)
	var s samplingJSON
	decode(t, r.stdout, &s)
	steps := s.Sampling.Steps
	if len(steps) != 2 || steps[0].Level != "basic" || steps[1].Level != "none" || steps[0].Overhead <= 1e-5 {
		t.Fatalf("steps %+v", steps)
	}
	said := 0
	for _, f := range s.Validity {
		if f.Name == "samplingReduced" && f.Severity == "warning" && strings.Contains(f.Evidence, "maxOverhead (0.001 %)") {
			said++
		}
	}
	if said != 2 {
		t.Errorf("said %d times: %+v", said, s.Validity)
	}
	list := b.samples()
	for _, x := range list[:len(list)-1] {
		if x.At > steps[1].At+int64(time.Second) || x.At > steps[0].At+int64(time.Second) && x.Level != "basic" {
			t.Errorf("sample %+v after the steps %+v", x, steps)
		}
	}
	b.clean()
}
