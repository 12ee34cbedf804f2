package loadgen

import (
	"errors"
	"math"

	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/selector"
)

// Budgets are the requests and mean bytes of the works of w, in their order; of a normal work at most what its rate,
// number of operations or bytes allow. files gives the mean size of the files of a directory; nil: they are on
// another machine. Unknown sizes count as 0, and the error names them.
func Budgets(w *model.Workload, files func(dir string) (float64, error)) (list []model.Budget, err error) {
	z := sizes{read: map[*model.Op]float64{}, files: map[string]float64{}}
	for i := range w.Stages {
		for j := range w.Stages[i].Works {
			work := &w.Stages[i].Works[j]
			if work.Kind == model.Delay {
				continue
			}
			for k := range work.Ops {
				z.read[&work.Ops[k]] = readSizeOf(w, work, &work.Ops[k])
				dir := work.Ops[k].Files
				if _, known := z.files[dir]; work.Ops[k].Type == model.FileWrite && !known && files != nil {
					mean, bad := files(dir)
					z.files[dir], err = mean, errors.Join(err, bad)
				}
			}
			b := z.budget(work)
			b.Stage, b.Work = w.Stages[i].Name, work.Name
			list = append(list, b)
		}
	}
	return list, err
}

// ReadSize is the mean size of the objects that a workload writes by number: each
// that an operation may write counts once for it. 0: it writes none.
func ReadSize(w *model.Workload) float64 {
	size, _ := meanSize(w, func(_ *model.Work, o *model.Op) float64 {
		return float64(o.Containers.Size()) * float64(o.Objects.Size())
	})
	return size
}

// readSizeOf is the mean size of the objects that an operation of a work may read, by the works that write them; if
// none does, the mean of all written objects.
func readSizeOf(w *model.Workload, work *model.Work, read *model.Op) float64 {
	size, known := meanSize(w, func(by *model.Work, o *model.Op) float64 {
		if !work.Store.Same(&by.Store) || o.ContainerName != read.ContainerName || o.ObjectName != read.ObjectName {
			return 0
		}
		return common(o.Containers, read.Containers) * common(o.Objects, read.Objects)
	})
	if !known {
		return ReadSize(w)
	}
	return size
}

// common is how many numbers two may select.
func common(a, b selector.Spec) float64 {
	return float64(max(0, min(a.High, b.High)-max(a.Low, b.Low)+1))
}

// meanSize is that of the objects that a workload writes by number, of which count
// says how many of an operation's count; false: none.
func meanSize(w *model.Workload, count func(*model.Work, *model.Op) float64) (float64, bool) {
	bytes, objects := 0.0, 0.0
	for i := range w.Stages {
		for j := range w.Stages[i].Works {
			work := &w.Stages[i].Works[j]
			for k := range work.Ops {
				if o := &work.Ops[k]; (o.Type == model.Write || o.Type == model.MultipartWrite) &&
					(work.Special() || o.Weight > 0) {
					n := count(work, o)
					bytes, objects = bytes+n*o.Sizes.Mean(), objects+n
				}
			}
		}
	}
	return bytes / max(1, objects), objects > 0
}

// MeanFileSize is that of the regular files of a directory of this machine, in
// bytes.
func MeanFileSize(dir string) (float64, error) {
	files, err := listFiles(dir)
	sum := 0.0
	for _, f := range files {
		sum += float64(f.size)
	}
	return sum / float64(max(1, len(files))), err
}

// sizes are the mean sizes that the operations of a workload transfer.
type sizes struct {
	read  map[*model.Op]float64 // of objects that are read whole
	files map[string]float64    // by directory
}

// of an operation.
func (z *sizes) of(o *model.Op) (sent, received float64) {
	switch o.Type {
	case model.Write, model.MultipartWrite, model.AbortMultipart:
		return o.Sizes.Mean(), 0
	case model.FileWrite:
		return z.files[o.Files], 0
	case model.Read:
		if o.Length > 0 {
			return 0, float64(o.Length)
		}
		return 0, z.read[o]
	}
	return 0, 0
}

func (z *sizes) budget(w *model.Work) model.Budget {
	b := model.Budget{Requests: map[string]float64{}}
	if w.Special() {
		n := 0.0
		for i := range w.Workers {
			n += float64(w.Ops[0].Items(w.FirstWorker+i, w.AllWorkers()))
		}
		z.add(&b, &w.Ops[0], n)
		return b
	}
	ops := z.maxOps(w)
	if math.IsInf(ops, 1) {
		b.Open, ops = true, 0
	}
	for i := range w.Ops {
		z.add(&b, &w.Ops[i], ops*float64(w.Ops[i].Weight)/100)
	}
	return b
}

// maxOps is how many operations a normal work has at most; infinite without a bound.
func (z *sizes) maxOps(w *model.Work) float64 {
	n := math.Inf(1)
	if w.TotalOps > 0 {
		n = float64(w.TotalOps)
	}
	if _, _, end := w.Windows(); w.Rate != nil && end > 0 {
		n = min(n, w.Rate.PerSecond()*end.Seconds())
	}
	each := 0.0
	for i := range w.Ops {
		sent, received := z.of(&w.Ops[i])
		each += (sent + received) * float64(w.Ops[i].Weight) / 100
	}
	if w.TotalBytes > 0 && each > 0 {
		n = min(n, math.Ceil(float64(w.TotalBytes)/each))
	}
	return n
}

// add counts n operations, with the requests that each takes.
func (z *sizes) add(b *model.Budget, o *model.Op, n float64) {
	sent, received := z.of(o)
	b.Sent, b.Received = b.Sent+n*sent, b.Received+n*received
	requests := 1.0
	switch o.Type {
	case model.MultipartWrite, model.AbortMultipart:
		requests = 2 + math.Ceil(sent/float64(o.PartSize))
	case model.ReadVersion, model.DeleteVersion:
		requests = 2 // look for the version
	case model.MakeContainer:
		requests = 3 // look, make, mark
	case model.RemoveContainer:
		requests = 5 // look, list uploads, list, unmark, remove
	}
	b.Requests[string(o.Type)] += n * requests
	for _, c := range o.Checks {
		switch c {
		case model.ListAfterWrite, model.ListAfterDelete:
			b.Requests[string(model.List)] += n
		case model.ReadAfterWrite:
			b.Received += n * sent
			fallthrough
		default:
			b.Requests[string(model.Read)] += n
		}
	}
}
