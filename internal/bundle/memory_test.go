package bundle

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/op"
)

// heapAfter returns the size of the live heap in bytes, after a garbage collection.
func heapAfter() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// residentPeak returns VmHWM, the peak resident memory of this process, in bytes.
func residentPeak(tb testing.TB) int64 {
	b, err := os.ReadFile("/proc/self/status")
	must(tb, err)
	n, err := strconv.ParseInt(strings.TrimSuffix(field(string(b), "VmHWM"), " kB"), 10, 64)
	must(tb, err)
	return n << 10
}

// grow records the operations with the IDs from to to-1 without pauses.
func grow(tb testing.TB, w *Writer, from, to int64) {
	o := op.Op{Action: "snapshots", Kind: op.Snapshot, Outcome: op.OK, Milestones: make([]op.Milestone, 10)}
	for id := from; id < to; id++ {
		o.ID, o.Intended, o.Started, o.Ended = id, op.Time(id*1e6), op.Time(id*1e6+1e4), op.Time(id*1e6+3e7)
		w.Op(o)
	}
	must(tb, w.Flush())
}

// TestMemoryFlat checks that the writer uses no more memory after 100 000 operations than after 10 000, and that a
// burst at full speed does not fill the queue.
func TestMemoryFlat(t *testing.T) {
	w := newWriter(t)
	grow(t, w, 0, 10_000)
	before := heapAfter()
	grow(t, w, 10_000, 100_000)
	if grown := heapAfter() - before; grown > 8<<20 {
		t.Errorf("the heap grew by %d KiB", grown>>10)
	}
	if w.queue.peak > 64<<20 {
		t.Errorf("%d MiB waited for the disk", w.queue.peak>>20)
	}
}

// BenchmarkMemory1M measures the memory use at 10 000 and at a million operations (100 000 with -short), and during
// Close.
func BenchmarkMemory1M(b *testing.B) {
	n := int64(1_000_000)
	if testing.Short() {
		n = 100_000
	}
	for b.Loop() {
		w, err := Create(filepath.Join(b.TempDir(), "b"), Run{})
		must(b, err)
		grow(b, w, 0, 10_000)
		small, peakSmall := heapAfter(), residentPeak(b)
		grow(b, w, 10_000, n)
		large, peakLarge := heapAfter(), residentPeak(b)
		must(b, w.Close(nil))
		b.ReportMetric(float64(small)/(1<<20), "heapMiB@10k")
		b.ReportMetric(float64(large)/(1<<20), "heapMiB@1M")
		b.ReportMetric(float64(peakSmall)/(1<<20), "rssMiB@10k")
		b.ReportMetric(float64(peakLarge)/(1<<20), "rssMiB@1M")
		b.ReportMetric(float64(residentPeak(b))/(1<<20), "rssMiB@close")
	}
}
