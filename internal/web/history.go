package web

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/analysis/reproduction"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/catalog"
)

const (
	// maxHistory is the number of runs of a history: the newest.
	maxHistory = 200
	// minHistory is the number of runs of one Benchmark from which pages link to its history.
	minHistory = 3
)

// Answer is what the command compare --history answers, and what a page shows besides.
type Answer struct {
	Result *compare.Result
	// Objectives are the metrics that objectives of the runs name.
	Objectives []string
	// Changed has, by the label of a run, the settings that differ from those of the run before it.
	Changed map[string][]reproduction.Difference
}

// Series is a history of runs.
type Series struct {
	Title string      `json:"title" doc:"name of the Benchmark or of the folder; empty of chosen runs"`
	Order string      `json:"order" enum:"start,name" doc:"of the runs"`
	Runs  []SeriesRun `json:"runs" doc:"one for each of result.levels, in order"`
	// Objectives are the metrics that objectives of the runs name.
	Objectives []string `json:"objectives"`
	Notes      []string `json:"notes" doc:"runs that are left out, besides those in result.notes"`
	// Result is as compare --history --output json prints it.
	Result *compare.Result `json:"result"`
}

// SeriesRun is a run of a history, or a study.
type SeriesRun struct {
	Label   string    `json:"label"`
	ID      string    `json:"id,omitempty" doc:"missing of what has no page"`
	Kind    string    `json:"kind" enum:"bundle,study,other" doc:"other: an imported study, or an occasion of a study"`
	Started time.Time `json:"started,omitzero"`
	// Changed has the settings that differ from those of the run before it.
	Changed []reproduction.Difference `json:"changed"`
}

type historyInput struct {
	Name   string   `query:"name" doc:"of a Benchmark: its complete runs without trials of studies, by their start"`
	Folder string   `query:"folder" doc:"ID of a folder: what is in it, as compare --history reads it"`
	Run    []string `query:"run,explode" doc:"ID of a run; repeated. They are ordered by their start"`
	Metric []string `query:"metric,explode" doc:"what result.history is limited to; p-values stay those of all metrics"`
}

func (s *Server) history(ctx context.Context, in *historyInput) (*body[Series], error) {
	one := 0
	for _, given := range []bool{in.Name != "", in.Folder != "", len(in.Run) > 0} {
		if given {
			one++
		}
	}
	if one != 1 || len(in.Run) > maxHistory {
		return nil, huma.Error400BadRequest(fmt.Sprintf("want one of name, folder, and 1 to %d times run", maxHistory))
	}
	series := Series{Title: in.Name, Order: "start", Notes: []string{}, Runs: []SeriesRun{}, Objectives: []string{}}
	var dir string
	var runs []Labelled
	var known map[string]Run
	var err error
	if in.Folder != "" {
		series.Title, series.Order = cleanID(in.Folder), "name"
		dir, known, err = s.folder(in.Folder)
	} else {
		runs, known, err = s.runsOf(in, &series)
	}
	if err != nil {
		return nil, problem(err)
	}
	ctx, done, err := s.turn(ctx)
	if err != nil {
		return nil, problem(err)
	}
	defer done()
	a, err := s.History(ctx, dir, runs)
	if err != nil { // of the runs: they are of other workloads, or cannot be read
		return nil, huma.Error422UnprocessableEntity(err.Error())
	}
	series.fill(a, known, in.Metric)
	return &body[Series]{series}, nil
}

// fill adds the answer.
func (s *Series) fill(a *Answer, known map[string]Run, metrics []string) {
	for _, label := range a.Result.Levels {
		r := SeriesRun{Label: label, Kind: "other", Changed: a.Changed[label]}
		if e, ok := known[label]; ok {
			r.ID, r.Kind, r.Started = e.ID, e.Kind, e.Started
		}
		if r.Changed == nil {
			r.Changed = []reproduction.Difference{}
		}
		s.Runs = append(s.Runs, r)
	}
	s.Objectives = append(s.Objectives, a.Objectives...)
	s.Result = a.Result
	if len(metrics) > 0 {
		s.Result.History = slices.DeleteFunc(s.Result.History, func(h compare.History) bool {
			return !slices.Contains(metrics, h.Metric)
		})
	}
}

