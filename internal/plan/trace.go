package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"io"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/schedule"
	"github.com/cnsbench/cnsbench/internal/trace"
)

// recording is a trace whose records are not yet assigned to actions.
type recording struct {
	path    string
	rate    int // index in Plan.Rates
	records []trace.Record
	scale   float64
}

// readTrace reads the file that a traceRateSpec names. It returns nil if it reported a
// problem.
func readTrace(g *graph, path string, spec *v1alpha1.TraceRateSpec, out *Rate) *recording {
	if g.in.Open == nil {
		g.Fail(path+".source", "cnsbench run hands its runner the file", "trace %q cannot be read here", spec.Source)
		return nil
	}
	f, err := g.in.Open(spec.Source)
	if err != nil {
		g.Fail(path+".source", "the path counts from the Benchmark's file", "%v", err)
		return nil
	}
	defer func() { _ = f.Close() }() // read only: an error of Close loses no data
	sum := sha256.New()
	whole := io.TeeReader(f, sum)
	records, err := trace.Read(whole)
	if err == nil {
		_, err = io.Copy(io.Discard, whole) // the hash includes bytes after the end of the trace
	}
	if err != nil {
		g.Fail(path+".source", "docs/format/trace.md describes the format", "%s: %v", spec.Source, err)
		return nil
	}
	scale := 1.0
	if spec.TimeScale != nil {
		scale = spec.TimeScale.Value
	}
	out.Schedule = schedule.Trace{} // filled in by replay
	out.Trace = &TraceFile{Name: spec.Source, SHA256: hex.EncodeToString(sum.Sum(nil)), Records: len(records)}
	return &recording{path: path, records: records, scale: scale}
}
