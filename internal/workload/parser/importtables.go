package parser

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/imported"
)

// cells are a line of a CSV file by the names of the columns.
type cells map[string]string

// table reads a CSV file whose first line names the columns: those that are needed, and those that are known. Others
// are flagged. Every line must have as many cells.
func (r *report) table(text string, needed, known []string) (rows []cells) {
	all, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err == nil && len(all) == 0 {
		err = io.EOF
	}
	if r.err = err; err != nil {
		return nil
	}
	r.line = 1
	header := all[0]
	var unknown []string
	for i, name := range header {
		name = strings.TrimSpace(name)
		if header[i] = name; slices.Contains(header[:i], name) {
			r.refuse("two columns are named %q", name)
		}
		if !slices.Contains(needed, name) && !slices.Contains(known, name) && name != "" {
			unknown = append(unknown, name)
		}
	}
	for _, name := range needed {
		if !slices.Contains(header, name) {
			r.err = cmp.Or(r.err, fmt.Errorf("no column %q", name))
		}
	}
	if len(unknown) > 0 {
		r.flag(imported.Warning, "fieldsUnread", "columns that this program does not know are left out: %s",
			strings.Join(unknown, ", "))
	}
	for _, line := range all[1:] {
		rows = append(rows, cellsOf(header, line))
	}
	r.endOfText(text)
	return rows
}

// cellsOf names the cells of a line, which may have fewer or more than the header. Of equal names the first counts.
func cellsOf(header, line []string) cells {
	row := cells{}
	for i, cell := range slices.Backward(line[:min(len(line), len(header))]) {
		row[header[i]] = strings.TrimSpace(cell)
	}
	return row
}

// columnsOf are names of columns and those of figures.
func columnsOf(figures []tableFigure, names ...string) []string {
	for _, f := range figures {
		names = append(names, f.column)
	}
	return names
}

// tableFigure is a column whose cells are figures.
type tableFigure struct{ column, name, unit string }

// cells adds the figures of the columns of a row whose cells are not empty, and returns their number.
func (r *report) cells(row cells, of string, columns []tableFigure, options map[string]string) (n int) {
	for _, f := range columns {
		if text := row[f.column]; text != "" {
			n++
			r.figure(of+f.name, f.unit, r.number(f.column, text), options)
		}
	}
	return n
}

// Columns of elbencho (Statistics::printPhaseResultsToStringVec and prepLiveCSVFile of breuner/elbencho). "last" is
// until the last thread was done.
var (
	elbenchoFigures = []tableFigure{{"entries/s [last]", " entries", "1/s"}, {"IOPS [last]", " IOPS", "IOPS"},
		{"MiB/s [last]", " bandwidth", "MiB/s"}, {"Ent lat us [avg]", " entry latency", "us"},
		{"IO lat us [avg]", " latency", "us"}}
	elbenchoOptions = []string{"path type", "paths", "hosts", "threads", "dirs", "files", "file size", "block size",
		"direct IO", "random", "random aligned", "IO depth", "shared paths", "truncate", "gpus", "rwmix threads", "rwmixpct"}
	elbenchoLeftOut = []string{"ISO date", "label", "version", "command", "time ms [first]", "time ms [last]",
		"entries/s [first]", "IOPS [first]", "MiB/s [first]", "CPU% [first]", "CPU% [last]", "entries [first]",
		"entries [last]", "MiB [first]", "MiB [last]", "Ent lat us [min]", "Ent lat us [max]", "IO lat us [min]",
		"IO lat us [max]"}
	elbenchoLiveLeftOut = []string{"ISO Date", "Label", "Done%", "DoneBytes", "Entries", "Lat Ent us", "Lat IO us",
		"Active", "CPU", "Service"}
	elbenchoLiveFigures = []tableFigure{{"IOPS", " IOPS", "IOPS"}, {"MiB/s", " bandwidth", "MiB/s"},
		{"Entries/s", " entries", "1/s"}}
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
	if first, _, _ := strings.Cut(text, "\n"); strings.Contains(first, "RuntimeMS") {
		return r.elbenchoLive(text)
	}
	rows := r.table(text, columnsOf(elbenchoFigures, "operation"), slices.Concat(elbenchoOptions, elbenchoLeftOut))
	for i, row := range rows {
		options := map[string]string{}
		for _, name := range elbenchoOptions {
			options[name] = row[name]
		}
		r.line = i + 2
		if n := r.cells(row, row["operation"], elbenchoFigures, options); n == 0 || row["operation"] == "" {
			r.missing("line %d: no operation, or no figures of it", r.line)
		}
		differ := func(a, b string) bool { return (row[a] == "") != (row[b] == "") }
		if differ("IOPS [last]", "MiB/s [last]") || differ("IOPS [last]", "IO lat us [avg]") ||
			differ("entries/s [last]", "Ent lat us [avg]") {
			r.missing("line %d: %s has only some of its figures", r.line, row["operation"])
		}
	}
	return r.done()
}

