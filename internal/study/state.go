package study

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/bundle"
)

// The files of a study's directory besides those of the trials.
const (
	designFile = "study.json"
	lockFile   = ".lock"
	brokenDir  = "incomplete"
)

// format is the version of study.json.
const format = 1

// Dir is a study's directory: study.json with the design, and a bundle for each trial.
type Dir struct {
	Path string
	*Design
	// Created says that Begin found no study.
	Created bool
	// PlannedBefore is the recorded number of planned occasions, if the design has another; 0: it has not.
	PlannedBefore int

	unlock func() error
}

type stored struct {
	Format int `json:"format"`
	*Design
}

// Begin opens the study in a directory, which must have the same design; if there is none, it creates the directory
// with the first occasion. The planned number of occasions may change, because it shapes no trial; it is recorded. It
// locks the study for this process, until Close: trials of one block never run at the same time. It returns ErrInUse
// if another process has the lock.
func Begin(path string, d *Design, first Occasion) (*Dir, error) {
	entries, err := bounded.Dir(path).ReadDir(".")
	foreign := err == nil && slices.ContainsFunc(entries, foreignEntry)
	if _, err := os.Stat(filepath.Join(path, designFile)); foreign && errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s is neither empty nor a study", path)
	}
	unlock, err := lock(path)
	if err != nil {
		return nil, err
	}
	dir, err := Resume(path, d)
	switch {
	case err != nil:
	case dir != nil && dir.PlannedBefore != 0:
		err = dir.save()
	case dir == nil:
		first.Number = 1
		begun := *d
		begun.Occasions = []Occasion{first}
		dir = &Dir{Path: path, Design: &begun, Created: true}
		err = dir.save()
	}
	if err != nil {
		return nil, errors.Join(err, unlock())
	}
	dir.unlock = unlock
	return dir, nil
}

// Close releases the lock of Begin.
func (d *Dir) Close() error { return d.unlock() }

// foreignEntry reports whether an entry of a directory is not from a process that was killed before it wrote
// study.json.
func foreignEntry(e os.DirEntry) bool {
	return e.Name() != lockFile && !strings.HasPrefix(strings.TrimPrefix(e.Name(), "."), designFile)
}

// save replaces study.json at once, so that a process that is killed leaves the old or the new one.
func (d *Dir) save() error {
	text, err := json.MarshalIndent(stored{format, d.Design}, "", "  ")
	if err != nil {
		return err
	}
	return bounded.Dir(d.Path).WriteFile(designFile, text)
}

// Resume opens the study in a directory, which must have the same design except for the planned number of occasions,
// with its order of trials. It returns nil if the directory has no study.
func Resume(path string, d *Design) (*Dir, error) {
	there, err := read(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case len(there.Merged) > 0:
		return nil, fmt.Errorf("%s was merged from %s: continue those", path, strings.Join(there.Merged, " and "))
	}
	same := *d
	same.Command, same.Planned = there.Command, there.Planned
	if !same.retrace(there) {
		return nil, otherStudy(path, there, d)
	}
	have, err := json.Marshal(there)
	if err != nil {
		return nil, err
	}
	want, err := json.Marshal(&same)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(have, want) {
		return nil, otherStudy(path, there, d)
	}
	dir := &Dir{Path: path, Design: &same}
	if d.Planned != there.Planned {
		dir.PlannedBefore, same.Planned = there.Planned, d.Planned
		if d.Command != nil {
			same.Command = d.Command // its --occasions is that of the next add-occasion
		}
	}
	return dir, nil
}

// otherStudy says why a study cannot continue in a directory.
func otherStudy(path string, there, d *Design) error {
	const choose = "its trials would not be comparable; choose another --out"
	for _, s := range d.Sources {
		for _, was := range there.Sources {
			if was.Name == s.Name && was.SHA256 != s.SHA256 {
				return fmt.Errorf("%s has changed since the study in %s started: %s", s.Name, path, choose)
			}
		}
	}
	if !slices.Equal(there.Flags, d.Flags) {
		return fmt.Errorf("the study in %s started with %s, not %s: %s", path, strings.Join(there.Flags, " "),
			strings.Join(d.Flags, " "), choose)
	}
	what, err := differences(there, d)
	if err != nil {
		return err
	}
	return fmt.Errorf("%s has another study, or another edition of this one (with other %s): %s", path,
		strings.Join(what, ", "), choose)
}

// differences names the parts in which two designs differ, in words of the study's file and flags.
func differences(there, d *Design) (names []string, err error) {
	parts := []struct {
		name      string
		have, now any
	}{
		{"name", there.Name, d.Name},
		{"files", there.Sources, d.Sources},
		{"--set", there.Base, d.Base},
		{"factors or variants", []any{there.Factors, there.Cells, there.Distributions}, []any{d.Factors, d.Cells,
			d.Distributions}},
		{"blocks", there.Blocks, d.Blocks},
		{"responses or metrics", []any{there.Responses, there.Metrics, there.Compared}, []any{d.Responses, d.Metrics,
			d.Compared}},
		{"precondition", there.Precondition, d.Precondition},
		{"prices", there.Prices, d.Prices},
		{"search", there.Search, d.Search},
	}
	for _, p := range parts {
		have, err := json.Marshal(p.have)
		if err != nil {
			return nil, err
		}
		now, err := json.Marshal(p.now)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(have, now) {
			names = append(names, p.name)
		}
	}
	if len(names) == 0 {
		names = []string{"seed or order"}
	}
	return names, nil
}

