package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/plan"
)

// A Benchmark may name files and folders beside it, which a runner's pod does not
// have: they go there as ConfigMaps, in pieces that fit into one.
const (
	carriedDir = "/etc/cnsbench-files"
	// pieceSize is what one ConfigMap carries, which may hold 1 MiB.
	pieceSize = 1 << 20
	// mostPieces bounds what is written into the cluster's etcd.
	mostPieces = 16
)

// piece is a part of a carried file.
type piece struct {
	path string // below carriedDir; sorted by it the parts of a file are in order
	data []byte
}

// carried are the files that go to a runner's pod.
type carried struct {
	pieces []piece
	flags  []string // of the runner, that say where it has them
}

// carry reads what a plan's traces and the folders of its library are read from;
// main is the Benchmark's file.
func carry(p *plan.Plan, main string) (*carried, error) {
	c := &carried{}
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

func (c *carried) trace(dir, main, name string) error {
	f, err := openBeside(main)(name)
	if err != nil {
		return err
	}
	return errors.Join(c.add(dir, name, f, "compress the trace (gzip)"), f.Close())
}

func (c *carried) folder(dir, main, name string) error {
	folder, err := folderBeside(main)(name)
	if err != nil {
		return err
	}
	packed, err := pack(folder, name)
	if err != nil {
		return err
	}
	return c.add(dir, name, strings.NewReader(packed), "leave only the workloads in the folder that are used")
}

// add cuts a file into pieces, which the runner has in dir; smaller says how it
// could have fewer.
func (c *carried) add(dir, name string, f io.Reader, smaller string) error {
	c.flags = append(c.flags, "--file", name+"="+filepath.Join(carriedDir, dir))
	for n := 0; ; n++ {
		data, err := io.ReadAll(io.LimitReader(f, pieceSize))
		if err != nil {
			return err
		}
		if len(data) == 0 {
			return nil
		}
		if len(c.pieces) == mostPieces {
			return fmt.Errorf("a runner's pod is handed at most %d MiB of files: %s, or use --runner local", mostPieces*pieceSize>>20, smaller)
		}
		c.pieces = append(c.pieces, piece{fmt.Sprintf("%s/%03d", dir, n), data})
	}
}

// mount puts the pieces, which are in ConfigMaps of these names, where the
// runner's flags say.
func (c *carried) mount(p *corev1.PodSpec, configs []string) {
	if len(c.pieces) == 0 {
		return
	}
	all := &corev1.ProjectedVolumeSource{}
	for i, piece := range c.pieces {
		all.Sources = append(all.Sources, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: configs[i]}, Items: []corev1.KeyToPath{{Key: "piece", Path: piece.path}}}})
	}
	p.Volumes = append(p.Volumes, corev1.Volume{Name: "carried", VolumeSource: corev1.VolumeSource{Projected: all}})
	p.Containers[0].VolumeMounts = append(p.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "carried", MountPath: carriedDir, ReadOnly: true})
}

// beside are the files and folders that a Benchmark names: where --file says
// (NAME=DIR, the parts of NAME), else beside it.
type beside struct {
	main string // the Benchmark's file
	dirs map[string]string
}

func besideOf(main string, flags []string) (*beside, error) {
	b := &beside{main, map[string]string{}}
	for _, f := range flags {
		at := strings.LastIndex(f, "=")
		if at < 1 {
			return nil, fmt.Errorf("--file %s: not of the form NAME=DIR", f)
		}
		b.dirs[f[:at]] = f[at+1:]
	}
	return b, nil
}

func (b *beside) open(name string) (io.ReadCloser, error) {
	if dir, ok := b.dirs[name]; ok {
		return openParts(dir)
	}
	return openBeside(b.main)(name)
}

func (b *beside) folder(name string) (fs.FS, error) {
	if dir, ok := b.dirs[name]; ok {
		return unpack(dir)
	}
	return folderBeside(b.main)(name)
}

// parts are files that are read as one.
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

func (p *parts) Close() error {
	var errs []error
	for _, f := range p.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