// runsOf returns the runs of a Benchmark, or the chosen ones, in order of their start, and their entries by label.
func (s *Server) runsOf(in *historyInput, series *Series) ([]Labelled, map[string]Run, error) {
	all, err := s.entries()
	if err != nil {
		return nil, nil, err
	}
	var chosen []Run
	if in.Name != "" {
		chosen = named(all, in.Name)
		if len(chosen) == 0 {
			return nil, nil, fmt.Errorf("%w: no run of a Benchmark with the name %q is complete", errNotFound, in.Name)
		}
	}
	for _, id := range in.Run {
		at := slices.IndexFunc(all, func(r Run) bool { return r.ID == cleanID(id) && r.Kind == catalog.KindBundle })
		if at < 0 {
			return nil, nil, fmt.Errorf("%w: there is no run %s", errNotFound, id)
		}
		chosen = append(chosen, all[at])
	}
	chosen, copies := distinct(chosen)
	if copies > 0 {
		series.Notes = append(series.Notes, fmt.Sprintf("copies of other runs (the same run ID and start) are left out: %d",
			copies))
	}
	if more := len(chosen) - maxHistory; more > 0 {
		chosen = chosen[more:]
		series.Notes = append(series.Notes, fmt.Sprintf("only the newest %d runs are read: %d are left out", maxHistory,
			more))
	}
	return s.labelled(chosen, in.Name != "", series)
}

// labelled returns the directories of runs. A run of a Benchmark that is refused is left out, a chosen one is an error.
func (s *Server) labelled(chosen []Run, leaveOut bool, series *Series) ([]Labelled, map[string]Run, error) {
	ids := make([]string, len(chosen))
	for i, r := range chosen {
		ids[i] = r.ID
	}
	runs, known := []Labelled{}, map[string]Run{}
	for _, r := range chosen {
		dir, err := s.place(r.ID, runFile)
		switch {
		case err != nil && leaveOut:
			series.Notes = append(series.Notes, fmt.Sprintf("%s is left out: %v", r.ID, err))
			continue
		case err != nil:
			return nil, nil, err
		}
		l := Labelled{Label: shortID(r.ID, ids), Dir: dir}
		runs, known[l.Label] = append(runs, l), r
	}
	if len(runs) == 0 {
		return nil, nil, fmt.Errorf("%w: %s", errNotFound, strings.Join(series.Notes, "; "))
	}
	return runs, known, nil
}

// named returns the complete runs of a Benchmark that are no trials of a study.
func named(all []Run, name string) []Run {
	var list []Run
	for _, r := range all {
		if r.Name == name && r.ofHistory() {
			list = append(list, r)
		}
	}
	return list
}

// ofHistory reports whether an entry is one of the runs of its Benchmark's history.
func (r *Run) ofHistory() bool {
	return r.Kind == catalog.KindBundle && r.Study == "" && r.State == string(bundle.Complete)
}

// countHistories sets the number of runs of histories.
func countHistories(all []Run) {
	of := map[string][]int{}
	for i := range all {
		if all[i].ofHistory() {
			of[all[i].Name] = append(of[all[i].Name], i)
		}
	}
	for _, indices := range of {
		var runs []Run
		for _, i := range indices {
			runs = append(runs, all[i])
		}
		list, _ := distinct(runs)
		for _, i := range indices {
			if len(list) >= minHistory {
				all[i].History = len(list)
			}
		}
	}
}

// distinct orders runs by their start and drops copies.
func distinct(list []Run) (kept []Run, copies int) {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Run) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.RunID, b.RunID), cmp.Compare(a.ID, b.ID))
	})
	kept = slices.CompactFunc(list, func(a, b Run) bool { return a.RunID == b.RunID && a.Started.Equal(b.Started) })
	return kept, len(list) - len(kept)
}

// folder returns the directory of a folder, and the entries in it by their names. Whatever is in it is checked as a
// bundle is.
func (s *Server) folder(id string) (string, map[string]Run, error) {
	id = cleanID(id)
	inside := id
	if id == RootID && !s.isDir(id) {
		inside = "."
	}
	if !fs.ValidPath(inside) || !s.isDir(inside) {
		return "", nil, fmt.Errorf("%w: there is no folder %s", errNotFound, id)
	}
	dir, err := s.regular(inside)
	if err != nil {
		return "", nil, err
	}
	all, err := s.entries()
	known := map[string]Run{}
	for _, r := range all {
		if path.Dir(r.ID) == inside {
			known[path.Base(r.ID)] = r
		}
	}
	return dir, known, err
}

func (s *Server) isDir(name string) bool {
	st, err := s.root.Lstat(filepath.FromSlash(name))
	return err == nil && st.IsDir()
}

// historyPage is the address of the history of a run's Benchmark; empty if there are too few runs for one.
func (s *Server) historyPage(id string) string {
	all, err := s.entries()
	if err != nil {
		return ""
	}
	for _, r := range all {
		if r.ID == id && r.ofHistory() {
			if list, _ := distinct(named(all, r.Name)); len(list) >= minHistory {
				return "/history?name=" + url.QueryEscape(r.Name)
			}
		}
	}
	return ""
}