// elbenchoLive reads live statistics: the mean over time of the rates of all threads, by phase and kind of I/O.
func (r *report) elbenchoLive(text string) (*imported.Report, error) {
	rows := r.table(text, columnsOf(elbenchoLiveFigures, "Phase", "RuntimeMS", "Rank", "MixType"), elbenchoLiveLeftOut)
	type phase struct {
		last float64
		sums [3]float64 // of elbenchoLiveFigures
	}
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
		r.line = i + 2
		now := r.number("RuntimeMS", row["RuntimeMS"])
		if now <= p.last {
			r.refuse("RuntimeMS %s is not after %.0f, that of the row before: the file has several runs; split it",
				row["RuntimeMS"], p.last)
		}
		for i, f := range elbenchoLiveFigures {
			p.sums[i] += r.number(f.column, row[f.column]) * (now - p.last)
		}
		p.last = now
	}
	for _, name := range order {
		p := phases[name]
		for i, f := range elbenchoLiveFigures {
			if p.sums[i] > 0 {
				r.figure(name+f.name, f.unit, p.sums[i]/p.last, nil)
			}
		}
	}
	r.flag(imported.Info, "meanOverTime", "figures are means over time of %d rows of live statistics of all threads", n)
	return r.done()
}

// Columns of IOR's CSV (-O summaryFormat=CSV).
var (
	iorNeeded  = []string{"access", "bw(MiB/s)", "IOPS", "block(KiB)", "xfer(KiB)", "total(s)"}
	iorLeftOut = []string{"open(s)", "wr/rd(s)", "close(s)", "iter", "Latency", "numTasks"}
	iorFigures = []tableFigure{{"bw(MiB/s)", " bandwidth", "MiB/s"}, {"IOPS", " IOPS", "IOPS"},
		{"Latency", " latency", "s"}}
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
	rows := r.table(text, iorNeeded, iorLeftOut)
	for i, row := range rows {
		options := map[string]string{"block KiB": row["block(KiB)"], "transfer KiB": row["xfer(KiB)"],
			"tasks": row["numTasks"]}
		r.line = i + 2
		if n := r.cells(row, row["access"], iorFigures, options); n < len(iorFigures) || row["access"] == "" {
			r.missing("line %d: no access, or no figure of it", r.line)
		}
	}
	return r.done()
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
			for k, v := range []*float64{x.MiB, x.IOPS, x.Latency} {
				if f := iorFigures[k]; v == nil {
					r.missing("test %d: a result of %q has no%s", i, x.Access, f.name)
				} else {
					r.figure(x.Access+f.name, f.unit, *v, options)
				}
			}
		}
	}
	for _, s := range whole.Summary {
		if s.Repetitions != nil && *s.Repetitions*float64(max(1, len(whole.Tests))) < count[s.Operation] ||
			count[s.Operation] == 0 {
			r.missing("the summary has %s, %g results of it are there", s.Operation, count[s.Operation])
		}
	}
	if len(whole.Summary) == 0 {
		r.flag(imported.Info, "summaryMissing", "there is no summary: whether all results are there is unknown")
	}
	return &r.Report, nil
}
