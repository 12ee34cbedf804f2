package study

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/bounded"
)

// clusterFactor is the factor that Merge adds.
const clusterFactor = "cluster"

// hash identifies what the trials of a design have in common: everything but their order, their dates and the flags,
// which name another cluster.
func (d *Design) hash() (string, error) {
	shared := *d
	shared.Trials, shared.Order, shared.Occasions = nil, nil, nil
	shared.Flags, shared.Command, shared.Planned, shared.Blocks = nil, nil, 0, 0
	text, err := json.Marshal(&shared)
	return fmt.Sprintf("%x", sha256.Sum256(text)), err
}

// Merge makes one study of studies with the same design that were run on different clusters, with the names of the
// clusters as one more factor. The bundles are copied. Occasions of different clusters are different occasions.
func Merge(out string, paths, names []string) (*Dir, error) {
	if err := differ(names); err != nil {
		return nil, err
	}
	if entries, err := bounded.Dir(out).ReadDir("."); err == nil && len(entries) > 0 {
		return nil, fmt.Errorf("%s is not empty: choose another --out", out)
	}
	var dirs []*Dir
	for i, p := range paths {
		if slices.ContainsFunc(paths[:i], func(other string) bool { return sameDir(p, other) }) {
			return nil, fmt.Errorf("%s is given twice: want one directory of each cluster", p)
		}
		d, err := Open(p)
		if err != nil {
			return nil, err
		}
		if n := len(d.Merged); n > 0 {
			return nil, fmt.Errorf("%s was merged from %d studies: merge those", p, n)
		}
		dirs = append(dirs, d)
	}
	merged, err := mergeDesigns(dirs, names)
	if err != nil {
		return nil, err
	}
	if err := merged.writeWhole(out, dirs, names); err != nil {
		return nil, err
	}
	return &Dir{Path: out, Design: merged}, nil
}

// writeWhole writes a merged study beside its place and renames it, so that it is whole or not there.
func (d *Design) writeWhole(out string, dirs []*Dir, names []string) (err error) {
	parent := filepath.Dir(filepath.Clean(out))
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp(parent, ".cnsbench-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	for i, from := range dirs {
		for _, t := range from.Trials {
			if from.Bundle(t) == nil {
				continue
			}
			if err := copyTree(bounded.Dir(from.Of(t)), bounded.Dir(temporary), path.Join(names[i], t.Name)); err != nil {
				return err
			}
		}
	}
	if err := (&Dir{Path: temporary, Design: d}).save(); err != nil {
		return err
	}
	if err := os.Chmod(temporary, 0o755); err != nil {
		return err
	}
	if err := os.Remove(out); err != nil && !errors.Is(err, os.ErrNotExist) { // it is empty
		return err
	}
	return bounded.Dir(parent).Rename(filepath.Base(temporary), filepath.Base(filepath.Clean(out)))
}

func sameDir(a, b string) bool {
	one, errA := os.Stat(a)
	other, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(one, other)
}

func differ(names []string) error {
	for i, n := range names {
		if slices.Contains(names[:i], n) {
			return fmt.Errorf("two studies are called %q: name the clusters by --names", n)
		}
		if n == "" || n == "." || n == ".." || strings.ContainsRune(n, filepath.Separator) {
			return fmt.Errorf("invalid name of a cluster %q: want a file's name", n)
		}
	}
	return nil
}

// mergeDesigns makes the design: the cells of each study, with its name as another level.
func mergeDesigns(dirs []*Dir, names []string) (*Design, error) {
	first := dirs[0].Design
	want, err := first.hash()
	if err != nil {
		return nil, err
	}
	m := *first
	m.Factors = append([]string{clusterFactor}, first.Factors...)
	m.Cells, m.Trials, m.Occasions, m.Command, m.Flags = nil, nil, nil, nil, nil
	m.Precondition = nil // its rounds stay in the directories of the studies
	m.Planned = 0
	for i, d := range dirs {
		got, err := d.hash()
		if err != nil {
			return nil, err
		}
		if got != want {
			return nil, fmt.Errorf("%s and %s have different designs: want the same files, factors and settings",
				dirs[0].Path, d.Path)
		}
		if slices.Contains(d.Factors, clusterFactor) {
			return nil, errors.New("the studies have a factor called cluster: rename it")
		}
		m.add(d.Design, names[i])
		m.Merged = append(m.Merged, d.Path)
	}
	return &m, nil
}

// add appends the cells, occasions and trials of a study.
func (d *Design) add(from *Design, name string) {
	cells, occasions, blocks := len(d.Cells), len(d.Occasions), lastRepetition(d.Trials)
	for _, c := range from.Cells {
		c.Levels = append([]Level{{clusterFactor, name}}, c.Levels...)
		if c.AAOf != nil {
			of := *c.AAOf + cells
			c.AAOf = &of
		}
		d.Cells = append(d.Cells, c)
	}
	for i := range from.OccasionCount() {
		o := from.occasion(i)
		o.Number, o.Cluster = occasions+o.Number, name
		d.Occasions = append(d.Occasions, o)
	}
	for _, t := range from.Trials {
		t.Name = path.Join(name, t.Name)
		t.Cell, t.Occasion, t.Repetition = t.Cell+cells, t.Occasion+occasions, t.Repetition+blocks
		d.Trials = append(d.Trials, t)
	}
	d.Planned = len(d.Occasions)
}

// copyTree copies the files of a directory to one at a path.
func copyTree(from, to bounded.Dir, at string) error {
	return fs.WalkDir(from.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir():
			return to.MkdirAll(path.Join(at, name))
		}
		in, err := from.Open(name)
		if err != nil {
			return err
		}
		defer in.Close()
		out, err := to.Create(path.Join(at, name))
		if err != nil {
			return err
		}
		_, err = io.Copy(out, in) // shares the blocks where the file system can
		return errors.Join(err, out.Close())
	})
}
