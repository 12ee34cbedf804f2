// Package inputs finds the files and folders that a Benchmark names beside it, and packs them into ConfigMaps for a
// runner's pod.
package inputs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/runner/runnerpod"
)

const (
	// Key is the key of a ConfigMap that has a piece.
	Key = "piece"
	// pieceSize is the size of a piece: a ConfigMap holds at most 1 MiB.
	pieceSize = 1 << 20
	// maxPieces limits what a run stores in the cluster's etcd.
	maxPieces = 16
)

// Piece is a part of a packed file.
type Piece struct {
	Path string // below runnerpod.InputsDir; the paths of a file's pieces sort in its order
	Data []byte
}

// Packed are input files in pieces.
type Packed struct {
	Pieces []Piece
	Files  []string // NAME=DIR, as --file takes it
}

// Pack reads the traces of a plan and the folders of its library; main is the Benchmark's file.
func Pack(p *plan.Plan, main string) (*Packed, error) {
	c := &Packed{}
	for i, r := range p.Benchmark.Spec.Rates {
		if r.TraceRateSpec == nil {
			continue
		}
		if err := c.trace(fmt.Sprintf("trace-%d", i), main, r.TraceRateSpec.Source); err != nil {
			return nil, fmt.Errorf("spec.rates[%d].traceRateSpec.source: %s: %w", i, r.TraceRateSpec.Source, err)
		}
	}
	for i, l := range p.Benchmark.Spec.Library {
		if l.FolderSpec == nil {
			continue
		}
		if err := c.folder(fmt.Sprintf("library-%d", i), main, l.FolderSpec.Path); err != nil {
			return nil, fmt.Errorf("spec.library[%d].folderSpec.path: %s: %w", i, l.FolderSpec.Path, err)
		}
	}
	return c, nil
}

func (c *Packed) trace(dir, main, name string) error {
	f, err := Open(main, name)
	if err != nil {
		return err
	}
	return errors.Join(c.add(dir, name, f, "compress the trace (gzip)"), f.Close())
}

func (c *Packed) folder(dir, main, name string) error {
	folder, err := Folder(main, name)
	if err != nil {
		return err
	}
	packed, err := pack(folder, name)
	if err != nil {
		return err
	}
	return c.add(dir, name, strings.NewReader(packed), "leave only the workloads in the folder that are used")
}

// add cuts a file into pieces in dir; hint says how to make the file smaller.
func (c *Packed) add(dir, name string, f io.Reader, hint string) error {
	c.Files = append(c.Files, name+"="+filepath.Join(runnerpod.InputsDir, dir))
	for n := 0; ; n++ {
		data, err := io.ReadAll(io.LimitReader(f, pieceSize))
		if err != nil {
			return err
		}
		if len(data) == 0 {
			return nil
		}
		if len(c.Pieces) == maxPieces {
			return fmt.Errorf("a runner's pod takes at most %d MiB of files: %s, or use --runner local",
				maxPieces*pieceSize>>20, hint)
		}
		c.Pieces = append(c.Pieces, Piece{fmt.Sprintf("%s/%03d", dir, n), data})
	}
}

// Open opens a file that a Benchmark names, relative to main, the Benchmark's own; "-" is the standard input.
func Open(main, name string) (io.ReadCloser, error) { return bounded.OpenRegular(beside(main, name)) }

// Folder opens a folder that a Benchmark names.
func Folder(main, name string) (fs.FS, error) {
	path := beside(main, name)
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder", path)
	}
	return bounded.LinkedFS(path), nil
}

func beside(main, name string) string {
	if filepath.IsAbs(name) || main == "-" {
		return name
	}
	return filepath.Join(filepath.Dir(main), name)
}

// Resolver opens the files and folders that a Benchmark names: packed ones from their pieces, others beside it.
type Resolver struct {
	main string // the Benchmark's file
	dirs map[string]string
}

// NewResolver takes the Benchmark's file and the values of --file.
func NewResolver(main string, files []string) (*Resolver, error) {
	b := &Resolver{main, map[string]string{}}
	for _, f := range files {
		at := strings.LastIndex(f, "=")
		if at < 1 {
			return nil, fmt.Errorf("invalid --file %q: want NAME=DIR", f)
		}
		b.dirs[f[:at]] = f[at+1:]
	}
	return b, nil
}

// Open opens a file by the name that the Benchmark gives it.
func (b *Resolver) Open(name string) (io.ReadCloser, error) {
	if dir, ok := b.dirs[name]; ok {
		return openParts(dir)
	}
	return Open(b.main, name)
}

// Folder opens a folder by the name that the Benchmark gives it.
func (b *Resolver) Folder(name string) (fs.FS, error) {
	if dir, ok := b.dirs[name]; ok {
		return unpack(dir)
	}
	return Folder(b.main, name)
}

// parts reads several files as one.
type parts struct {
	io.Reader
	files []io.Closer
}

func openParts(dir string) (io.ReadCloser, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all parts
	var readers []io.Reader
	for _, e := range entries {
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, errors.Join(err, all.Close())
		}
		all.files, readers = append(all.files, f), append(readers, f)
	}
	all.Reader = io.MultiReader(readers...)
	return &all, nil
}

// Close closes all files.
func (p *parts) Close() error {
	var errs []error
	for _, f := range p.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
