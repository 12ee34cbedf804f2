package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/oplog"
	"github.com/cnsbench/cnsbench/internal/redact"
	"github.com/cnsbench/cnsbench/internal/study"
)

// evil steers a terminal, reverses text, hides characters, begins a line of its own, and is markup.
const evil = "evil\x1b[2J\x1b[31m\r\a\u202e\u200b\u009b2J\f\v\nFORGED <script>x</script> a|b `c` ![d](//e)"

// TestEveryString puts evil into every string of every format, found by their types, and runs what prints them.
func TestEveryString(t *testing.T) {
	plainBundle = small(t, filepath.Join(t.TempDir(), "plain"), nil)
	for name, bundles := range map[string]func(*testing.T) []string{
		"run.json": hostileRuns, "environment.json": hostileEnvironments, "streams": hostileStreams,
		"manifest.json and ledger": hostileFiles,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shown := 0
			dirs := bundles(t)
			for i, dir := range dirs {
				commands := [][]string{{"show", dir}, {"list", filepath.Dir(dir)}, {"verify", dir},
					{"report", "--output", "markdown", "-o", "-", dir}}
				if len(dirs) < 20 || i >= len(dirs)-2 {
					commands = append(commands, [][]string{{"report", "-o", "-", dir}, {"compare", dir, dir}, {"show", "-o", "json", dir}, {"show", "-o", "csv", dir},
						{"show", "--events", dir}, {"show", "--op", "1", dir}, {"list", "-o", "json", dir},
						{"verify", "-o", "json", dir}, {"compare", "-o", "markdown", dir, dir},
						{"export", "--format", "csv", dir}, {"export", "--format", "json", dir},
						{"export", "--format", "perfetto", dir}, {"scorecard", dir}, {"reproduce", "--dry-run", dir}}...)
				}
				shown += printsNothingRaw(t, commands)
			}
			if shown == 0 {
				t.Error("no command printed the string")
			}
		})
	}
	t.Run("study.json", func(t *testing.T) {
		t.Parallel()
		shown := 0
		for _, dir := range hostileStudies(t) {
			shown += printsNothingRaw(t, [][]string{{"study", "show", dir}, {"study", "show", "-o", "json", dir},
				{"study", "status", dir}, {"study", "status", "-o", "json", dir}, {"study", "report", "-o", "-", dir},
				{"study", "report", "--output", "markdown", "-o", "-", dir}, {"list", dir}, {"verify", dir}, {"compare", dir}})
		}
		if shown == 0 {
			t.Error("no command printed the string")
		}
	})
}

var (
	markup     = regexp.MustCompile(`<script>x`)
	inMarkdown = regexp.MustCompile("<script|[^\\\\]\\|b|[^\\\\]`c|!\\[d\\]|[\u200b\u202e]")
)

// printsNothingRaw runs commands and returns how many of them printed evil.
func printsNothingRaw(t *testing.T, commands [][]string) (shown int) {
	t.Helper()
	for _, args := range commands {
		var out, errs strings.Builder
		code := Main(args, strings.NewReader(""), &out, &errs)
		html := strings.HasSuffix(args[0], "report") || args[0] == "study" && args[1] == "report"
		markdown := strings.Contains(strings.Join(args, " "), "markdown")
		csv := strings.Contains(strings.Join(args, " "), "csv")
		if strings.Contains(out.String(), "evil") && code == 0 {
			shown++
		}
		for where, text := range map[string]string{"stdout": out.String(), "stderr": errs.String()} {
			problem := func(what string, at int) {
				t.Errorf("cnsbench %s (%d): %s on %s: %q", strings.Join(args, " "), code, what, where,
					text[max(0, at-100):min(len(text), at+60)])
			}
			if at := strings.IndexFunc(text, raw); at >= 0 {
				problem("raw control character", at)
			}
			if at := strings.Index("\n"+text, "\nFORGED"); at >= 0 && !html && !csv || at >= 0 && where == "stderr" {
				problem("a line of its own", at)
			}
			switch {
			case where == "stderr":
			case markdown:
				if at := inMarkdown.FindStringIndex(text); at != nil {
					problem("markup", at[0])
				}
			case html:
				if at := markup.FindStringIndex(text); at != nil {
					problem("markup", at[0])
				}
			}
		}
	}
	return shown
}

