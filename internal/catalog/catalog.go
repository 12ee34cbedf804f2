// Package catalog finds the bundles and studies beneath directories.
package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/study"
)

// The kinds of entries.
const (
	KindBundle = "bundle"
	KindStudy  = "study"
	KindBroken = "broken" // it cannot be read; Error says why
)

// Entry is a bundle or a study. The zero value of a field means unknown.
type Entry struct {
	Path  string `json:"path"`
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	RunID string `json:"runID,omitempty"`
	// Started is the wall-clock time of the run's start.
	Started time.Time `json:"started,omitzero"`
	Engine  string    `json:"engine,omitempty"`
	// State of the run: as recorded, "running" while a process writes to it, or
	// "incomplete" if the run was killed.
	State string `json:"state,omitempty"`
	// Verdict is the worst of the objectives; Verdicts counts them by status.
	Verdict  bundle.Status         `json:"verdict,omitempty"`
	Verdicts map[bundle.Status]int `json:"verdicts,omitempty"`
	// Flags are the names of the validity flags, the most severe first, each once.
	Flags      []string `json:"flags,omitempty"`
	DurationNs *int64   `json:"durationNs,omitempty"` // of the run; nil: not ended
	// Study is the path of the study of which the bundle is a trial.
	Study string `json:"study,omitempty"`
	// Done of Trials of a study have a complete bundle.
	Done   int    `json:"done,omitempty"`
	Trials int    `json:"trials,omitempty"`
	Error  string `json:"error,omitempty"`

	trials map[string]bool // directories of a study's trials
}

// The files by which entries are recognized.
const (
	runFile   = "run.json"
	studyFile = "study.json"
)

// Find lists the bundles and studies in and beneath directories, in the order of directories
// and of paths; one that is found twice is listed once. Bundles are not searched for others,
// symbolic links below the directories and hidden directories are not followed. What cannot
// be read is listed as broken. The error is that of a directory that does not exist.
func Find(dirs []string) ([]Entry, error) {
	var list []Entry
	seen := map[string]bool{}
	for _, dir := range dirs {
		if st, err := os.Stat(dir); err != nil {
			return nil, fmt.Errorf("list %s: %w", dir, reason(err))
		} else if !st.IsDir() {
			return nil, fmt.Errorf("list %s: not a directory", dir)
		}
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if !seen[path] {
				return visit(&list, seen, dir, path, d, err)
			}
			return fs.SkipDir
		})
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", dir, err)
		}
	}
	countTrials(list)
	return list, nil
}

// visit adds the entry at a path, if there is one.
func visit(list *[]Entry, seen map[string]bool, root, path string, d fs.DirEntry, err error) error {
	switch {
	case err != nil:
		*list = append(*list, Entry{Path: path, Kind: KindBroken, Error: reason(err).Error()})
		return fs.SkipDir
	case !d.IsDir() && path != root:
		return nil
	case path != root && strings.HasPrefix(d.Name(), "."):
		return fs.SkipDir
	}
	seen[path] = true
	if exists(filepath.Join(path, runFile)) {
		*list = append(*list, bundleAt(path))
		return fs.SkipDir
	}
	if exists(filepath.Join(path, studyFile)) {
		*list = append(*list, studyAt(path))
	}
	return nil
}

func exists(path string) bool {
	st, err := os.Lstat(path)
	return err == nil && st.Mode().IsRegular()
}

// reason is an error of a file without the path, which the caller names.
func reason(err error) error {
	var named *fs.PathError
	if errors.As(err, &named) {
		return named.Err
	}
	return err
}

func bundleAt(path string) Entry {
	b, err := bundle.Look(path)
	if err != nil {
		return Entry{Path: path, Kind: KindBroken, Error: err.Error()}
	}
	r := b.Run
	e := Entry{Path: path, Kind: KindBundle, Name: r.Name, RunID: r.ID, Started: r.Clock.Start, Engine: r.Engine,
		State: string(r.State), Flags: flags(r.Validity)}
	switch {
	case b.Live:
		e.State = string(bundle.Running)
	case r.State == bundle.Running:
		e.State = "incomplete"
	}
	if r.EndedAt.Known() {
		ns := int64(r.EndedAt)
		e.DurationNs = &ns
	}
	for _, v := range r.Verdicts {
		if e.Verdicts == nil {
			e.Verdicts = map[bundle.Status]int{}
		}
		e.Verdicts[v.Status]++
	}
	if len(e.Verdicts) > 0 {
		e.Verdict = slices.MaxFunc(slices.Collect(maps.Keys(e.Verdicts)), func(a, b bundle.Status) int {
			return cmp.Or(cmp.Compare(slices.Index(worse, a), slices.Index(worse, b)), cmp.Compare(a, b))
		})
	}
	return e
}

// worse has the statuses of objectives from the best to the worst.
var worse = []bundle.Status{bundle.Pass, bundle.NoData, bundle.Weak, bundle.Error, bundle.Fail}

// severities of flags, the most severe first.
var severities = []string{"invalid", "warning", "info"}

func flags(list []bundle.Flag) []string {
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b bundle.Flag) int {
		return cmp.Compare(slices.Index(severities, a.Severity), slices.Index(severities, b.Severity))
	})
	var names []string
	for _, f := range sorted {
		if !slices.Contains(names, f.Name) {
			names = append(names, f.Name)
		}
	}
	return names
}

func studyAt(path string) Entry {
	d, err := study.Open(path)
	if err != nil {
		return Entry{Path: path, Kind: KindBroken, Error: err.Error()}
	}
	e := Entry{Path: path, Kind: KindStudy, Name: d.Name, Trials: len(d.Trials), trials: map[string]bool{}}
	for _, t := range d.Trials {
		e.trials[d.Of(t)] = true
	}
	return e
}

// countTrials counts the complete trials of each study, and takes the start of the first.
func countTrials(list []Entry) {
	for i := range list {
		s := &list[i]
		if s.Kind != KindStudy {
			continue
		}
		for k := range list {
			e := &list[k]
			if e.Kind != KindBundle || !s.trials[e.Path] {
				continue
			}
			e.Study = s.Path
			if e.State == string(bundle.Complete) {
				s.Done++
			}
			if s.Started.IsZero() || e.Started.Before(s.Started) {
				s.Started = e.Started
			}
		}

	}
}
