package hostile

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/imported"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/oplog"
	"github.com/cnsbench/cnsbench/internal/owned"
	"github.com/cnsbench/cnsbench/internal/study"
)

// The kinds of what commands read.
const (
	Local    = "local"
	Cluster  = "cluster"
	Object   = "object"
	Study    = "study"
	Imported = "imported"
)

const (
	runID = "0badc0de"
	at    = op.Time(3e9)
	end   = op.Time(10e9)
)

var nonce = strings.Repeat("0a", 16)

// benchmark is the Benchmark of the good bundles.
const benchmark = `{"apiVersion":"cnsbench.dev/v1alpha1","kind":"Benchmark","metadata":{"name":"small"},"spec":{
	"actions":[{"name":"fio","createObjSpec":{"workload":"fio","count":1,"volume":{"storageClass":"sut"}}},
		{"name":"snapshots","rateName":"often","snapshotSpec":{"actionName":"fio"},"outputs":{"outputName":"lines"}}],
	"rates":[{"name":"often","constantRateSpec":{"interval":"1500ms"}}],
	"outputs":[{"name":"lines","fileSpec":{"path":"results.jsonl"}}]}}`

// plan has the resolved facts of that Benchmark.
const plan = `{"gracePeriod":"30s","storageClasses":{"sut":"hostdir.csi.cnsbench.dev"},"args":["--seed","1"]}`

// objects is the plan of a run of object storage in a directory.
const objects = `{"name":"small","stages":[{"name":"init","repetitions":1,"works":[{"name":"init","kind":"init",
	"workers":1,"intervalNs":5000000000,"store":{"kind":"file","settings":{"root":"/nonexistent"}},"operations":[
	{"type":"init","name":"init","weight":100,"division":"container","containers":{"Kind":3,"Low":1,"High":1},
	"containerName":{"prefix":"c"},"objectName":{"prefix":"o"}}]}]}]}`

// good is run.json of a kind of bundle.
func good(kind string) bundle.Run {
	r := bundle.Run{Format: bundle.Version, ID: runID, Name: "small", State: bundle.Complete, Engine: "local",
		Spec: json.RawMessage(benchmark), Source: bundle.Source{File: "small.yaml", Text: benchmark},
		Plan:      json.RawMessage(plan),
		BarrierAt: 1e9, EndedAt: end,
		Clock: bundle.ClockInfo{Start: time.Unix(1.7e9, 0).UTC(), Source: "test", Resolution: 1}}
	switch kind {
	case Cluster:
		r.Engine = "kubernetes"
		r.Identity = owned.Identity{RunID: runID, Nonce: nonce, Namespace: "ns", Server: "https://127.0.0.1:1"}
	case Object:
		r.Engine, r.Spec, r.Plan = bundle.Objects, nil, json.RawMessage(objects)
	}
	return r
}

// stream is a way to record something in a bundle.
type stream struct {
	method, file string // of bundle.Writer, and of the bundle
	format
	write func(w *bundle.Writer, v any, id int)
}

func streamOf[T any](method, file string, base T, write func(w *bundle.Writer, v T, id int)) stream {
	return stream{method, file, formatOf(base), func(w *bundle.Writer, v any, id int) { write(w, v.(T), id) }}
}

// opLog, rawText and sent are what Writer.OpLogs, Raw and RemoteWrite are given.
type opLog struct {
	About oplog.About
	Op    oplog.Record
}

type rawText struct{ Instance, Container, File, Text string }

type sent struct{ Output, Body string }

// histogram is a distribution with numbers in it.
func histogram() *hist.Histogram {
	h := hist.New()
	_ = h.RecordN(5_000_000, 400) // cannot fail: the value is positive
	return h
}

// streams are all that a bundle's Writer records. A test checks that none of its methods is missing.
func streams() []stream { return slices.Concat(events(), readings(), figures(), texts()) }

// events are the streams of what happened.
func events() []stream {
	return []stream{
		streamOf("Op", "events/ops.parquet", op.Op{Action: "snapshots", Kind: op.Snapshot, Target: "v", Intended: at,
			Started: at, Ended: at + 5e6, Outcome: op.OK, Milestones: []op.Milestone{{Name: "ready", At: at + 1e6}}},
			func(w *bundle.Writer, o op.Op, id int) {
				if o.ID == 0 {
					o.ID = int64(id)
				}
				w.Op(o)
			}),
		streamOf("Started", "instances.jsonl", op.InstanceStart{Instance: "fio-0", Container: "c", Intended: 1e9, At: 1e9},
			func(w *bundle.Writer, s op.InstanceStart, _ int) { w.Started(s) }),
		streamOf("Ended", "instances.jsonl", op.InstanceEnd{Instance: "fio-0", At: at + 5e9, OK: true},
			func(w *bundle.Writer, e op.InstanceEnd, _ int) { w.Ended(e) }),
	}
}

