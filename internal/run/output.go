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

// outputCut is the code of the flag of output that was discarded.
const outputCut = "outputCut"

// outputFile is one file that one container wrote.
type outputFile struct{ instance, container, name string }

func (f outputFile) source() string { return f.instance + "/" + f.container }

// outputs bounds what is kept of what workloads write, and of the lines of others
// for the log. It is safe for concurrent use.
type outputs struct {
	perInstance int64
	run         *quota.Quota

	mu        sync.Mutex
	instances map[string]*quota.Quota
	files     map[outputFile]*written
	cut       []outputFile // in the order in which they were
	lines     *quota.Lines
}

// written is what became of a file.
type written struct {
	kept    int64
	refused int64 // that came here
	source  int64 // that was discarded there, so far
	final   bool  // that is all
	read    bool  // by a parser
}

func (w *written) isCut() bool { return w.refused > 0 || w.source > 0 }

func newOutputs(most plan.MaxOutput) *outputs {
	return &outputs{perInstance: most.PerInstance, run: quota.New(most.PerRun), instances: map[string]*quota.Quota{},
		files: map[outputFile]*written{}, lines: quota.NewLines(quota.AllSources)}
}

// take takes the next n bytes of a file and returns how many are kept; cut that
// some are not, for the first time.
func (o *outputs) take(f outputFile, n int) (kept int, cut bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w := o.file(f)
	was := w.isCut()
	if w.refused == 0 { // what its source discards comes after what it sends
		kept = o.run.Take(f.name, o.instance(f.instance).Take(f.name, n))
	}
	w.kept += int64(kept)
	w.refused += int64(n - kept)
	return kept, o.noteCut(f, w, was)
}

// discarded takes what the source of a file says of it; cut that it had not said
// so before.
func (o *outputs) discarded(f outputFile, n int64, final bool) (cut bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w := o.file(f)
	was := w.isCut()
	w.source, w.final = n, final
	return o.noteCut(f, w, was)
}

// noteCut, file and instance are called with mu held.
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

// line says whether the log has room for a line; last that it is the first for
// which it has none.
func (o *outputs) line(line string) (ok, last bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lines.Take(line)
}

// readByParser lists what became of the files of a container that were cut, of
// those that a parser has read.
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

// rest lists what became of those files that no parser has read.
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

// String says how much of a file was kept and how much was not.
func (w *written) String() string {
	atLeast := "at least "
	if w.final {
		atLeast = ""
	}
	return fmt.Sprintf("%s kept, %s%s discarded", byteSize(w.kept), atLeast, byteSize(w.refused+w.source))
}

// byteSize is a size for people: "64 MiB", "15.9 GiB".
func byteSize(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	v := float64(n)
	for v >= 1024 && len(units) > 1 {
		v, units = v/1024, units[1:]
	}
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) + " " + units[0]
}

// takeOutput is take, and says when a file is cut.
func (r *runner) takeOutput(f outputFile, n int) int {
	kept, cut := r.outputs.take(f, n)
	if cut {
		r.reportCut(f)
	}
	return kept
}

// reportCut says in the log that a file is cut, and of the first also to the user.
func (r *runner) reportCut(f outputFile) {
	line := fmt.Sprintf("there is more of %s than is kept: the rest is discarded (spec.maxOutput)", f.name)
	r.Record.Log(r.Clock.Now(), f.source(), line)
	r.outputs.mu.Lock()
	first := r.outputs.cut[0] == f
	r.outputs.mu.Unlock()
	if first {
		r.Observer.Log("run", f.source()+": "+line)
	}
}

// maxCutNames is how many files the evidence of one flag names; the log has all.
const maxCutNames = 5

// flagOutputs flags what was cut and is read by no parser.
func (r *runner) flagOutputs() {
	cut := r.outputs.rest()
	if len(cut) == 0 {
		return
	}
	evidence := strings.Join(cut[:min(maxCutNames, len(cut))], "; ")
	if more := cut[min(maxCutNames, len(cut)):]; len(more) > 0 {
		evidence += fmt.Sprintf("; and %d more files (log.jsonl)", len(more))
		for _, c := range more {
			r.Record.Log(r.Clock.Now(), "run", c)
		}
	}
	r.warn(outputCut, evidence+"; spec.maxOutput says how much is kept")
}

// flagRead flags the files that a parser has read and that were cut: the figures
// are of a part of them.
func (r *runner) flagRead(instance, container string, names map[string]bool) {
	for _, c := range r.outputs.readByParser(instance, container, names) {
		r.flag(invalid, outputCut,
			fmt.Sprintf("%s/%s: its figures are of a part of %s; spec.maxOutput says how much is kept", instance,
				container, c))
	}
}

// openedFiles is a file system that remembers which files were opened.
type openedFiles struct {
	fs.FS
	names map[string]bool
}

func (o *openedFiles) Open(name string) (fs.File, error) {
	o.names[name] = true
	return o.FS.Open(name)
}
