package cli

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const volumes = `apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: volumes}
spec: {actions: [{name: v, createObjSpec: {count: 3, volume: {storageClass: hostdir, size: 1Gi}}}]}
`

// noResponse is a study whose response is of no action.
const noResponse = `apiVersion: cnsbench.dev/v1alpha1
kind: Study
metadata: {name: s}
spec:
  responses: [p50(none)]
  benchmark: {actions: [{name: v, createObjSpec: {count: 3, volume: {storageClass: hostdir, size: 1Gi}}}]}
`

// TestMainExits checks exit codes and output of commands that run no engine. The engine and the signals are tested with
// the built programs in test/e2e.
func TestMainExits(t *testing.T) {
	dir := t.TempDir()
	file, study := filepath.Join(dir, "volumes.yaml"), filepath.Join(dir, "study.yaml")
	err := os.WriteFile(file, []byte(volumes), 0o600)
	if err := errors.Join(err, os.WriteFile(study, []byte(noResponse), 0o600)); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		args   []string
		in     string
		code   int
		out    []string
		errs   []string
		silent bool // nothing is written to the standard output
	}{
		{name: "valid", args: []string{"validate", file}, out: []string{"volumes is valid: 1 action, 0 rates, 0 SLOs"}},
		{name: "from the standard input", args: []string{"validate", "-"}, in: volumes,
			out: []string{"volumes is valid"}},
		{name: "problems name the standard input", args: []string{"validate", "-"},
			in: strings.Replace(volumes, "count", "cuont", 1), code: 1,
			errs: []string{"<stdin>:4", "cuont", `"count"`, "1 problem"}, silent: true},
		{name: "in two files", args: []string{"validate", file, "-"}, in: "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: hostdir}\nprovisioner: null.csi.cnsbench.dev\n",
			out: []string{"volumes is valid"}},
		{name: "set", args: []string{"run", "--dry-run", "--set", "spec.actions.v.createObjSpec.count=7", file},
			out: []string{"volumes", "7", "7Gi", "nothing was created"}},
		{name: "set what is not there", args: []string{"validate", "--set", "spec.actions.w.timeout=1s", file}, code: 1,
			errs: []string{"--set", "w"}, silent: true},
		{name: "another engine", args: []string{"run", "--engine", "nomad", file}, code: 1,
			errs: []string{`--engine "nomad"`, "local", "kubernetes"}, silent: true},
		{name: "no file", args: []string{"run"}, code: 1, errs: []string{"arg"}, silent: true},
		{name: "no such file", args: []string{"validate", filepath.Join(dir, "none.yaml")}, code: 1,
			errs: []string{"none.yaml"}, silent: true},
		{name: "output of neither kind", args: []string{"run", "--output", "xml", file}, code: 1,
			errs: []string{"text, json or csv"}, silent: true},
		{name: "no bundle", args: []string{"show", dir}, code: 1, errs: []string{"not a bundle"}, silent: true},
		{name: "no ledger", args: []string{"cleanup", filepath.Join(dir, "none")}, code: 1, errs: []string{"none"},
			silent: true},
		{name: "no such run", args: []string{"cleanup", "--run", "../none"}, code: 1,
			errs: []string{"../none", "not started"}, silent: true},
		{name: "backend", args: []string{"csi", "driver", "--backend", "nul"}, code: 1,
			errs: []string{`--backend "nul"`, "hostdir"}, silent: true},
		{name: "socket", args: []string{"csi", "driver", "--backend", "null"}, code: 1, errs: []string{"--socket"},
			silent: true},
		{name: "capacity", args: []string{"csi", "driver", "--backend", "null", "--capacity", "much"}, code: 1,
			errs: []string{"--capacity", "much"}, silent: true},
		{name: "destroy what", args: []string{"csi", "driver", "--backend", "null", "--destroy"}, code: 1,
			errs: []string{"--base-dir"}, silent: true},
		{name: "workloads", args: []string{"workloads", "show"}, out: []string{"fio ", "idle ", "write-once "}},
		{name: "no repetition", args: []string{"study", "run", file, "--repetitions", "0"}, code: 1,
			errs: []string{"--blocks 0", "at least 1"}, silent: true},
		{name: "two numbers of blocks", args: []string{"study", "run", file, "--blocks", "2", "--repetitions", "3"}, code: 1,
			errs: []string{"--blocks is given twice"}, silent: true},
		{name: "no occasion", args: []string{"study", "run", file, "--occasions", "0"}, code: 1,
			errs: []string{"--occasions 0", "at least 1"}, silent: true},
		{name: "an A/A arm of nothing", args: []string{"study", "run", file, "--dry-run", "--aa", "hostdir"}, code: 1,
			errs: []string{`--aa "hostdir"`, "FACTOR=VALUE"}, silent: true},
		{name: "an A/A arm of no factor", args: []string{"study", "run", file, "--dry-run", "--aa", "a=b"}, code: 1,
			errs: []string{file + ": the A/A arm selects levels of a"}, silent: true},
		{name: "no scale", args: []string{"study", "run", file, "--dry-run", "--scale", "s"}, code: 1,
			errs: []string{file + ": the study has no scale"}, silent: true},
		{name: "a response to nothing", args: []string{"study", "run", "--dry-run", study}, code: 1,
			errs: []string{study + ": cell all: response", `action "none" not found`}, silent: true},
		{name: "a factor without values", args: []string{"study", "run", file, "--dry-run", "--factor", "fio.bs"}, code: 1,
			errs: []string{`--factor "fio.bs"`, "KEY=VALUE"}, silent: true},
		{name: "no study", args: []string{"show", "--status", dir}, code: 1, errs: []string{"no study", dir}, silent: true},
		{name: "occasion of no study", args: []string{"study", "add-occasion", filepath.Join(dir, "none")}, code: 1,
			errs: []string{"has no study", "study run"}, silent: true},
		{name: "occasion elsewhere", args: []string{"study", "add-occasion", dir, "--out", dir}, code: 1,
			errs: []string{"--out is not for add-occasion"}, silent: true},
		{name: "merge into nothing", args: []string{"study", "merge", dir, dir}, code: 1, errs: []string{"--out is missing"},
			silent: true},
		{name: "time zone", args: []string{"study", "schedule", file, "--time-zone", "Mars/Base"}, code: 1,
			errs: []string{`"Mars/Base"`, "Europe/Berlin"}, silent: true},
		{name: "schedule without a claim", args: []string{"study", "schedule", file}, code: 1,
			errs: []string{"--claim is missing"}, silent: true},
		{name: "suite without its storage", args: []string{"study", "run", "suite:attach-new", "--dry-run"}, code: 1,
			errs: []string{`"standard"`, "Name the storage by --factor"}, silent: true},
		{name: "unknown workload", args: []string{"workloads", "show", "foi"}, code: 1, errs: []string{`"foi"`, "fio"},
			silent: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out, errs strings.Builder
			if code := Main(tt.args, strings.NewReader(tt.in), &out, &errs); code != tt.code {
				t.Errorf("exit %d, want %d", code, tt.code)
			}
			for _, want := range tt.out {
				if !strings.Contains(out.String(), want) {
					t.Errorf("does not print %q", want)
				}
			}
			for _, want := range tt.errs {
				if !strings.Contains(errs.String(), want) {
					t.Errorf("does not say %q", want)
				}
			}
			if tt.silent && out.Len() > 0 || tt.code == 0 && errs.Len() > 0 {
				t.Error("output on the wrong stream")
			}
			if t.Failed() {
				t.Logf("--- stdout\n%s--- stderr\n%s", out.String(), errs.String())
			}
		})
	}
}