// readings are the streams of what was read again and again.
func readings() []stream {
	var ios []op.CanaryIO
	for i := range op.Time(100) {
		t := at + i*1e7
		ios = append(ios, op.CanaryIO{Intended: t, Started: t, Ended: t + 1e6, Write: i%2 == 0})
	}
	return []stream{
		streamOf("Sample", "series/samples.jsonl",
			op.Sample{Instance: "fio-0", At: at + 2e9, WriteBytes: 1 << 20, CPUNanos: 1e8},
			func(w *bundle.Writer, s op.Sample, _ int) { w.Sample(s) }),
		streamOf("Machine", "series/machines.jsonl", op.Machine{At: at},
			func(w *bundle.Writer, m op.Machine, _ int) { w.Machine(m) }),
		streamOf("Query", "series/queries.jsonl", op.QueryReading{Query: "q", At: at, Values: []op.QueryValue{{Value: 3}}},
			func(w *bundle.Writer, r op.QueryReading, _ int) { w.Query(r) }),
		streamOf("Volume", "series/volumes.jsonl", op.VolumeReading{Volume: "v", Driver: "d", At: at,
			Bytes: &op.VolumeAmount{Total: 9, Used: 3, Available: 6}},
			func(w *bundle.Writer, r op.VolumeReading, _ int) { w.Volume(r) }),
		streamOf("Canary", "canary/canary.frames", bundle.CanaryBatch{Instance: "fio-0", Volume: "v", IOs: ios[:1]},
			func(w *bundle.Writer, b bundle.CanaryBatch, _ int) {
				w.Canary(b.Instance, b.Volume, slices.Concat(ios[1:], b.IOs))
			}),
	}
}

// figures are the streams of what workloads measured.
func figures() []stream {
	labels := bundle.Labels{Instance: "fio-0", Action: "fio"}
	points := []metric.Point{{At: at, Value: 5}, {At: at + 1e9, Value: 5}, {At: at + 2e9, Value: 5}}
	return []stream{
		streamOf("Series", "series/series.jsonl", bundle.Series{Labels: labels,
			Series: metric.Series{Metric: "read.iops", Step: 1e9, Points: points}},
			func(w *bundle.Writer, s bundle.Series, _ int) { w.Series(s) }),
		streamOf("Scalar", "series/scalars.jsonl", bundle.Scalar{Labels: labels,
			Scalar: metric.Scalar{Metric: "read.iops", Value: 1, From: at, To: end}},
			func(w *bundle.Writer, s bundle.Scalar, _ int) { w.Scalar(s) }),
		streamOf("Histogram", "histograms/histograms.jsonl", bundle.HistogramSlice{Labels: labels,
			Histogram: metric.Histogram{Metric: "read", Unit: "ns", From: at, To: at + 1e9, Hist: histogram()}},
			func(w *bundle.Writer, s bundle.HistogramSlice, _ int) {
				w.Histogram(s)
				s.Total = true
				w.Histogram(s)
			}),
	}
}

// texts are the streams of what others wrote.
func texts() []stream {
	return []stream{
		streamOf("Log", "log.jsonl", bundle.LogLine{At: at, Source: "run", Line: "x"},
			func(w *bundle.Writer, l bundle.LogLine, _ int) { w.Log(l.At, l.Source, l.Line) }),
		streamOf("OpLogs", "logs/ops.jsonl", opLog{Op: oplog.Record{ID: 1, From: at, To: at + 1e9,
			Lines: []oplog.Line{{At: at, Source: "x"}}}},
			func(w *bundle.Writer, l opLog, _ int) { w.OpLogs(l.About, []oplog.Record{l.Op}) }),
		streamOf("Raw", "raw/fio-0/fio/out.json", rawText{"fio-0", "fio", "out.json", "{}"},
			func(w *bundle.Writer, r rawText, _ int) {
				_ = w.Raw(r.Instance, r.Container, r.File, []byte(r.Text)) // an invalid name is refused
			}),
		streamOf("RemoteWrite", "remote-write/metrics.frames", sent{"metrics", "body"},
			func(w *bundle.Writer, s sent, _ int) {
				if s.Output == Evil {
					s.Output = "metrics" // the plan has checked names of outputs
				}
				w.RemoteWrite(s.Output, []byte(s.Body))
			}),
	}
}

