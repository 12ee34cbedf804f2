package parser

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/imported"
)

// cells are a line of a CSV file by the names of the columns.
type cells map[string]string

// table reads a CSV file whose first line names the columns. Every line must have as many cells.
func (r *report) table(text string) (header []string, rows []cells, err error) {
	in := csv.NewReader(strings.NewReader(text))
	header, err = in.Read()
	if err != nil {
		return nil, nil, err
	}
	for i, name := range header {
		header[i] = strings.TrimSpace(name)
		if slices.Contains(header[:i], header[i]) {
			return nil, nil, fmt.Errorf("line 1: two columns are named %q", header[i])
		}
	}
	all, err := in.ReadAll()
	if err != nil {
		return nil, nil, err
	}
	for _, line := range all {
		row := cells{}
		for i, name := range header {
			row[name] = strings.TrimSpace(line[i])
		}
		rows = append(rows, row)
	}
	r.endOfText(text)
	return header, rows, nil
}

// columns flags columns that are neither read nor known, and refuses a file that lacks one of the needed.
func (r *report) columns(header, needed, known []string) error {
	for _, name := range needed {
		if !slices.Contains(header, name) {
			return fmt.Errorf("no column %q", name)
		}
	}
	var unknown []string
	for _, name := range header {
		if !slices.Contains(needed, name) && !slices.Contains(known, name) && name != "" {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		r.flag(imported.Warning, "fieldsUnread", "columns that this program does not know are left out: %s",
			strings.Join(unknown, ", "))
	}
	return nil
}

// number adds the figure of a cell, if it is not empty; where is the line.
func (r *report) number(row cells, column, name, unit string, options map[string]string, where int) error {
	text := row[column]
	if text == "" {
		return nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return fmt.Errorf("line %d: invalid %s %q: want a number", where, column, text)
	}
	r.figure(name, unit, v, options)
	return nil
}

// Columns of elbencho (Statistics::printPhaseResultsToStringVec and prepLiveCSVFile of breuner/elbencho). "last" is
// until the last thread was done.
var (
	elbenchoFigures = []struct{ column, name, unit string }{{"entries/s [last]", " entries", "1/s"},
		{"IOPS [last]", " IOPS", "IOPS"}, {"MiB/s [last]", " bandwidth", "MiB/s"}, {"Ent lat us [avg]", " entry latency",
			"us"},
		{"IO lat us [avg]", " latency", "us"}}
	elbenchoOptions = []string{"path type", "paths", "hosts", "threads", "dirs", "files", "file size", "block size",
		"direct IO",
		"random", "random aligned", "IO depth", "shared paths", "truncate", "gpus", "rwmix threads", "rwmixpct"}
	elbenchoLeftOut = []string{"ISO date", "label", "version", "command", "time ms [first]", "time ms [last]",
		"entries/s [first]", "IOPS [first]", "MiB/s [first]", "CPU% [first]", "CPU% [last]", "entries " +
			"[first]", "entries [last]",
		"MiB [first]", "MiB [last]", "Ent lat us [min]", "Ent lat us [max]", "IO lat us [min]", "IO lat us [max]"}
	elbenchoLiveNeeded  = []string{"Phase", "RuntimeMS", "Rank", "MixType", "MiB/s", "IOPS", "Entries/s"}
	elbenchoLiveLeftOut = []string{"ISO Date", "Label", "Done%", "DoneBytes", "Entries", "Lat Ent us", "Lat IO us",
		"Active",
		"CPU", "Service"}
)

func isElbencho(text string) bool {
	first, _, _ := strings.Cut(text, "\n")
	return strings.Contains(first, "operation,") && strings.Contains(first, "IOPS [last]") ||
		strings.Contains(first, "Phase,RuntimeMS,Rank,")
}

// readElbencho reads the CSV of results of elbencho (--csvfile), whose rows are trials of an operation, or its live
// statistics (--livecsv).
func readElbencho(text string) (*imported.Report, error) {
	r := &report{}
	header, rows, err := r.table(text)
	if err != nil {
		return nil, err
	}
	if slices.Contains(header, "RuntimeMS") {
		return r.elbenchoLive(header, rows)
	}
	needed := []string{"operation"}
	for _, f := range elbenchoFigures {
		needed = append(needed, f.column)
	}
	if err := r.columns(header, needed, slices.Concat(elbenchoOptions, elbenchoLeftOut)); err != nil {
		return nil, err
	}
	for i, row := range rows {
		options := map[string]string{}
		for _, name := range elbenchoOptions {
			options[name] = row[name]
		}
		before := len(r.Figures)
		for _, f := range elbenchoFigures {
			if err := r.number(row, f.column, row["operation"]+f.name, f.unit, options, i+2); err != nil {
				return nil, err
			}
		}
		if row["operation"] == "" || len(r.Figures) == before {
			r.flag(imported.Warning, "figuresMissing", "line %d: no operation, or no figures of it", i+2)
		}
		if (row["IOPS [last]"] == "") != (row["MiB/s [last]"] == "") ||
			(row["IOPS [last]"] == "") != (row["IO lat us [avg]"] == "") ||
			(row["entries/s [last]"] == "") != (row["Ent lat us [avg]"] == "") {
			r.flag(imported.Warning, "figuresMissing", "line %d: %s has only some of its figures", i+2, row["operation"])
		}
	}
	return &r.Report, nil
}

// elbenchoLive reads live statistics: the mean over time of the rates of all threads, by phase and kind of I/O.
func (r *report) elbenchoLive(header []string, rows []cells) (*imported.Report, error) {
	if err := r.columns(header, elbenchoLiveNeeded, elbenchoLiveLeftOut); err != nil {
		return nil, err
	}
	type phase struct{ last, iops, mib, entries float64 }
	phases, n := map[string]*phase{}, 0
	var order []string
	for i, row := range rows {
		if row["Rank"] != "Total" {
			continue // of single threads
		}
		n++
		name := row["Phase"]
		if mix := row["MixType"]; mix != "" && !strings.EqualFold(mix, name) {
			name += " " + mix
		}
		p := phases[name]
		if p == nil {
			p = &phase{}
			phases[name] = p
			order = append(order, name)
		}
		values := map[string]float64{}
		for _, column := range []string{"RuntimeMS", "IOPS", "MiB/s", "Entries/s"} {
			v, err := strconv.ParseFloat(row[column], 64)
			if err != nil {
				return nil, fmt.Errorf("line %d: invalid %s %q: want a number", i+2, column, row[column])
			}
			values[column] = v
		}
		long := values["RuntimeMS"] - p.last
		if long <= 0 {
			return nil, fmt.Errorf("line %d: RuntimeMS %s is not after %.0f, that of the row before: the file has several "+
				"runs; "+
				"split it", i+2, row["RuntimeMS"], p.last)
		}
		p.last = values["RuntimeMS"]
		p.iops += values["IOPS"] * long
		p.mib += values["MiB/s"] * long
		p.entries += values["Entries/s"] * long
	}
	for _, name := range order {
		p := phases[name]
		for _, f := range []struct {
			name, unit string
			sum        float64
		}{{" IOPS", "IOPS", p.iops}, {" bandwidth", "MiB/s", p.mib}, {" entries", "1/s", p.entries}} {
			if f.sum > 0 {
				r.figure(name+f.name, f.unit, f.sum/p.last, nil)
			}
		}
	}
	r.flag(imported.Info, "meanOverTime", "figures are means over time of %d rows of live statistics of all threads", n)
	return &r.Report, nil
}

// Columns of IOR's CSV (-O summaryFormat=CSV).
var (
	iorNeeded  = []string{"access", "bw(MiB/s)", "IOPS", "block(KiB)", "xfer(KiB)", "total(s)"}
	iorLeftOut = []string{"open(s)", "wr/rd(s)", "close(s)", "iter", "Latency", "numTasks"}
)

func isIOR(text string) bool {
	first, _, _ := strings.Cut(text, "\n")
	return strings.HasPrefix(first, "access,bw(MiB/s)") || strings.Contains(text, `"bwMiB"`) || strings.Contains(text,
		`"bwMeanMIB"`)
}

// iorResult is one iteration in IOR's JSON (-O summaryFormat=JSON).
type iorResult struct {
	Access   string   `json:"access"`
	MiB      *float64 `json:"bwMiB"`
	IOPS     *float64 `json:"iops"`
	Latency  *float64 `json:"latency"`
	BlockKiB float64  `json:"blockKiB"`
	XferKiB  float64  `json:"xferKiB"`
	Tasks    float64  `json:"numTasks"`
}

// readIOR reads the results of IOR as CSV or JSON: each iteration is a trial of its access.
func readIOR(text string) (*imported.Report, error) {
	r := &report{}
	if strings.Contains(text, `"tests"`) {
		return r.iorJSON(text)
	}
	header, rows, err := r.table(text)
	if err != nil {
		return nil, err
	}
	if err := r.columns(header, iorNeeded, iorLeftOut); err != nil {
		return nil, err
	}
	for i, row := range rows {
		options := map[string]string{"block KiB": row["block(KiB)"], "transfer KiB": row["xfer(KiB)"],
			"tasks": row["numTasks"]}
		if row["access"] == "" || row["bw(MiB/s)"] == "" || row["IOPS"] == "" || row["Latency"] == "" {
			r.flag(imported.Warning, "figuresMissing", "line %d: no access, or no figure of it", i+2)
		}
		for _, f := range []struct{ column, name, unit string }{{"bw(MiB/s)", " bandwidth", "MiB/s"}, {"IOPS", " IOPS",
			"IOPS"},
			{"Latency", " latency", "s"}} {
			if err := r.number(row, f.column, row["access"]+f.name, f.unit, options, i+2); err != nil {
				return nil, err
			}
		}
	}
	return &r.Report, nil
}

func (r *report) iorJSON(text string) (*imported.Report, error) {
	at := strings.Index(text, "{") // IOR prints warnings before
	if at < 0 {
		return nil, errors.New("no JSON of IOR: want -O summaryFormat=JSON")
	}
	var whole struct {
		Tests []struct {
			Results []iorResult `json:"Results"`
			Options struct {
				Results []iorResult `json:"Results"`
			} `json:"Options"`
		} `json:"tests"`
		Summary []struct {
			Repetitions *float64 `json:"repetitions"`
			Operation   string   `json:"operation"`
		} `json:"summary"`
	}
	if err := json.NewDecoder(strings.NewReader(text[at:])).Decode(&whole); err != nil {
		return nil, fmt.Errorf("invalid JSON of IOR: %w", err)
	}
	count := map[string]float64{}
	for i, test := range whole.Tests {
		for _, x := range slices.Concat(test.Results, test.Options.Results) {
			options := map[string]string{"block KiB": fmt.Sprint(x.BlockKiB), "transfer KiB": fmt.Sprint(x.XferKiB),
				"tasks": fmt.Sprint(x.Tasks)}
			count[x.Access]++
			for _, f := range []struct {
				name, unit string
				v          *float64
			}{{" bandwidth", "MiB/s", x.MiB}, {" IOPS", "IOPS", x.IOPS}, {" latency", "s", x.Latency}} {
				if f.v == nil {
					r.flag(imported.Warning, "figuresMissing", "test %d: a result of %q has no%s", i, x.Access, f.name)
					continue
				}
				r.figure(x.Access+f.name, f.unit, *f.v, options)
			}
		}
	}
	for _, s := range whole.Summary {
		if s.Repetitions != nil && *s.Repetitions*float64(max(1, len(whole.Tests))) < count[s.Operation] ||
			count[s.Operation] == 0 {
			r.flag(imported.Warning, "figuresMissing", "the summary has %s, %g results of it are there", s.Operation,
				count[s.Operation])
		}
	}
	if len(whole.Summary) == 0 {
		r.flag(imported.Info, "summaryMissing", "there is no summary: whether all results are there is unknown")
	}
	return &r.Report, nil
}
