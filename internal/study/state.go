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

// The files of a study's directory beside the trials' own.
const (
	designFile = "study.json"
	brokenDir  = "incomplete"
)

// format is the version of study.json.
const format = 1

// Dir is a study's directory: study.json has its design, and every trial a
// directory of its own, which is a bundle.
type Dir struct {
	Path string
	*Design
}

type stored struct {
	Format int `json:"format"`
	*Design
}

// Begin makes the directory of a study, or takes up the one that is there, if it
// is of the same design.
func Begin(path string, d *Design) (*Dir, error) {
	if there, err := Resume(path, d); there != nil || err != nil {
		return there, err
	}
	if entries, err := os.ReadDir(path); err == nil && len(entries) > 0 {
		return nil, fmt.Errorf("%s is not empty, and no study's", path)
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

// Resume takes up the study that is in a directory if it is of the same design,
// in the order in which it was begun; nil if the directory has none.
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

// otherStudy says why a study cannot go on in a directory.
func otherStudy(path string, there, d *Design) error {
	const choose = "its trials would not be comparable; choose another --out"
	for _, s := range d.Sources {
		for _, was := range there.Sources {
			if was.Name == s.Name && was.SHA256 != s.SHA256 {
				return fmt.Errorf("%s has been changed since the study in %s was begun: %s", s.Name, path, choose)
			}
		}
	}
	if !slices.Equal(there.Flags, d.Flags) {
		return fmt.Errorf("the study in %s was begun with %s, not %s: %s", path, strings.Join(there.Flags, " "), strings.Join(d.Flags, " "), choose)
	}
	return fmt.Errorf("%s has another study, or another edition of this one; choose another --out", path)
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

// maxDesign is the most that is read of study.json: 100000 trials take some
// tens of MiB.
const maxDesign = 64 << 20

// read gives the text of a directory's study.json, and the design in it.
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
			return nil, nil, fmt.Errorf("%s: trial %q is of no cell of the study, or outside of its directory", name, t.Name)
		}
	}
	return text, s.Design, nil
}

// Of is a trial's directory.
func (d *Dir) Of(t Trial) string { return filepath.Join(d.Path, t.Name) }

// Bundle opens what a trial left; nil if it is not done: there is nothing, or it
// is not complete.
func (d *Dir) Bundle(t Trial) *bundle.Bundle {
	b, err := bundle.Open(d.Of(t))
	if err != nil || !b.Complete || b.Run.State != bundle.Complete {
		return nil
	}
	return b
}

// SetAside moves what an unfinished trial has left out of the way, so that it
// can be repeated; where to, or "" if there was nothing.
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