// writeBundle writes a bundle with something in each stream, and what more adds.
func writeBundle(tb testing.TB, dir, kind string, more func(*bundle.Writer)) {
	tb.Helper()
	w, err := bundle.Create(dir, good(kind))
	if err != nil {
		tb.Fatal(err)
	}
	for _, s := range streams() {
		for id := range 3 {
			s.write(w, s.vary(tb, nil), id+1)
		}
	}
	if more != nil {
		more(w)
	}
	err = w.Environment(environment.vary(tb, nil).(bundle.Environment))
	if err == nil {
		err = w.Plan(json.RawMessage(`{"Name":"small","Actions":[{"Name":"fio","Kind":"create","Count":1}]}`))
	}
	if err == nil {
		err = w.Close(func(r *bundle.Run) { r.State, r.EndedAt = bundle.Complete, end })
	}
	if err == nil {
		err = bundle.WriteOutput(dir, "results.jsonl", func(w io.Writer) error {
			_, err := io.WriteString(w, "{}\n")
			return err
		})
	}
	if err == nil && kind == Cluster {
		pod := op.LedgerEntry{Kind: "pods", Name: "cnsb-" + runID + "-fio-0", Data: map[string]string{"namespace": "ns"}}
		err = os.WriteFile(filepath.Join(dir, "ledger"), added(pod), 0o644)
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// added is a line of the ledger.
func added(e op.LedgerEntry) []byte {
	line, _ := json.Marshal(map[string]any{"add": e}) // texts can always be encoded
	return append(line, '\n')
}

var (
	environment = formatOf(bundle.Environment{})
	ledger      = formatOf(op.LedgerEntry{Kind: "volume", Name: "v"})
	description = formatOf(imported.Description{FormatVersion: 1, Importer: "csv"})
)

// failure is failure.json of a trial.
type failure struct {
	ExitCode int    `json:"exitCode"`
	Error    string `json:"error"`
}

// storedDesign is study.json.
type storedDesign struct {
	Format int `json:"format"`
	*study.Design
}

// design is a study of two trials, and search one that searches a rate.
var (
	design = formatOf(storedDesign{1, twoTrials()}, func(d *storedDesign) { d.Search = nil }, valid)
	search = formatOf(storedDesign{1, searching()}, valid)
)

// searching is that study as a search.
func searching() *study.Design {
	d := twoTrials()
	d.Search = &study.Search{Action: "snapshots", Rate: "often", Schedule: study.Constant,
		Condition: `p99(snapshots) < duration("1s")`, From: 1, Least: 1, Most: 10, Resolution: 0.1, Window: 1e9, Needs: 6}
	return d
}

func valid(d *storedDesign) { d.Cells[0].AAOf = nil }

func twoTrials() *study.Design {
	return &study.Design{Name: "small", Base: []string{"a=b"}, Factors: []string{"size"},
		Cells: []study.Cell{cell("1"), cell("2")}, Trials: []study.Trial{trial(0), trial(1)},
		Responses: []string{"p50(snapshots)"}, Sources: []study.Source{{Name: "a.yaml"}}, Flags: []string{"--x"},
		Blocks: 1, Planned: 1, Occasions: []study.Occasion{{Number: 1, Begun: time.Unix(1e9, 0)}},
		Metrics: []study.Metric{{Response: "p50(snapshots)", Direction: "lower", Margin: 0.1}},
		Command: &study.Command{Files: []string{"/nonexistent/a.yaml"}, Args: []string{"--blocks=1"}, Dir: "/nonexistent"}}
}

func cell(size string) study.Cell {
	return study.Cell{Levels: []study.Level{{Factor: "size", Value: size}}, Set: []string{"size=" + size}}
}

func trial(i int) study.Trial {
	return study.Trial{Name: fmt.Sprintf("%03d", i+1), Cell: i, Repetition: 1, Occasion: 1, Block: 1,
		Set: []string{fmt.Sprintf("size=%d", i+1)}}
}

// writeStudy writes a study of two trials: one has a bundle, the other failed before it had one.
func writeStudy(tb testing.TB, dir, plain string) {
	tb.Helper()
	if err := os.CopyFS(filepath.Join(dir, "001"), os.DirFS(plain)); err != nil {
		tb.Fatal(err)
	}
	writeJSON(tb, filepath.Join(dir, "study.json"), storedDesign{1, twoTrials()})
	writeJSON(tb, filepath.Join(dir, "002", "failure.json"), failure{2, "it failed"})
}

// writeImported writes an imported folder of two providers.
func writeImported(tb testing.TB, dir string, providers ...string) {
	tb.Helper()
	var values strings.Builder
	w := csv.NewWriter(&values)
	rows := [][]string{{"provider", "occasion", "iops"}}
	for i := range 12 {
		rows = append(rows, []string{providers[i%2], fmt.Sprint(i / 4), fmt.Sprint(100 + i*i%17)})
	}
	if err := w.WriteAll(rows); err != nil {
		tb.Fatal(err)
	}
	columns := imported.Columns{Factors: []string{"provider"}, Occasion: "occasion", Values: imported.Names{"iops"}}
	if _, err := imported.CSV(dir, "results.csv", strings.NewReader(values.String()),
		imported.Format{Columns: columns}); err != nil {
		tb.Fatal(err)
	}
}

// writeJSON replaces a file.
func writeJSON(tb testing.TB, path string, v any) {
	tb.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	write(tb, path, string(b))
}

// write replaces a file.
func write(tb testing.TB, path, content string) {
	tb.Helper()
	_ = os.RemoveAll(path)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(content), 0o644)
	}
	if err != nil {
		tb.Fatal(err)
	}
}
