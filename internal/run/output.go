package run

import (
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/quota"
)

// outputCut is the code of the flag for discarded output.
const outputCut = "outputCut"

// outputFile identifies a file that a container wrote.
type outputFile struct{ instance, container, name string }

func (f outputFile) source() string { return f.instance + "/" + f.container }

// outputs limits how much of the workloads' output is kept, and how many log lines of other sources. It is
// safe for concurrent use.
type outputs struct {
	perInstance int64
	run         *quota.Quota

	mu        sync.Mutex
	instances map[string]*quota.Quota
	files     map[outputFile]*written
	cut       []outputFile // in the order in which they were cut
	lines     *quota.Lines
}

// written counts the bytes of a file.
type written struct {
	kept    int64
	refused int64 // received and discarded
	source  int64 // discarded at the source, so far
	final   bool  // source is final
	read    bool  // a parser has read the file
}

func (w *written) isCut() bool { return w.refused > 0 || w.source > 0 }

func newOutputs(most plan.MaxOutput) *outputs {
	return &outputs{perInstance: most.PerInstance, run: quota.New(most.PerRun), instances: map[string]*quota.Quota{},
		files: map[outputFile]*written{}, lines: quota.NewLines(quota.AllSources)}
}

// take accounts for the next n bytes of a file and returns how many are kept. cut reports whether the file is
// now cut and was not before.
func (o *outputs) take(f outputFile, n int) (kept int, cut bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w := o.file(f)
	was := w.isCut()
	if w.refused == 0 { // the source discards only bytes after those that it sends
		kept = o.run.Take(f.name, o.instance(f.instance).Take(f.name, n))
	}
	w.kept += int64(kept)
	w.refused += int64(n - kept)
	return kept, o.noteCut(f, w, was)
}

// discarded records how many bytes the source of a file has discarded. cut reports whether the file is now
// cut and was not before.
func (o *outputs) discarded(f outputFile, n int64, final bool) (cut bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w := o.file(f)
	was := w.isCut()
	w.source, w.final = n, final
	return o.noteCut(f, w, was)
}

// The caller of noteCut, file and instance holds mu.
func (o *outputs) noteCut(f outputFile, w *written, was bool) bool {
	if was || !w.isCut() {
		return false
	}
	o.cut = append(o.cut, f)
	return true
}

func (o *outputs) file(f outputFile) *written {
	w := o.files[f]
	if w == nil {
		w = &written{}
		o.files[f] = w
	}
	return w
}

func (o *outputs) instance(name string) *quota.Quota {
	q := o.instances[name]
	if q == nil {
		q = quota.New(o.perInstance)
		o.instances[name] = q
	}
	return q
}

// line reports whether a line fits into the log. last reports that it is the first one that does not.
func (o *outputs) line(line string) (ok, last bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lines.Take(line)
}

// readByParser marks the cut files of a container that a parser has read, and describes each.
func (o *outputs) readByParser(instance, container string, names map[string]bool) (cut []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range o.cut {
		if f.instance == instance && f.container == container && names[strings.TrimPrefix(f.name, "/")] {
			o.files[f].read = true
			cut = append(cut, f.name+": "+o.files[f].String())
		}
	}
	return cut
}

// rest describes the cut files that no parser has read.
func (o *outputs) rest() (cut []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range o.cut {
		if w := o.files[f]; !w.read {
			cut = append(cut, f.source()+" "+f.name+": "+w.String())
		}
	}
	return cut
}

// String says how much of a file was kept and how much was discarded.
func (w *written) String() string {
	atLeast := "at least "
	if w.final {
		atLeast = ""
	}
	return fmt.Sprintf("%s kept, %s%s discarded", byteSize(w.kept), atLeast, byteSize(w.refused+w.source))
}

// byteSize formats a size with a binary unit, such as "64 MiB" or "15.9 GiB".
func byteSize(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	v := float64(n)
	for v >= 1024 && len(units) > 1 {
		v, units = v/1024, units[1:]
	}
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) + " " + units[0]
}

// openedFiles is a file system that records which files were opened.
type openedFiles struct {
	fs.FS
	names map[string]bool
}

func (o *openedFiles) Open(name string) (fs.File, error) {
	o.names[name] = true
	return o.FS.Open(name)
}
