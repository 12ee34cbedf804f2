package loadgen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/httpconn"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/payload"
	"github.com/cnsbench/cnsbench/internal/op"
)

// verbs are the requests of operations.
var verbs = map[model.OpType]client.Verb{
	model.Read: client.Get, model.Write: client.Put, model.MultipartWrite: client.PutParts,
	model.FileWrite: client.Put, model.Head: client.Head,
	model.List: client.List, model.Delete: client.Delete, model.Copy: client.Copy,
	model.MakeContainer: client.MakeContainer, model.RemoveContainer: client.RemoveContainer,
}

// name makes the names of a container and an object.
func (w *worker) name(o *model.Op, container, object int64) {
	w.container = numbered(w.container[:0], o.ContainerName, container)
	w.object = w.object[:0]
	switch {
	case o.Type == model.List:
		w.object = append(w.object, o.ObjectName.Prefix...)
	case o.Objects.Kind != 0:
		w.object = numbered(w.object, o.ObjectName, object)
	}
}

func numbered(b []byte, n model.Name, i int64) []byte {
	if n.Hash > 0 {
		b = n.AppendHash(b, i)
	}
	return append(strconv.AppendInt(append(b, n.Prefix...), i, 10), n.Suffix...)
}

// prepare fills the request of an operation whose names are made.
func (w *worker) prepare(i int, o *model.Op) {
	w.request = client.Request{Verb: verbs[o.Type], Container: w.container, Object: w.object, Length: -1,
		Verify: o.Verify, Zero: o.Zero,
		Chunked: o.Chunked, PartSize: o.PartSize, Parts: o.Parts, MaxKeys: o.MaxKeys}
	r := &w.request
	switch o.Type {
	case model.Read:
		if o.Length > 0 {
			r.Length = o.Length
			r.Offset = w.rng.Int64N((o.Within-o.Length)/payload.Block+1) * payload.Block
		}
	case model.Write, model.MultipartWrite:
		r.Size, r.Writer, r.Shape = w.pickers[i].sizes.Next()*o.Sizes.Unit, w.writer.Uint64(), o.Shape
	case model.Copy:
		w.copyName = append(append(w.copyName[:0], o.CopyPrefix...), w.object...)
		r.To = w.copyName
	}
}

// listFiles finds the regular files of a directory, in order of name.
func listFiles(dir string) ([]file, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("the files to write: %w", err)
	}
	var files []file
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return nil, fmt.Errorf("the files to write: %w", err)
		}
		if info.Mode().IsRegular() {
			files = append(files, file{filepath.Join(dir, e.Name()), e.Name(), info.Size()})
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("the files to write: %s has no files", dir)
	}
	return files, nil
}

// fromFile reads a content from a file.
type fromFile struct{ f *os.File }

func (c fromFile) Read(dst []byte, offset int64) error {
	if n, err := c.f.ReadAt(dst, offset); n < len(dst) {
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("%s has become shorter", c.f.Name())
		}
		return err
	}
	return nil
}

// fileWrite sends a file under its own name.
func (w *worker) fileWrite(ctx context.Context, i int, o *model.Op) {
	files := w.files[i]
	n := w.rng.IntN(len(files))
	if o.InOrder {
		n = int(w.cursors[i].files.Next() % int64(len(files)))
	}
	f, err := os.Open(files[n].path)
	if err != nil {
		now := w.config.Clock.Now()
		w.result = client.Result{Failure: httpconn.LocalFailed, Detail: err.Error(), Started: now, First: op.Never,
			Ended: now}
		return
	}
	defer f.Close()
	w.object = append(w.object[:0], files[n].name...)
	w.request.Object, w.request.Size, w.request.File = w.object, files[n].size, fromFile{f}
	w.client.Do(ctx, &w.request, &w.result)
}
