package parser

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/op"
)

// The samples were written by fio 3.33 of Debian 12 with the job file of the entry dbench.
func dbenchSample(name string) Input {
	return Input{Files: os.DirFS(filepath.Join("testdata", "dbench", name)),
		AtWall: func(unix int64) op.Time { return op.Time(unix - 1795664200e9) }}
}

// TestDbench compares the ten figures with those of fio's report, read in another way.
func TestDbench(t *testing.T) {
	in := dbenchSample("whole")
	r, err := Dbench(in)
	must(t, err)
	if len(r.Warnings) > 0 {
		t.Errorf("warnings: %v", r.Warnings)
	}
	type direction struct {
		IOPS float64
		BW   float64                `json:"bw_bytes"`
		Lat  struct{ Mean float64 } `json:"lat_ns"`
	}
	var report struct {
		Jobs []struct {
			Jobname     string
			Read, Write direction
		}
	}
	text, err := os.ReadFile(filepath.Join("testdata", "dbench", "whole", "fio.json"))
	must(t, err)
	must(t, json.Unmarshal(text, &report))
	want := map[string]float64{}
	for _, j := range report.Jobs {
		switch j.Jobname {
		case "read_iops":
			want["Random read IOPS"] = j.Read.IOPS
		case "write_iops":
			want["Random write IOPS"] = j.Write.IOPS
		case "read_bw":
			want["Random read bandwidth"] = j.Read.BW
		case "write_bw":
			want["Random write bandwidth"] = j.Write.BW
		case "read_latency":
			want["Read latency"] = j.Read.Lat.Mean
		case "write_latency":
			want["Write latency"] = j.Write.Lat.Mean
		case "read_seq":
			want["Sequential read"] += j.Read.BW
		case "write_seq":
			want["Sequential write"] += j.Write.BW
		case "rwmix":
			want["Mixed read IOPS"], want["Mixed write IOPS"] = j.Read.IOPS, j.Write.IOPS
		}
	}
	got := map[string]float64{}
	for _, s := range r.Scalars {
		if _, ok := want[s.Metric]; ok {
			got[s.Metric] = s.Value
		}
	}
	if d := cmp.Diff(want, got); d != "" || len(want) != 10 {
		t.Errorf("figures (-want +got):\n%s", d)
	}
	latencies := map[string]bool{}
	for _, h := range r.Totals {
		latencies[h.Metric] = true
	}
	if !latencies["read_latency.read"] || !latencies["rwmix.write"] || len(r.Slices) == 0 {
		t.Errorf("latencies: %v, %d slices", latencies, len(r.Slices))
	}
}

// TestDbenchEnded: a test that did not begin has no figure, and the run is not valid. Half a report has no figure.
func TestDbenchEnded(t *testing.T) {
	in := dbenchSample("killed")
	in.Terminated = true
	r, err := Dbench(in)
	must(t, err)
	got := scalars(r)
	invalid := false
	for _, w := range r.Warnings {
		invalid = invalid || w.Code == "noIO" && w.Invalid
	}
	if got["Random read IOPS"] == 0 || got["Mixed read IOPS"] != 0 || !invalid {
		t.Errorf("figures: %v, warnings: %v", got, r.Warnings)
	}
	text, err := os.ReadFile(filepath.Join("testdata", "dbench", "whole", "fio.json"))
	must(t, err)
	in.Files = fstest.MapFS{"output/fio.json": {Data: text[:len(text)/2]}}
	r, err = Dbench(in)
	must(t, err)
	if d := cmp.Diff([]string{"fioTruncated"}, codes(r)); d != "" || len(r.Scalars) > 0 {
		t.Errorf("half a report: %v, %v", r.Scalars, r.Warnings)
	}
}
