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
	model.AbortMultipart: client.PutParts,
	model.FileWrite:      client.Put, model.Head: client.Head,
	model.List: client.List, model.Delete: client.Delete, model.Copy: client.Copy,
	model.MakeContainer: client.MakeContainer, model.RemoveContainer: client.RemoveContainer,
}

// verbOf is the request of an operation; types without a verb of their own are calls.
func verbOf(t model.OpType) client.Verb {
	if v, ok := verbs[t]; ok {
		return v
	}
	return client.Call
}

// name makes the names of a container and an object.
func (w *worker) name(o *model.Op, container, object int64) {
	w.container = containerName(w.container[:0], o, container)
	w.object = w.object[:0]
	switch {
	case o.Objects.Kind != 0:
		w.object = numbered(w.object, o.ObjectName, object)
	case o.Type.Prefix():
		w.object = append(w.object, o.ObjectName.Prefix...)
	}
}

// containerName is that of a container by its number, or the operation's only container.
func containerName(b []byte, o *model.Op, container int64) []byte {
	if o.Containers.Kind == 0 {
		return append(b, o.ContainerName.Prefix...)
	}
	return numbered(b, o.ContainerName, container)
}

func numbered(b []byte, n model.Name, i int64) []byte {
	if n.Hash > 0 {
		b = n.AppendHash(b, i)
	}
	return append(strconv.AppendInt(append(b, n.Prefix...), i, 10), n.Suffix...)
}

// prepare fills the request of an operation whose names are made; object is the number of its object.
func (w *worker) prepare(i int, o *model.Op, object int64) {
	w.request = client.Request{Verb: verbOf(o.Type), Options: w.options[i], Container: w.container, Object: w.object,
		Length: -1, Verify: o.Verify, Zero: o.Zero,
		Chunked: o.Chunked, PartSize: o.PartSize, Parts: o.Parts, MaxKeys: o.MaxKeys}
	r := &w.request
	if r.Verb == client.Call {
		w.call(r, o, object)
	}
	switch o.Type {
	case model.Read:
		if o.Length > 0 {
			r.Length = o.Length
			w.rangesOf(r, o)
		}
	case model.Write, model.MultipartWrite, model.AbortMultipart:
		r.Size, r.Writer, r.Shape = w.pickers[i].sizes.Next()*o.Sizes.Unit, w.writer.Uint64(), o.Shape
	case model.Copy:
		w.copyName = append(append(w.copyName[:0], o.CopyPrefix...), w.object...)
		r.To, r.Writer = w.copyName, w.writer.Uint64()
	}
	if o.PartSize > 0 || o.Options.AllPages {
		r.PartConcurrency, r.Abandon, r.Steps = o.PartConcurrency, o.Type == model.AbortMultipart, w.steps[i]
	}
}

// call completes the request of a type without a verb of its own; object is the number of its object.
func (w *worker) call(r *client.Request, o *model.Op, object int64) {
	r.Call = string(o.Type)
	if o.Type != model.DeleteObjects {
		return
	}
	last := min(o.Objects.High, object+int64(o.Options.BatchSize())-1)
	n := int(last - object + 1)
	for len(w.batch) < n {
		w.batch = append(w.batch, nil)
	}
	for k := range n {
		w.batch[k] = numbered(w.batch[k][:0], o.ObjectName, object+int64(k))
	}
	r.Batch = w.batch[:n]
}

// rangesOf draws the ranges of a read: several are each in a section of the object of their own, so that they ascend
// and do not overlap.
func (w *worker) rangesOf(r *client.Request, o *model.Op) {
	n := int64(o.Options.RangeCount())
	section := o.Within / n
	if n > 1 {
		section = section / payload.Block * payload.Block
	}
	draw := func() int64 { return w.rng.Int64N((section-o.Length)/payload.Block+1) * payload.Block }
	if n == 1 {
		r.Offset = draw()
		return
	}
	w.offsets = w.offsets[:0]
	for k := range n {
		w.offsets = append(w.offsets, k*section+draw())
	}
	r.Offsets = w.offsets
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
