package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

// TestExportFormats checks that each format goes to the standard output and, the same, to a file.
func TestExportFormats(t *testing.T) {
	b, _ := analysistest.Demo(t)
	dir := t.TempDir()
	for _, tt := range []struct{ flags, begins, contains string }{
		{"--format perfetto", `{"displayTimeUnit":"ns"`, `"name":"CreateSnapshot"`},
		{"--format csv", "run_id,op,episode,action,", ",ResourceExhausted,"},
		{"--format json", `{"run_id":"r20260102-synthetic","op":1,`, `"code":"ResourceExhausted"`},
		{"--format csv --table series", "run_id,instance,action,phase,", ",read.iops,1/s,"},
		{"--format json --table figures", `{"run_id":`, `"statistic":"p50"`},
		{"--format parquet", "PAR1", "at_ready_ns"},
		{"--format otlp", `{"resourceSpans":[`, `"cnsbench.run.id"`},
	} {
		t.Run(tt.flags, func(t *testing.T) {
			args := append([]string{"export", b.Dir}, strings.Fields(tt.flags)...)
			code, out, errs := call(args...)
			if code != exitOK || !strings.HasPrefix(out, tt.begins) || !strings.Contains(out, tt.contains) {
				t.Fatalf("exit %d\n%.300s\n%s", code, out, errs)
			}
			file := filepath.Join(dir, "out")
			if code, printed, errs := call(append(args, "--out", file)...); code != exitOK || printed != "" {
				t.Fatalf("exit %d, prints %.100s\n%s", code, printed, errs)
			}
			if text, err := os.ReadFile(file); err != nil || string(text) != out {
				t.Errorf("the file differs from the standard output: %v", err)
			}
		})
	}
}

// TestExportProblems checks that a problem is one clear message, and that it leaves no file.
func TestExportProblems(t *testing.T) {
	b, _ := analysistest.Demo(t)
	dir := t.TempDir()
	live, err := bundle.Create(filepath.Join(t.TempDir(), "live"), bundle.Run{ID: "r", Name: "live"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := live.Close(nil); err != nil {
			t.Error(err)
		}
	}()
	if err := live.Flush(); err != nil {
		t.Fatal(err)
	}
	newer := filepath.Join(t.TempDir(), "newer")
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(newer, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(newer, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("run.json", `{"format": 99}`)
	damaged, _ := analysistest.Demo(t)
	if err := os.Truncate(filepath.Join(damaged.Dir, "events", "ops.parquet"), 4000); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	for _, tt := range []struct {
		name, args string
		code       int
		want       string
	}{
		{"nothing chosen", b.Dir, 1, "--pending, --all or --format"},
		{"two chosen", "--pending --format csv " + b.Dir, 1, "--pending, --all or --format"},
		{"another format", "--format xml " + b.Dir, 1, `invalid --format "xml": want csv, json, parquet, perfetto, otlp`},
		{"another table", "--format csv --table io " + b.Dir, 1, `invalid --table "io": want ops, series, figures or stalls`},
		{"a table of a timeline", "--format perfetto --table ops " + b.Dir, 1, "--table is of the formats"},
		{"a table of nothing", "--pending --table ops " + b.Dir, 1, "--table needs --format"},
		{"outputs of a cluster's bundle", "--pending --cluster n/r", 1, "--cluster needs --format"},
		{"a cluster's bundle without its run", "--format csv --cluster n", 1, "want NAMESPACE/RUN"},
		{"an endpoint of a table", "--format csv --endpoint http://h " + b.Dir, 1, "--endpoint is of --format otlp"},
		{"no endpoint", "--format otlp --endpoint h:1 " + b.Dir, 1, "invalid endpoint"},
		{"a file and an endpoint", "--format otlp --endpoint http://h --out x " + b.Dir, 1, "choose --out or --endpoint"},
		{"a limit of nothing", "--format csv --within 1s " + b.Dir, 1, "--within limits sending"},
		{"not a bundle", "--format csv --out " + out + " " + dir, 1, "is not a bundle: no run.json"},
		{"nothing there", "--format csv --out " + out + " " + dir + "/none", 1, "no bundle at"},
		{"a newer bundle", "--format csv --out " + out + " " + newer, 1, "has format 99"},
		{"a run in progress", "--format csv --out " + out + " " + live.Dir(), 2, "export its bundle when it has ended"},
		{"a damaged bundle", "--format csv --out " + out + " " + damaged.Dir, 2, "ops.parquet is damaged"},
		{"a damaged bundle's timeline", "--format perfetto --out " + out + " " + damaged.Dir, 2, "ops.parquet is damaged"},
		{"no directory", "--format csv --out " + dir + "/none/out " + b.Dir, 1, "there is no directory " + dir + "/none"},
		{"a directory", "--format csv --out " + dir + " " + b.Dir, 1, "it is a directory: want a file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, printed, errs := call(append([]string{"export"}, strings.Fields(tt.args)...)...)
			if code != tt.code || printed != "" || !strings.Contains(errs, tt.want) ||
				strings.Count(strings.TrimSpace(strings.ReplaceAll(errs, "warning: ", "")), "cnsbench: ") != 1 {
				t.Errorf("exit %d, prints %.100q, on the standard error:\n%s\nwant exit %d and %q", code, printed, errs,
					tt.code, tt.want)
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
				t.Errorf("it left %v, %v", entries, err)
			}
		})
	}
}

// TestExportEndpoint checks that traces arrive, and that a receiver's refusal is an error.
func TestExportEndpoint(t *testing.T) {
	b, _ := analysistest.Demo(t)
	ids := map[string]bool{}
	answer := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var got struct {
			ResourceSpans []struct {
				ScopeSpans []struct{ Spans []struct{ TraceID string } }
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		for _, s := range got.ResourceSpans[0].ScopeSpans[0].Spans {
			ids[s.TraceID] = true
		}
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	code, out, errs := call("export", "--format", "otlp", "--endpoint", server.URL, b.Dir)
	if code != exitOK || !strings.HasPrefix(out, "sent 43 traces with ") || len(ids) != 43 {
		t.Errorf("exit %d, %d traces arrived\n%s\n%s", code, len(ids), out, errs)
	}
	if _, _, errs := call("export", "--format", "otlp", "--endpoint", server.URL, b.Dir); errs != "" || len(ids) != 43 {
		t.Errorf("sent again there are %d traces\n%s", len(ids), errs)
	}
	answer = `{"partialSuccess":{"rejectedSpans":1,"errorMessage":"full"}}`
	if code, _, errs := call("export", "--format", "otlp", "--endpoint", server.URL, b.Dir); code != exitFailed ||
		!strings.Contains(errs, "rejected 1 span: full") {
		t.Errorf("exit %d\n%s", code, errs)
	}
}

// TestExportInterrupted checks that an interrupted export leaves no file.
func TestExportInterrupted(t *testing.T) {
	b, _ := analysistest.Demo(t)
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, format := range exportFormats {
		f := exportFlags{format: format, table: "ops", out: filepath.Join(dir, "out")}
		err := f.file(ctx, &streams{out: io.Discard, err: io.Discard}, b.Dir)
		var e *exit
		if !errors.As(err, &e) || e.code != exitInterrupted {
			t.Errorf("%s: error %v", format, err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("it left %v, %v", entries, err)
	}
}
