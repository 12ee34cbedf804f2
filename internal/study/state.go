package study

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/bundle"
)

// The files of a study's directory besides those of the trials.
const (
	designFile = "study.json"
	brokenDir  = "incomplete"
)

// format is the version of study.json.
const format = 1

// Dir is a study's directory: study.json with the design, and a bundle for each trial.
type Dir struct {
	Path string
	*Design
}

type stored struct {
	Format int `json:"format"`
	*Design
}

// Begin creates the directory of a study, or opens an existing one of the same design.
func Begin(path string, d *Design) (*Dir, error) {
	if there, err := Resume(path, d); there != nil || err != nil {
		return there, err
	}
	if entries, err := os.ReadDir(path); err == nil && len(entries) > 0 {
		return nil, fmt.Errorf("%s is neither empty nor a study", path)
	}
	text, err := json.MarshalIndent(stored{format, d}, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, err
	}
	return &Dir{path, d}, os.WriteFile(filepath.Join(path, designFile), text, 0o644)
}

// Resume opens the study in a directory, which must have the same design, with its order of trials. It returns nil
// if the directory has no study.
func Resume(path string, d *Design) (*Dir, error) {
	have, there, err := read(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	same := *d
	same.Order = there.Order
	if !same.follow(there.Trials) {
		return nil, otherStudy(path, there, d)
	}
	want, err := json.MarshalIndent(stored{format, &same}, "", "  ")
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(have, want) {
		return nil, otherStudy(path, there, d)
	}
	return &Dir{path, &same}, nil
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
	return fmt.Errorf("%s has another study, or another scale of this one; choose another --out", path)
}

// Open reads a study's directory.
func Open(path string) (*Dir, error) {
	_, d, err := read(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("no study: %w", err)
	case err != nil:
		return nil, err
	}
	return &Dir{path, d}, nil
}

// maxDesign limits study.json: 100000 trials take some tens of MiB.
const maxDesign = 64 << 20

// read returns the text of a directory's study.json and its design.
func read(path string) ([]byte, *Design, error) {
	name := filepath.Join(path, designFile)
	text, err := bounded.ReadFile(nil, name, maxDesign)
	if err != nil {
		return nil, nil, err
	}
	s := stored{Design: &Design{}}
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	if s.Format > format {
		return nil, nil, fmt.Errorf("%s has format %d; this program reads up to %d", path, s.Format, format)
	}
	for _, t := range s.Trials {
		if t.Cell < 0 || t.Cell >= len(s.Cells) || !filepath.IsLocal(t.Name) {
			return nil, nil, fmt.Errorf("%s: invalid trial %q: want a cell of the study and a name in its directory",
				name, t.Name)
		}
	}
	return text, s.Design, nil
}

// Of returns a trial's directory.
func (d *Dir) Of(t Trial) string { return filepath.Join(d.Path, t.Name) }

// Bundle opens the bundle of a trial; nil if there is no complete one.
func (d *Dir) Bundle(t Trial) *bundle.Bundle {
	b, err := bundle.Open(d.Of(t))
	if err != nil || !b.Complete || b.Run.State != bundle.Complete {
		return nil
	}
	return b
}

// SetAside moves the directory of an incomplete trial, so that the trial can be repeated. It returns the new path,
// or "" if there was nothing.
func (d *Dir) SetAside(t Trial) (string, error) {
	from := d.Of(t)
	if _, err := os.Stat(from); errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	to := filepath.Join(d.Path, brokenDir, t.Name+"_"+time.Now().Format("20060102-150405.000"))
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return "", err
	}
	return to, os.Rename(from, to)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
