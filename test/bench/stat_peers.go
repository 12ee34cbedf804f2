package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/observation"
	report "github.com/cnsbench/cnsbench/internal/report/comparison"
	"github.com/cnsbench/cnsbench/internal/stats/changepoint"
	words "github.com/cnsbench/cnsbench/internal/stats/verdict"
)

// Simulated data.
const (
	sigma    = 0.05 // of the logarithms of values
	historyN = 60   // runs of a history
	ofKind   = 40   // histories of each kind
	near     = 5    // runs by which a found place may be off
	samples  = 200  // pairs of samples of each kind
	sampleN  = 10   // values of a sample
)

// statPeers compares the search for change points with apache-otava's, and comparisons with benchstat's, on the same
// simulated data.
func statPeers(ctx context.Context, e *env, t *table) error {
	_, err := os.Stat(e.peer("benchstat")) // it is installed last
	if errors.Is(err, fs.ErrNotExist) {
		t.note("**Not measured**: run make stat-peers first.")
		return nil
	}
	if err := e.changePoints(ctx, t); err != nil {
		return err
	}
	return e.benchstat(ctx, t)
}

// history is a series with at most one shift.
type history struct {
	values []float64
	at     int // of the shift; 0: none
}

// kindOf is a kind of histories. Drifts have no truth: whatever is found is only counted.
type kindOf struct {
	name                  string
	shift, outlier, drift float64 // in σ
}

var kinds = []kindOf{
	{name: "stable"},
	{name: "stable, an outlier of 10 σ", outlier: 10},
	{name: "a shift of 2 σ", shift: 2},
	{name: "a shift of 2 σ, an outlier of 10 σ", shift: 2, outlier: 10},
	{name: "a drift of 3 σ", drift: 3},
}

// draw simulates a history.
func (k kindOf) draw(random *rand.Rand) history {
	h := history{values: make([]float64, historyN)}
	for i := range h.values {
		h.values[i] = 1000 * math.Exp(sigma*(random.NormFloat64()+k.drift*float64(i)/historyN))
	}
	if k.shift > 0 {
		h.at = 15 + random.IntN(historyN-30)
		for i := range h.values[h.at:] {
			h.values[h.at+i] *= math.Exp(k.shift * sigma)
		}
	}
	if k.outlier > 0 {
		h.values[random.IntN(historyN)] *= math.Exp(k.outlier * sigma)
	}
	return h
}

// changePoints searches 200 histories.
func (e *env) changePoints(ctx context.Context, t *table) error {
	random := rand.New(rand.NewPCG(e.seed, 1))
	var histories []history
	var series [][]float64
	for _, k := range kinds {
		for range ofKind {
			h := k.draw(random)
			histories, series = append(histories, h), append(series, h.values)
		}
	}
	peer, parameters, err := e.otava(ctx, series)
	if err != nil {
		return err
	}
	own := make([][]int, len(series))
	for i, s := range series {
		changes, err := changepoint.Find(s, changepoint.Options{Seed: e.seed})
		if err != nil {
			return err
		}
		for _, c := range changes {
			own[i] = append(own[i], c.Index)
		}
	}
	for i, k := range kinds {
		from := i * ofKind
		part := histories[from : from+ofKind]
		t.addChanges(k, "CNSBench", true, part, own[from:from+ofKind])
		t.addChanges(k, "apache-otava", false, part, peer[from:from+ofKind])
	}
	o := changepoint.Options{}.WithDefaults()
	t.note("%d histories of %d runs, σ = %g of the logarithms. CNSBench: α = %g, segments of at least %d. apache-otava "+
		"0.8.0 with its defaults: %s.", len(series), historyN, sigma, o.Alpha, o.MinSegment, parameters)
	return nil
}

// addChanges counts what one of the two found in histories of one kind.
func (t *table) addChanges(k kindOf, name string, own bool, histories []history, places [][]int) {
	some, one := 0, 0
	for i, found := range places {
		if len(found) > 0 {
			some++
		}
		if off := math.Abs(float64(append(found, -historyN)[0] - histories[i].at)); len(found) == 1 && off <= near {
			one++
		}
	}
	what, value, target, met := fmt.Sprintf("%s: %s", k.name, name), fmt.Sprintf("%d have a change", some), "", false
	switch {
	case k.drift > 0:
	case k.shift > 0:
		value, target = fmt.Sprintf("%d: one change, within %d runs", one, near), "≥ 90 %"
		met = one*100 >= ofKind*90
	default:
		target, met = "≤ 5 %", some*100 <= ofKind*5
	}
	if own && target != "" {
		t.add(ofKind, what, value, target, met)
	} else {
		t.info(ofKind, what, "%s", value)
	}
}

