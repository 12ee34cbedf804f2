package imported

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// fioOutput has the fields of fio's JSON (fio 3) that become figures.
type fioOutput struct {
	Global fioOptions `json:"global options"`
	Jobs   []struct {
		Name    string     `json:"jobname"`
		Options fioOptions `json:"job options"`
		Error   int        `json:"error"`
		Read    fioStats   `json:"read"`
		Write   fioStats   `json:"write"`
		Trim    fioStats   `json:"trim"`
	} `json:"jobs"`
}

// fioOptions are those of a job file. An option without a value is on.
type fioOptions map[string]any

// reducesClock reports whether fio leaves out clock readings, and with them the latencies.
func (o fioOptions) reducesClock() (on, given bool) {
	v, given := o["gtod_reduce"]
	return given && v != "0" && v != "false", given
}

type fioStats struct {
	IOs       int64      `json:"total_ios"`
	IOPS      float64    `json:"iops"`
	Bandwidth float64    `json:"bw_bytes"`
	Latency   fioLatency `json:"lat_ns"`
	Complete  fioLatency `json:"clat_ns"`
}

type fioLatency struct {
	N          int64              `json:"N"`
	Mean       float64            `json:"mean"`
	Percentile map[string]float64 `json:"percentile"`
}

// parseFio reads the IOPS, the bandwidth and the latencies of each job and direction. Without clock readings
// (gtod_reduce) there are no latencies.
func parseFio(text string) ([]Figure, error) {
	out, err := decodeFio(text)
	if err != nil {
		return nil, err
	}
	var list []Figure
	seen := map[string]bool{}
	for _, j := range out.Jobs {
		if j.Error != 0 {
			return nil, fmt.Errorf("job %s failed with error %d: its figures are no trial", j.Name, j.Error)
		}
		if seen[j.Name] {
			return nil, fmt.Errorf("two jobs are named %s: run fio with group_reporting, or name them apart", j.Name)
		}
		seen[j.Name] = true
		for _, d := range []struct {
			name string
			fioStats
		}{{"read", j.Read}, {"write", j.Write}, {"trim", j.Trim}} {
			list = append(list, d.figures(strings.TrimSpace(j.Name+" "+d.name))...)
		}
	}
	return list, nil
}

func decodeFio(text string) (*fioOutput, error) {
	at := strings.IndexByte(text, '{') // fio prints warnings before its JSON
	if at < 0 {
		return nil, errors.New("no JSON: run fio with --output-format=json")
	}
	var out fioOutput
	if err := json.NewDecoder(strings.NewReader(text[at:])).Decode(&out); err != nil {
		return nil, fmt.Errorf("invalid JSON: %w", err)
	}
	return &out, nil
}

// flagsOfFio flags jobs whose latencies fio was asked not to measure.
func flagsOfFio(text string) []Flag {
	out, err := decodeFio(text)
	if err != nil {
		return nil // parseFio reports it
	}
	var jobs []string
	for _, j := range out.Jobs {
		on, given := j.Options.reducesClock()
		if !given {
			on, _ = out.Global.reducesClock()
		}
		if on {
			jobs = append(jobs, j.Name)
		}
	}
	if len(jobs) == 0 {
		return nil
	}
	return []Flag{{Name: "gtodReduce", Severity: "warning",
		Evidence: "gtod_reduce=1 in " + strings.Join(jobs, ", ") + ": no latency was measured"}}
}

// figures are those of one job and direction.
func (s *fioStats) figures(name string) []Figure {
	if s.IOs == 0 {
		return nil
	}
	list := []Figure{figureOf(name+" IOPS", "IOPS", s.IOPS), figureOf(name+" bandwidth", "B/s", s.Bandwidth)}
	if s.Latency.N > 0 {
		list = append(list, figureOf(name+" latency", "ns", s.Latency.Mean))
	}
	for _, p := range []struct{ key, name string }{{"50.000000", "p50"}, {"99.000000", "p99"}} {
		if x, ok := s.Complete.Percentile[p.key]; ok && s.Complete.N > 0 {
			list = append(list, figureOf(name+" completion latency "+p.name, "ns", x))
		}
	}
	return list
}
