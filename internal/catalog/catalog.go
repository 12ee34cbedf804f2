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
	// Drivers are those of the StorageClasses, Workloads the library entries, Labels those of the Benchmark.
	Drivers   []string          `json:"drivers,omitempty"`
	Workloads []string          `json:"workloads,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	// Study is the path of the study of which the bundle is a trial, Trial its place in it.
	Study string `json:"study,omitempty"`
	Trial *Trial `json:"trial,omitempty"`
	// Search is the action whose highest rate the study searched; empty: it is no search.
	Search string `json:"search,omitempty"`
	// Done of Trials of a study have a complete bundle.
	Done   int    `json:"done,omitempty"`
	Trials int    `json:"trials,omitempty"`
	Error  string `json:"error,omitempty"`

	trials map[string]*Trial // of a study, by directory
}

// Trial is the place of a bundle in its study.
type Trial struct {
	Occasion   int `json:"occasion"`   // from 1
	Block      int `json:"block"`      // within the occasion, from 1
	Repetition int `json:"repetition"` // number of the block in the whole study, from 1
	// Levels are the values of the factors that make cells, Draws those of the distributions.
	Levels []study.Level `json:"levels"`
	Draws  []study.Level `json:"draws,omitempty"`
	// AA says that the cell is an A/A arm: another one runs the same under another label.
	AA bool `json:"aa,omitempty"`
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
func Find(dirs []string) ([]Entry, error) { return new(Cache).Find(dirs) }

// Find is the function Find, but reads only bundles that are new or have changed.
func (c *Cache) Find(dirs []string) ([]Entry, error) {
	f := finder{seen: map[string]bool{}, cache: c}
	for _, dir := range dirs {
		if err := f.beneath(filepath.Clean(dir)); err != nil {
			return nil, fmt.Errorf("list %s: %w", dir, reason(err))
		}
	}
	countTrials(f.list)
	return f.list, nil
}

// finder gathers entries.
type finder struct {
	list []Entry
	// seen has the absolute paths, without symbolic links, of the directories that were visited.
	seen  map[string]bool
	cache *Cache
}

// beneath adds the entries in and beneath a directory.
func (f *finder) beneath(root string) error {
	if st, err := os.Stat(root); err != nil {
		return err
	} else if !st.IsDir() {
		return errors.New("not a directory")
	}
	place, err := filepath.EvalSymlinks(root)
	if err == nil {
		place, err = filepath.Abs(place)
	}
	if err != nil {
		return err
	}
	// WalkDir follows a symbolic link only if a separator is after it.
	return filepath.WalkDir(root+string(filepath.Separator), func(path string, d fs.DirEntry, err error) error {
		path = filepath.Clean(path)
		below, wrong := filepath.Rel(root, path)
		switch {
		case err != nil || wrong != nil:
			f.list = append(f.list, Entry{Path: path, Kind: KindBroken, Error: reason(cmp.Or(err, wrong)).Error()})
			return fs.SkipDir
		case d.IsDir() && below != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		}
		return f.visit(path, filepath.Join(place, below), d)
	})
}

// visit adds the entry at a path, if there is one. place is the absolute path of the same.
func (f *finder) visit(path, place string, d fs.DirEntry) error {
	switch {
	case !d.IsDir():
		return nil
	case f.seen[place]:
		return fs.SkipDir
	}
	f.seen[place] = true
	if exists(filepath.Join(path, runFile)) {
		f.list = append(f.list, f.cache.bundle(path))
		return fs.SkipDir
	}
	if exists(filepath.Join(path, studyFile)) {
		f.list = append(f.list, studyAt(path))
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
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
		e.State = stateIncomplete
	}
	e.describe(&r)
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

// stateIncomplete is that of a run that was killed.
const stateIncomplete = "incomplete"

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
	e := Entry{Path: path, Kind: KindStudy, Name: d.Name, Trials: len(d.Trials),
		trials: map[string]*Trial{}}
	if d.Search != nil {
		e.Search = d.Search.Action
	}
	for _, t := range d.Trials {
		c := d.Cells[t.Cell]
		e.trials[d.Of(t)] = &Trial{Occasion: t.Occasion, Block: t.Block, Repetition: t.Repetition, Levels: c.Levels,
			Draws: t.Draws, AA: c.AAOf != nil}
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
			trial := s.trials[e.Path]
			if e.Kind != KindBundle || trial == nil {
				continue
			}
			e.Study, e.Trial = s.Path, trial
			if e.State == string(bundle.Complete) {
				s.Done++
			}
			if s.Started.IsZero() || e.Started.Before(s.Started) {
				s.Started = e.Started
			}
		}
	}
}