// peer is a program that make stat-peers installs.
func (e *env) peer(name string) string { return filepath.Join(e.root, "out", "peers", name) }

// otava returns the places that apache-otava finds in each series, and its parameters.
func (e *env) otava(ctx context.Context, series [][]float64) (places [][]int, parameters string, err error) {
	input, err := json.Marshal(series)
	if err != nil {
		return nil, "", err
	}
	cmd := exec.CommandContext(ctx, e.peer("otava/bin/python"), filepath.Join(e.root, "hack", "otava", "changes.py"))
	cmd.Stdin = bytes.NewReader(input)
	p, err := execute(cmd, nil)
	if err != nil {
		return nil, "", err
	}
	var answer struct {
		Parameters json.RawMessage
		Changes    [][]int
	}
	if err := json.Unmarshal(p.output, &answer); err != nil || len(answer.Changes) != len(series) {
		return nil, "", fmt.Errorf("apache-otava answered for %d of %d series: %w", len(answer.Changes), len(series), err)
	}
	return answer.Changes, strings.ReplaceAll(string(answer.Parameters), `"`, ""), nil
}

// benchstat compares pairs of samples.
func (e *env) benchstat(ctx context.Context, t *table) error {
	for _, k := range []struct {
		name      string
		shift     float64
		occasions int // that differ by 20 %; the values of a sample are divided among them
	}{{"no difference", 0, 1}, {"10 % shift", 0.1, 1}, {"no difference, 5 occasions that differ by 20 %", 0, 5}} {
		random := rand.New(rand.NewPCG(e.seed, math.Float64bits(k.shift)+uint64(k.occasions)))
		data := pairs(random, k.shift, k.occasions)
		own, err := compare.Run(data, compare.Options{})
		if err != nil {
			return err
		}
		if len(own.Comparisons) != samples {
			return fmt.Errorf("%d comparisons, want %d", len(own.Comparisons), samples)
		}
		peer, err := e.benchstatP(ctx, data)
		if err != nil {
			return err
		}
		significant, verdicts, peers := 0, 0, 0
		for i, c := range own.Comparisons {
			if c.P != nil && *c.P < 0.05 {
				significant++
			}
			if c.Verdict == words.Better || c.Verdict == words.Worse || c.Verdict == words.Different {
				verdicts++
			}
			if peer[i] < 0.05 {
				peers++
			}
		}
		t.info(samples, k.name, "CNSBench %d p < 0.05, %d verdicts of a difference; benchstat %d p < 0.05", significant,
			verdicts, peers)
	}
	return nil
}

// pairs are simulated samples of two levels, a metric for each pair.
func pairs(random *rand.Rand, shift float64, occasions int) *observation.Table {
	name := ""
	if occasions > 1 {
		name = "occasion"
	}
	of := map[string]float64{"b": math.Log1p(shift)}
	b := observation.NewBuilder([]string{"provider"}, name, "")
	for i := range samples {
		m := observation.Metric{Name: fmt.Sprintf("S%03d", i), Unit: "IOPS"}
		for _, level := range []string{"a", "b"} {
			for o := range occasions {
				day := 0.0
				if occasions > 1 {
					day = 0.2 * random.NormFloat64()
				}
				for range sampleN / occasions {
					b.Add(observation.Row{Levels: []string{level}, Occasion: fmt.Sprint(o), Metric: m,
						Value: 1000 * math.Exp(of[level]+day+sigma*random.NormFloat64())})
				}
			}
		}
	}
	return b.Table()
}

// benchstatP returns benchstat's p of each metric, in order.
func (e *env) benchstatP(ctx context.Context, t *observation.Table) ([]float64, error) {
	var text bytes.Buffer
	if err := report.WriteBenchstat(&text, t, map[string]string{"IOPS": "higher"}); err != nil {
		return nil, err
	}
	file := filepath.Join(e.tmp, "benchstat.txt")
	if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
		return nil, err
	}
	p, err := execute(exec.CommandContext(ctx, e.peer("benchstat"), "-format", "csv", "-row", ".name", "-col", "/provider",
		file), nil)
	if err != nil {
		return nil, err
	}
	r := csv.NewReader(bytes.NewReader(p.output))
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("benchstat: %w", err)
	}
	var list []float64
	for _, row := range rows {
		if !strings.HasPrefix(row[0], "S") {
			continue
		}
		_, rest, _ := strings.Cut(row[len(row)-1], "p=")
		text, _, _ := strings.Cut(rest, " ")
		p, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("benchstat: row %v has no p", row)
		}
		list = append(list, p)
	}
	if len(list) != samples {
		return nil, fmt.Errorf("benchstat compared %d of %d pairs", len(list), samples)
	}
	return list, nil
}
