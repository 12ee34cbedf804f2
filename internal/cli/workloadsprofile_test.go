package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// iologOf makes an iolog of n reads by a function.
func iologOf(n int, offset func(int) int) string {
	var b strings.Builder
	b.WriteString("fio version 3 iolog\n")
	for i := range n {
		fmt.Fprintf(&b, "%d f read %d 4096\n", 1000*i, offset(i))
	}
	return b.String()
}

func random(i int) int { return (i*7919 + i*i*31) % 4096 * 4096 }

// TestWorkloadsProfile: a trace that fits becomes an entry with its Benchmark, another one and bad input nothing.
func TestWorkloadsProfile(t *testing.T) {
	for _, tt := range []struct {
		name, trace string
		args        []string
		code        int
		want        string
	}{
		{"fits", iologOf(1000, random), nil, exitOK, "next: cnsbench workloads test workloads/mine"},
		{"does not fit", iologOf(1000, func(i int) int { return i%250*4096 + i/250*(1<<24) }), nil, exitFailed,
			"does not fit: KS of offsets 0."},
		{"empty", "", nil, exitUsage, "the trace is empty"},
		{"binary", "\x00\x01", nil, exitUsage, "line 1: binary data"},
		{"unsorted", "fio version 3 iolog\n9 f read 0 512\n8 f read 0 512\n", nil, exitUsage, "line 3: time 8 us is before"},
		{"short", iologOf(9, random), nil, exitUsage, "9 reads and writes: want at least 100"},
		{"name", iologOf(9, random), []string{"--name", "A"}, exitUsage, `invalid name "A"`},
		{"built in", iologOf(9, random), []string{"--name", "fio"}, exitUsage, "built-in workload"},
		{"jobs", iologOf(9, random), []string{"--jobs", "65"}, exitUsage, "invalid --jobs 65"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			var out, errs strings.Builder
			if !slices.Contains(tt.args, "--name") {
				tt.args = append(tt.args, "--name", "mine")
			}
			code := Main(append([]string{"workloads", "profile", "-"}, tt.args...),
				strings.NewReader(tt.trace), &out, &errs)
			if code != tt.code || !strings.Contains(out.String()+errs.String(), tt.want) {
				t.Errorf("exit %d, want %d and %q in\n%s%s", code, tt.code, tt.want, out.String(), errs.String())
			}
			files, err := os.ReadDir(".")
			if err != nil {
				t.Fatal(err)
			}
			if written := len(files) > 0; written != (tt.code == exitOK) {
				t.Errorf("files: %v", files)
			}
		})
	}
}

// TestProfileIsMade: the entry is one, its model makes logs, and the JSON names it.
func TestProfileIsMade(t *testing.T) {
	t.Chdir(t.TempDir())
	var out, errs strings.Builder
	args := []string{"workloads", "profile", "-", "--name", "mine", "--output", "json"}
	if code := Main(args, strings.NewReader(iologOf(500, random)), &out, &errs); code != exitOK {
		t.Fatal(errs.String())
	}
	var r profileReport
	err := json.Unmarshal([]byte(out.String()), &r)
	if err != nil || !r.Fits || r.Entry != filepath.Join("workloads", "mine") {
		t.Errorf("%+v %v", r, err)
	}
	if code := Main([]string{"validate", "mine.yaml"}, nil, &out, &errs); code != exitOK {
		t.Error(errs.String())
	}
	args = []string{"iotrace", "--model=workloads/mine/model.json", "--out=.", "--file=/data/file", "--size=4194304",
		"--duration=1s", "--speed=200", "--jobs=2", "--seed=1"}
	if code := Main(args, nil, &out, &errs); code != exitOK {
		t.Fatal(errs.String())
	}
	for _, lane := range []string{"0", "1"} {
		text, err := os.ReadFile(lane)
		if n := strings.Count(string(text), "/data/file read "); err != nil || n < 900 || n > 1100 {
			t.Errorf("lane %s has %d reads, want about 1000: %v", lane, n, err)
		}
	}
	const log = "fio version 2 iolog\na write 512 512\nb read 0 8192\n"
	if err := os.WriteFile("recorded.log", []byte(log), 0o644); err != nil {
		t.Fatal(err)
	}
	recorded := []string{"iotrace", "--trace=recorded.log", "--out=.", "--file=/data/file", "--direct"}
	if code := Main(recorded, nil, &out, &errs); code != exitOK ||
		!strings.Contains(out.String(), "2 operations, 2 files") {
		t.Fatal(out.String(), errs.String())
	}
	for file, want := range map[string]string{"size": "1048576\n", "0": "fio version 3 iolog\n0 /data/file add\n" +
		"1 /data/file open\n1 /data/file write 512 512\n1 /data/file read 4096 8192\n"} {
		if text, err := os.ReadFile(file); string(text) != want || err != nil {
			t.Errorf("%s is %q, %v, want %q", file, text, err, want)
		}
	}
	if err := os.WriteFile("bad.json", []byte(`{"version": 1}`), 0o644); err != nil {
		t.Fatal(err)
	}
	args[1] = "--model=bad.json"
	if code := Main(args, nil, &out, &errs); code != exitUsage || !strings.Contains(errs.String(), "no states") {
		t.Error(errs.String())
	}
	args = []string{"workloads", "profile", "-", "--name", "mine"}
	if code := Main(args, strings.NewReader(iologOf(500, random)), &out, &errs); code != exitUsage ||
		!strings.Contains(errs.String(), "exists and is not overwritten") {
		t.Error(errs.String())
	}
}