// raw reports whether a character controls a terminal or cannot be seen.
func raw(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r))
}

// populate gives every pointer, list and map an element.
func populate(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() && v.CanSet() && depth < 8 {
			v.Set(reflect.New(v.Type().Elem()))
		}
		if !v.IsNil() {
			populate(v.Elem(), depth+1)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				populate(v.Field(i), depth+1)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		if v.Len() == 0 && depth < 8 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		for i := range v.Len() {
			populate(v.Index(i), depth+1)
		}
	case reflect.Map:
		if v.Len() == 0 && v.Type().Key().Kind() == reflect.String {
			e := reflect.New(v.Type().Elem()).Elem()
			if e.Kind() == reflect.Interface {
				e.Set(reflect.ValueOf("x"))
			}
			populate(e, depth+1)
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(reflect.ValueOf("x").Convert(v.Type().Key()), e)
		}
	}
}

// places returns a setter for each string in v.
func places(v reflect.Value) (list []func(string)) {
	switch v.Kind() {
	case reflect.String:
		return []func(string){func(s string) { v.SetString(s) }}
	case reflect.Pointer:
		if !v.IsNil() {
			return places(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				list = append(list, places(v.Field(i))...)
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			list = append(list, places(v.Index(i))...)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			if k.Kind() != reflect.String {
				continue
			}
			list = append(list, func(s string) { v.SetMapIndex(reflect.ValueOf(s).Convert(k.Type()), v.MapIndex(k)) })
			if e := v.Type().Elem(); e.Kind() == reflect.String || e.Kind() == reflect.Interface {
				list = append(list, func(s string) { v.SetMapIndex(k, reflect.ValueOf(s).Convert(e)) })
			}
		}
	}
	return list
}

// variants has a value for each string of T that is evil, then one in which all are.
func variants[T any](t *testing.T, make func() T) (list []T) {
	t.Helper()
	first := make()
	n := len(places(reflect.ValueOf(&first)))
	if n == 0 {
		t.Fatalf("%T has no strings", first)
	}
	for i := range n + 1 {
		v := make()
		for j, set := range places(reflect.ValueOf(&v)) {
			if j == i || i == n {
				set(evil)
			}
		}
		list = append(list, v)
	}
	return list
}

func populated[T any](v T) T {
	populate(reflect.ValueOf(&v), 0)
	return v
}

const spec = `{"actions":[{"name":"fio","createObjSpec":{"workload":"fio","count":1}},` +
	`{"name":"snapshots","rateName":"often","snapshotSpec":{"actionName":"fio"}}],` +
	`"rates":[{"name":"often","constantRateSpec":{"interval":"1500ms"}}]}`

// plainBundle is a bundle without evil.
var plainBundle string

// copied returns a copy of a small bundle in which the file name, unless it is empty, is v as JSON.
func copied(t *testing.T, dir, name string, v any) string {
	t.Helper()
	if err := os.CopyFS(dir, os.DirFS(plainBundle)); err != nil {
		t.Fatal(err)
	}
	if name != "" {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), string(text))
	}
	return dir
}

