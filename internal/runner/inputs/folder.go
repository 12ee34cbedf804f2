package inputs

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/workload"
)

// pack makes a zip file of the files that a library reads in a folder. The same folder gives the same bytes.
func pack(folder fs.FS, name string) (string, error) {
	reads := &reading{folder, map[string][]byte{}}
	if _, err := workload.FromFolders(reads, name); err != nil {
		return "", err
	}
	var packed strings.Builder
	z := zip.NewWriter(&packed)
	for _, file := range slices.Sorted(maps.Keys(reads.files)) {
		w, err := z.Create(file)
		if err == nil {
			_, err = w.Write(reads.files[file])
		}
		if err != nil {
			return "", fmt.Errorf("pack %s: %w", file, err)
		}
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	return packed.String(), nil
}

// reading records what a library reads in a folder.
type reading struct {
	fs.FS
	files map[string][]byte
}

// Open opens a file and records what is read from it.
func (r *reading) Open(name string) (fs.File, error) {
	f, err := r.FS.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if info.IsDir() {
		return f, nil
	}
	r.files[name] = []byte{}
	return &recordedFile{f, r, name}, nil
}

type recordedFile struct {
	fs.File
	of   *reading
	name string
}

// Read reads from the file and records the bytes.
func (f *recordedFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	f.of.files[f.name] = append(f.of.files[f.name], p[:n]...)
	return n, err
}

// unpack opens the folder whose packed file has its parts in dir.
func unpack(dir string) (fs.FS, error) {
	f, err := openParts(dir)
	if err != nil {
		return nil, err
	}
	packed, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return zip.NewReader(strings.NewReader(string(packed)), int64(len(packed)))
}
