package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
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
func statPeers(ctx context.Context, e *env) (table, error) {
	var t table
	err := e.changePoints(ctx, &t)
	if err == nil {
		err = e.benchstat(ctx, &t)
	}
	return t, err
}

// history is a series with at most one shift.
type history struct {
	values []float64
	at     int // of the shift; 0: none
}

// kindOf is a kind of histories. Drifts have no truth: whatever is found is only counted.
type kindOf struct {
	name          string
	stable, drift bool
	draw          func(*rand.Rand) history
}

func kinds() []kindOf {
	noise := func(random *rand.Rand) history {
		h := history{values: make([]float64, historyN)}
		for i := range h.values {
			h.values[i] = 1000 * math.Exp(sigma*random.NormFloat64())
		}
		return h
	}
	shift := func(random *rand.Rand) history {
		h := noise(random)
		h.at = 15 + random.IntN(historyN-30)
		for i := range h.values[h.at:] {
			h.values[h.at+i] *= math.Exp(2 * sigma)
		}
		return h
	}
	outlier := func(random *rand.Rand, h history) history {
		h.values[random.IntN(historyN)] *= math.Exp(10 * sigma)
		return h
	}
	return []kindOf{
		{"stable", true, false, noise},
		{"stable, an outlier of 10 σ", true, false, func(r *rand.Rand) history { return outlier(r, noise(r)) }},
		{"a shift of 2 σ", false, false, shift},
		{"a shift of 2 σ, an outlier of 10 σ", false, false, func(r *rand.Rand) history { return outlier(r, shift(r)) }},
		{"a drift of 3 σ", false, true, func(r *rand.Rand) history {
			h := noise(r)
			for i := range h.values {
				h.values[i] *= math.Exp(3 * sigma * float64(i) / historyN)
			}
			return h
		}},
	}
}

// changePoints searches 200 histories.
func (e *env) changePoints(ctx context.Context, t *table) error {
	random := rand.New(rand.NewPCG(e.seed, 1))
	var histories []history
	var series [][]float64
	for _, k := range kinds() {
		for range ofKind {
			h := k.draw(random)
			histories, series = append(histories, h), append(series, h.values)
		}
	}
	peer, parameters, err := e.otava(ctx, series)
	if errors.Is(err, os.ErrNotExist) {
		t.note("**%v**", err)
	} else if err != nil {
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
	for i, k := range kinds() {
		from := i * ofKind
		part := histories[from : from+ofKind]
		t.addChanges(k, "CNSBench", true, part, own[from:from+ofKind])
		if peer != nil {
			t.addChanges(k, "apache-otava", false, part, peer[from:from+ofKind])
		}
	}
	o := changepoint.Options{}.WithDefaults()
	t.note("%d histories of %d runs, σ = %g of the logarithms. CNSBench: α = %g, segments of at least %d.", len(series),
		historyN, sigma, o.Alpha, o.MinSegment)
	if peer != nil {
		t.note("apache-otava 0.8.0 with its defaults: %s.", parameters)
	}
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
	what := fmt.Sprintf("%s: %s", k.name, name)
	switch {
	case k.stable && own:
		t.add(what, fmt.Sprintf("%d alarmed", some), "≤ 5 %", metIf(some*100 <= ofKind*5), ofKind)
	case k.stable:
		t.info(ofKind, what, "%d alarmed", some)
	case k.drift:
		t.info(ofKind, what, "%d have a change", some)
	case own:
		t.add(what, fmt.Sprintf("%d: one change, within %d runs", one, near), "≥ 90 %", metIf(one*100 >= ofKind*90), ofKind)
	default:
		t.info(ofKind, what, "%d: one change, within %d runs", one, near)
	}
}

// peer is a program that make stat-peers installs.
func (e *env) peer(name string) string { return filepath.Join(e.root, "out", "peers", name) }

// otava returns the places that apache-otava finds in each series, and its parameters.
func (e *env) otava(ctx context.Context, series [][]float64) (places [][]int, parameters string, err error) {
	python := e.peer("otava/bin/python")
	if _, err := os.Stat(python); err != nil {
		return nil, "", fmt.Errorf("apache-otava is missing: make stat-peers: %w", err)
	}
	input, err := json.Marshal(series)
	if err != nil {
		return nil, "", err
	}
	cmd := exec.CommandContext(ctx, python, filepath.Join(e.root, "hack", "otava", "changes.py"))
	var failure bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), &failure
	text, err := cmd.Output()
	if err != nil {
		return nil, "", fmt.Errorf("apache-otava: %w: %s", err, lastLines(failure.String(), 5))
	}
	var answer struct {
		Parameters json.RawMessage
		Changes    [][]int
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, "", fmt.Errorf("apache-otava: %w", err)
	}
	if len(answer.Changes) != len(series) {
		return nil, "", fmt.Errorf("apache-otava answered for %d of %d series", len(answer.Changes), len(series))
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
		p, verdicts := 0, 0
		for _, c := range own.Comparisons {
			if c.P != nil && *c.P < 0.05 {
				p++
			}
			if c.Verdict == words.Better || c.Verdict == words.Worse || c.Verdict == words.Different {
				verdicts++
			}
		}
		t.info(samples, k.name+": CNSBench", "%d p < 0.05, %d verdicts of a difference", p, verdicts)
		peer, err := e.benchstatP(ctx, data)
		switch {
		case errors.Is(err, os.ErrNotExist):
			t.note("**%v**", err)
			continue
		case err != nil:
			return err
		}
		other := 0
		for _, p := range peer {
			if p < 0.05 {
				other++
			}
		}
		t.info(samples, k.name+": benchstat", "%d p < 0.05", other)
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
	program := e.peer("benchstat")
	if _, err := os.Stat(program); err != nil {
		return nil, fmt.Errorf("benchstat is missing: make stat-peers: %w", err)
	}
	var text bytes.Buffer
	if err := report.WriteBenchstat(&text, t, map[string]string{"IOPS": "higher"}); err != nil {
		return nil, err
	}
	file := filepath.Join(e.tmp, "benchstat.txt")
	if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, program, "-format", "csv", "-row", ".name", "-col", "/provider", file).Output()
	if err != nil {
		return nil, fmt.Errorf("benchstat: %w", err)
	}
	r := csv.NewReader(bytes.NewReader(out))
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