func TestJSONIsAllThereIs(t *testing.T) {
	for _, args := range [][]string{{"run", "--dry-run", "-"}, {"version"}, {"doctor"}} {
		var out, errs strings.Builder
		Main(append(args, "--output", "json"), strings.NewReader(volumes), &out, &errs)
		if !json.Valid([]byte(out.String())) {
			t.Errorf("%v prints\n%s", args, out.String())
		}
	}
}

func TestWriteFileIsWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "page")
	text := func(text string, err error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, werr := io.WriteString(w, text)
			return errors.Join(werr, err)
		}
	}
	if err := writeFile(t.Context(), path, text("former", nil)); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := writeFile(t.Context(), path, text("half", broken)); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("left %v, %v", left, err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "former" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestValidateNamesPrograms: a file is valid where this machine lacks a program, and a warning says what brings it.
func TestValidateNamesPrograms(t *testing.T) {
	var out, errs strings.Builder
	code := Main([]string{"validate", "-"}, strings.NewReader(`apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: files}
spec:
  actions:
    - {name: f, createObjSpec: {workload: filebench, vars: {storageClass: hostdir, program: /no/such/filebench}}}
`), &out, &errs)
	if code != exitOK || !strings.Contains(out.String(), "files is valid") {
		t.Errorf("exit %d, %q", code, out.String())
	}
	for _, want := range []string{"warning: this machine cannot run it: action f: container create: there is no program",
		"build version 1.5-alpha3 from https://github.com/filebench/filebench/releases"} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("%q does not say %q", errs.String(), want)
		}
	}
}
