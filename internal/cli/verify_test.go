package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/test/analysistest"
)

// TestVerify changes a bundle in each way, and checks that the file is named with what happened to it.
func TestVerify(t *testing.T) {
	b, _ := analysistest.Demo(t)
	for _, tt := range []struct {
		name   string
		change func(dir string) error
		code   int
		want   []string
	}{
		{"unchanged", func(string) error { return nil }, exitOK, []string{"every file matches", "manifest sha256:"}},
		{"a report", func(dir string) error { return os.WriteFile(filepath.Join(dir, "report.html"), []byte("x"), 0o600) },
			exitOK, []string{"every file matches"}},
		{"one byte", func(dir string) error {
			path := filepath.Join(dir, "series", "scalars.jsonl")
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text[len(text)/2] ^= 1
			return os.WriteFile(path, text, 0o600)
		}, exitFailed, []string{"1 file not as in the manifest", "changed: series/scalars.jsonl"}},
		{"environment", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "environment.json"), []byte("{}"), 0o600)
		}, exitFailed, []string{"changed: environment.json"}},
		{"removed and added", func(dir string) error {
			if err := os.WriteFile(filepath.Join(dir, "more\x1b[2J.txt"), nil, 0o600); err != nil {
				return err
			}
			return os.Remove(filepath.Join(dir, "canary", "canary.frames"))
		}, exitFailed, []string{"2 files", "missing: canary/canary.frames", "added: more"}},
		{"ledger", func(dir string) error {
			line := `{"add":{"kind":"volume","name":"x"}}` + "\n"
			f, err := os.OpenFile(filepath.Join(dir, "ledger"), os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteString(line)
			return err
		}, exitFailed, []string{"changed: ledger"}},
		{"no manifest", func(dir string) error { return os.Remove(filepath.Join(dir, "manifest.json")) }, exitFailed,
			[]string{"never closed"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "b")
			if err := os.CopyFS(dir, os.DirFS(b.Dir)); err != nil {
				t.Fatal(err)
			}
			if err := tt.change(dir); err != nil {
				t.Fatal(err)
			}
			code, out, errs := call("verify", dir)
			if code != tt.code || strings.Contains(out, "\x1b") {
				t.Errorf("exit %d, want %d\n%s%s", code, tt.code, out, errs)
			}
			for _, want := range tt.want {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
			code, out, _ = call("verify", "--output", "json", dir)
			var list []verified
			if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 1 || list[0].OK != (tt.code == exitOK) ||
				code != tt.code {
				t.Errorf("exit %d, %v\n%s", code, err, out)
			}
		})
	}
	if code, _, errs := call("verify", t.TempDir()); code != exitUsage || !strings.Contains(errs, "neither a bundle nor") {
		t.Errorf("exit %d, says %s", code, errs)
	}
	none := filepath.Join(t.TempDir(), "none")
	if code, _, errs := call("verify", none); code != exitUsage || !strings.Contains(errs, "no bundle or study at "+none) {
		t.Errorf("exit %d, says %s", code, errs)
	}
}

// TestBundleOrStudy checks that a study in place of a bundle, and the other way round, is an error that says so.
func TestBundleOrStudy(t *testing.T) {
	b, _ := analysistest.Demo(t)
	study := t.TempDir()
	if err := os.WriteFile(filepath.Join(study, "study.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := call("export", "--format", "csv", study); code != exitUsage ||
		!strings.Contains(errs, "is a study, not a bundle") {
		t.Errorf("exit %d, says %s", code, errs)
	}
	if code, _, errs := call("show", "--status", b.Dir); code != exitUsage ||
		!strings.Contains(errs, "is a bundle, not a study") {
		t.Errorf("exit %d, says %s", code, errs)
	}
}

// TestReproduceRefuses checks that what cannot be reproduced is an error before anything is created.
func TestReproduceRefuses(t *testing.T) {
	b, _ := analysistest.Demo(t)
	changed := filepath.Join(t.TempDir(), "changed")
	if err := os.CopyFS(changed, os.DirFS(b.Dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(changed, "environment.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"number of runs", []string{b.Dir, "--runs", "0"}, exitUsage, "invalid --runs 0: want 1 to 1000"},
		{"no bundle", []string{t.TempDir()}, exitUsage, "not a bundle"},
		{"killed", []string{analysistest.Killed(t).Dir}, exitUsage, "did not complete"},
		{"objects", []string{analysistest.Objects(t).Dir}, exitUsage, "credentials"},
		{"changed", []string{changed}, exitFailed, "environment.json has changed"},
		{"with and runs", []string{b.Dir, "--with", b.Dir, "--runs", "2"}, exitUsage, "--with runs nothing"},
		{"with no bundle", []string{b.Dir, "--with", out}, exitUsage, "no bundle at"},
		{"one run twice", []string{b.Dir, b.Dir}, exitUsage, "the same run"},
		{"one later run twice", []string{b.Dir, "--with", b.Dir, "--with", b.Dir}, exitUsage, "the same run"},
		{"no inputs", []string{b.Dir, "--inputs", out}, exitUsage, "is not a directory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := append([]string{"reproduce"}, tt.args...)
			if !slices.Contains(args, "--with") {
				args = append(args, "--out", out)
			}
			code, stdout, errs := call(args...)
			if code != tt.code || !strings.Contains(errs, tt.want) {
				t.Errorf("exit %d, want %d and %q\n%s%s", code, tt.code, tt.want, stdout, errs)
			}
			if _, err := os.Stat(out); err == nil {
				t.Errorf("%s was created", out)
			}
		})
	}
}

// TestReproduceWith compares a bundle with a copy.
func TestReproduceWith(t *testing.T) {
	b, _ := analysistest.Demo(t)
	later := filepath.Join(t.TempDir(), "later")
	copyRun(t, b.Dir, later, nil)
	code, out, errs := call("reproduce", b.Dir, "--with", later)
	for _, want := range []string{"No recorded fact differs", "cannot show that results differ", "Within the two runs",
		"p50(fio.read)", "now / then"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if code != exitOK || errs != "" {
		t.Errorf("exit %d, says %s", code, errs)
	}
}

// TestVerifySeveral checks that a wrong argument does not keep the others from being checked.
func TestVerifySeveral(t *testing.T) {
	b, _ := analysistest.Demo(t)
	none := filepath.Join(t.TempDir(), "none")
	code, out, errs := call("verify", none, b.Dir)
	if code != exitUsage || !strings.Contains(out, "every file matches") || !strings.Contains(errs, "no bundle or study at "+none) {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}