// Open reads a study's directory.
func Open(path string) (*Dir, error) {
	d, err := read(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if _, none := os.Stat(filepath.Join(path, "run.json")); none == nil {
			return nil, fmt.Errorf("%s is a bundle, not a study: see cnsbench show", path)
		}
		return nil, fmt.Errorf("no study: %w", err)
	case errors.Is(err, syscall.ENOTDIR):
		return nil, bundle.NotDirectory(path, "study")
	case err != nil:
		return nil, err
	}
	return &Dir{Path: path, Design: d}, nil
}

// maxDesign limits study.json: 100000 trials take some tens of MiB.
const maxDesign = 64 << 20

// read returns the design in a directory.
func read(path string) (*Design, error) {
	dir := bounded.Dir(path)
	name := dir.Path(designFile)
	text, err := dir.ReadFile(designFile, maxDesign)
	if err != nil {
		return nil, err
	}
	s := stored{Design: &Design{}}
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if s.Format > format {
		return nil, fmt.Errorf("%s has format %d; this program reads up to %d", path, s.Format, format)
	}
	if err := s.valid(name); err != nil {
		return nil, err
	}
	s.complete()
	return s.Design, nil
}

// valid checks what the program indexes or opens by.
func (d *Design) valid(name string) error {
	if strings.ContainsFunc(d.Name, func(r rune) bool { return !unicode.IsPrint(r) }) { // it goes into unit files
		return fmt.Errorf("%s: invalid name %q of the study: want printable characters", name, d.Name)
	}
	for i, c := range d.Cells {
		if len(c.Levels) != len(d.Factors) || c.AAOf != nil && (*c.AAOf < 0 || *c.AAOf >= i) {
			return fmt.Errorf("%s: invalid cell %d: want a level of each factor, and an A/A arm of an earlier cell", name, i)
		}
	}
	occasion := 0
	for _, t := range d.Trials {
		if t.Cell < 0 || t.Cell >= len(d.Cells) || !filepath.IsLocal(t.Name) {
			return fmt.Errorf("%s: invalid trial %q: want a cell of the study and a name in its directory",
				name, t.Name)
		}
		if t.Occasion < occasion || t.Occasion > d.OccasionCount() {
			return fmt.Errorf("%s: invalid trial %q: want an occasion of the study, in order", name, t.Name)
		}
		occasion = t.Occasion
	}
	return nil
}

// complete adds what studies of earlier versions, which had one occasion, did not record.
func (d *Design) complete() {
	for i := range d.Trials {
		t := &d.Trials[i]
		if t.Occasion == 0 {
			t.Occasion, t.Block = 1, t.Repetition
		}
	}
	if d.Blocks == 0 {
		d.Blocks, d.Planned = max(1, lastRepetition(d.Trials)), 1
	}
}

// Of returns a trial's directory.
func (d *Dir) Of(t Trial) string { return filepath.Join(d.Path, t.Name) }

// Bundle opens the bundle of a trial; nil if there is no complete one.
func (d *Dir) Bundle(t Trial) *bundle.Bundle {
	b, err := d.open(t)
	if err != nil || !b.Complete || b.Run.State != bundle.Complete {
		return nil
	}
	return b
}

// open opens the bundle of a trial, which must lie in the study.
func (d *Dir) open(t Trial) (*bundle.Bundle, error) {
	at, err := bounded.Dir(d.Path).Sub(t.Name)
	if err != nil {
		return nil, err
	}
	return bundle.Open(string(at))
}

// SetAside moves the directory of an incomplete trial, so that the trial can be repeated. It returns the new path,
// or "" if there was nothing.
func (d *Dir) SetAside(t Trial) (string, error) {
	dir := bounded.Dir(d.Path)
	if !dir.Has(t.Name) {
		return "", nil
	}
	to := path.Join(brokenDir, t.Name+"_"+time.Now().Format("20060102-150405.000"))
	return dir.Path(to), dir.Rename(t.Name, to)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// lock makes this process the only one that runs trials of the study in a directory, until unlock or its end.
func lock(path string) (unlock func() error, err error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, err
	}
	f, err := bounded.Dir(path).Append(lockFile)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = fmt.Errorf("study in %s: %w", path, ErrInUse)
		}
		return nil, errors.Join(err, f.Close())
	}
	return f.Close, nil
}

// ErrInUse is returned when another process runs trials of the study.
var ErrInUse = errors.New("another process is running it")