// small writes a bundle.
func small(t *testing.T, dir string, write func(*bundle.Writer)) string {
	t.Helper()
	w, err := bundle.Create(dir, bundle.Run{ID: "1a2b3c4d", Name: "small", Engine: "local",
		Spec: json.RawMessage(spec), BarrierAt: 1e9, EndedAt: op.Never})
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(3) {
		at := op.Time(2e9 + i*1e9)
		w.Op(op.Op{ID: i, Action: "snapshots", Kind: op.Snapshot, Target: "v", Intended: at, Started: at, Ended: at + 5e6,
			Outcome: op.OK, Milestones: []op.Milestone{}})
	}
	if write != nil {
		write(w)
	}
	err = w.Close(func(r *bundle.Run) {
		r.State, r.EndedAt = bundle.Complete, 10e9
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func hostileRuns(t *testing.T) (dirs []string) {
	root := t.TempDir()
	run := func() bundle.Run {
		return populated(bundle.Run{Format: bundle.Version, ID: "1a2b3c4d", Name: "small", State: bundle.Complete,
			Engine: "local", Spec: json.RawMessage(spec), BarrierAt: 1e9, EndedAt: 10e9})
	}
	for i, r := range variants(t, run) {
		dirs = append(dirs, copied(t, filepath.Join(root, fmt.Sprint(i), "b"), "run.json", r))
	}
	hostile := strings.ReplaceAll(strings.ReplaceAll(spec, `"fio"`, quoted(evil)), `"snapshots"`, quoted(evil+"2"))
	r := run()
	r.Spec = json.RawMessage(hostile)
	return append(dirs, copied(t, filepath.Join(root, "spec", "b"), "run.json", r))
}

func quoted(s string) string {
	b, _ := json.Marshal(s) // a string can always be encoded
	return string(b)
}

func hostileEnvironments(t *testing.T) (dirs []string) {
	root := t.TempDir()
	for i, e := range variants(t, func() bundle.Environment { return populated(bundle.Environment{}) }) {
		dirs = append(dirs, copied(t, filepath.Join(root, fmt.Sprint(i), "b"), "environment.json", e))
	}
	return dirs
}

// hostileStreams has a bundle for each kind of records.
func hostileStreams(t *testing.T) (dirs []string) {
	root := t.TempDir()
	const at = op.Time(3e9)
	h := hist.New()
	_ = h.RecordN(5_000_000, 400) // cannot fail: the value is positive
	labels := bundle.Labels{Instance: "fio-0", Action: "fio"}
	slice := bundle.HistogramSlice{Labels: labels, Total: true,
		Histogram: metric.Histogram{Metric: "read.latency", Unit: "ns", From: 1e9, To: 9e9, Hist: h}}
	for i, write := range []func(*bundle.Writer){
		func(w *bundle.Writer) {
			for i, o := range variants(t, func() op.Op {
				return populated(op.Op{Action: "snapshots", Kind: op.Snapshot, Intended: at, Started: at, Ended: at + 1e6,
					Outcome: op.Error, Milestones: []op.Milestone{{Name: "ready", At: at}}})
			}) {
				o.ID = int64(i)
				w.Op(o)
			}
		},
		each(t, op.Sample{Instance: "fio-0", At: at}, (*bundle.Writer).Sample),
		each(t, op.Machine{}, (*bundle.Writer).Machine),
		each(t, op.QueryReading{At: at}, (*bundle.Writer).Query),
		each(t, op.VolumeReading{Volume: "v", At: at}, (*bundle.Writer).Volume),
		each(t, op.InstanceStart{Instance: "fio-0", Container: "c", At: at}, (*bundle.Writer).Started),
		each(t, op.InstanceEnd{Instance: "fio-0", At: at}, (*bundle.Writer).Ended),
		each(t, bundle.LogLine{At: at, Source: "run", Line: "x"}, func(w *bundle.Writer, l bundle.LogLine) {
			w.Log(l.At, l.Source, l.Line)
		}),
		each(t, bundle.Series{Labels: labels, Series: metric.Series{Metric: "read.iops"}}, (*bundle.Writer).Series),
		each(t, bundle.Scalar{Labels: labels, Scalar: metric.Scalar{Metric: "read.iops", Value: 1}}, (*bundle.Writer).Scalar),
		each(t, slice.Labels, func(w *bundle.Writer, l bundle.Labels) {
			s := slice
			s.Labels = l
			w.Histogram(s)
			s.Labels, s.Metric, s.Unit = labels, evil, evil
			w.Histogram(s)
		}),
		func(w *bundle.Writer) {
			w.Canary(evil, evil, []op.CanaryIO{{Intended: at, Started: at, Ended: at + 1e6, Write: true}})
			w.Canary("fio-0", "v", []op.CanaryIO{{Intended: at, Started: at, Ended: at + 1e6}})
		},
		func(w *bundle.Writer) {
			selected, err := oplog.Select(w.EndedOps())
			if err != nil {
				t.Error(err)
				return
			}
			c := selected.Collect(redact.NewLines())
			c.Add(at, evil, evil)
			w.OpLogs(selected.About, c.Records())
		},
	} {
		dirs = append(dirs, small(t, filepath.Join(root, fmt.Sprint(i), "b"), write))
	}
	return dirs
}

// each writes all variants of a record.
func each[T any](t *testing.T, base T, write func(*bundle.Writer, T)) func(*bundle.Writer) {
	text, err := json.Marshal(base)
	if err != nil {
		t.Fatal(err)
	}
	return func(w *bundle.Writer) {
		for _, v := range variants(t, func() T {
			var v T
			if err := json.Unmarshal(text, &v); err != nil {
				t.Fatal(err)
			}
			return populated(v)
		}) {
			write(w, v)
		}
	}
}

// hostileFiles has a bundle for each string of its manifest, and one for each string of an entry of the ledger.
func hostileFiles(t *testing.T) (dirs []string) {
	root := t.TempDir()
	first := copied(t, filepath.Join(root, "first", "b"), "", nil)
	text, err := os.ReadFile(filepath.Join(first, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	for at := range regexp.MustCompile(`: "[^"]*"`).FindAllStringIndex(string(text), -1) {
		found := regexp.MustCompile(`: "[^"]*"`).FindAllStringIndex(string(text), -1)[at]
		dir := copied(t, filepath.Join(root, fmt.Sprint("manifest", at), "b"), "", nil)
		changed := string(text[:found[0]]) + ": " + quoted(evil) + string(text[found[1]:])
		write(t, filepath.Join(dir, "manifest.json"), changed)
		dirs = append(dirs, dir)
	}
	for i, e := range variants(t, func() op.LedgerEntry { return populated(op.LedgerEntry{Kind: "volume", Name: "v"}) }) {
		dir := copied(t, filepath.Join(root, fmt.Sprint("ledger", i), "b"), "", nil)
		line, err := json.Marshal(map[string]any{"add": e})
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "ledger"), string(line)+"\n")
		dirs = append(dirs, dir)
	}
	return dirs
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func hostileStudies(t *testing.T) (dirs []string) {
	root := t.TempDir()
	design := func() study.Design {
		levels := func(v string) []study.Level { return []study.Level{{Factor: "size", Value: v}} }
		return study.Design{Name: "small", Base: []string{"a=b"}, Factors: []string{"size"},
			Cells: []study.Cell{{Levels: levels("1"), Set: []string{"size=1"}}, {Levels: levels("2"), Set: []string{"size=2"}}},
			Trials: []study.Trial{{Name: "001", Cell: 0, Repetition: 1, Occasion: 1, Block: 1, Set: []string{"size=1"}},
				{Name: "002", Cell: 1, Repetition: 1, Occasion: 1, Block: 1, Set: []string{"size=2"}}},
			Order: &study.Order{}, Responses: []string{"p50(snapshots)"}, Sources: []study.Source{{Name: "a.yaml"}},
			Flags: []string{"--x"}, Blocks: 1, Planned: 1, Occasions: []study.Occasion{{Number: 1, Begun: time.Unix(1e9, 0)}},
			Metrics: []study.Metric{{Response: "p50(snapshots)", Direction: "lower", Margin: 0.1}},
			Command: &study.Command{Files: []string{"a.yaml"}, Args: []string{"--x"}, Dir: "/tmp"}, Merged: []string{"x"}}
	}
	for i, d := range variants(t, design) {
		dir := filepath.Join(root, fmt.Sprint(i))
		for _, trial := range []string{"001", "002"} {
			copied(t, filepath.Join(dir, trial), "", nil)
		}
		text, err := json.Marshal(struct {
			Format int `json:"format"`
			*study.Design
		}{1, &d})
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "study.json"), string(text))
		dirs = append(dirs, dir)
	}
	failed := filepath.Join(root, "failed")
	d := design()
	text, err := json.Marshal(struct {
		Format int `json:"format"`
		*study.Design
	}{1, &d})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(failed, "001"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(failed, "study.json"), string(text))
	write(t, filepath.Join(failed, "001", "failure.json"), `{"exitCode":2,"error":`+quoted(evil)+`}`)
	return append(dirs, failed)
}
