package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// printing returns a workload whose parser is the given script.
func printing(script string) string {
	indented := "        " + strings.ReplaceAll(strings.TrimSpace(script), "\n", "\n        ")
	return `apiVersion: v1
kind: ConfigMap
metadata: {name: p, labels: {type: workload}}
data:
  pod.yaml: |
    apiVersion: v1
    kind: Pod
    metadata: {name: p, annotations: {outputFile: /output/*.txt, parser: p-parser}}
    spec:
      containers: [{name: c, command: [/bin/sh, -c, "echo 1 > /output/a.txt; echo 2 > /output/b.txt"]}]
  parser.yaml: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: p-parser, annotations: {container: some/image}}
    data:
      parse.sh: |
` + indented + `
---
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: parser}
spec:
  actions: [{name: p, createObjSpec: {workload: p}}]
`
}

// scalars returns the figures of a bundle as METRIC=VALUE UNIT.
func (b *box) scalars() string {
	b.Helper()
	text, err := os.ReadFile(filepath.Join(b.bundle(), "series", "scalars.jsonl"))
	if err != nil && !os.IsNotExist(err) {
		b.Fatal(err)
	}
	var list []string
	for line := range strings.Lines(string(text)) {
		var s struct {
			Instance, Metric, Unit string
			Value                  json.Number
		}
		decode(b, line, &s)
		list = append(list, strings.TrimSpace(s.Instance+" "+s.Metric+"="+s.Value.String()+" "+s.Unit))
	}
	return strings.Join(list, "; ")
}

// TestParserScript checks that the figures that a script prints are in the bundle, and that a
// failed script gives a warning with the cause. The outputs are kept in both cases.
func TestParserScript(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, script, scalars, printed string
		flag, evidence                 string
	}{
		{name: "prints", script: "#!/bin/sh\nread -r n < \"$1\"\necho \"$(basename $1 .txt),$n,1/s\"\n",
			scalars: "p-0 a=1 1/s; p-0 b=2 1/s", printed: "a,1,1/s\n"},
		{name: "has no network", script: "#!/bin/sh\necho \"$(basename $1 .txt),$(grep -c : /proc/net/dev),1/s\"\n",
			scalars: "p-0 a=1 1/s; p-0 b=1 1/s", printed: "a,1,1/s\n"}, // lo
		{name: "fails", script: "#!/bin/sh\necho half\necho cannot read that >&2; exit 9\n", printed: "half\n",
			flag: "parserFailed", evidence: "exit code 9: cannot read that"},
		{name: "says nothing of use", script: "#!/bin/sh\necho hello\n", printed: "hello\n", flag: "outputUnread",
			evidence: `first "hello"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			b.bench(printing(tt.script)).wants(t, 0)
			if got := b.scalars(); got != tt.scalars {
				t.Errorf("figures %q, want %q", got, tt.scalars)
			}
			for file, want := range map[string]string{"a.txt": "1\n", "b.txt": "2\n", "a.txt.parsed": tt.printed} {
				if got, err := os.ReadFile(filepath.Join(b.bundle(), "raw/p-0/c/output", file)); string(got) != want {
					t.Errorf("%s: %q, %v, want %q", file, got, err, want)
				}
			}
			s, _ := b.readable(b.bundle())
			found := tt.flag == ""
			for _, v := range s.Validity {
				if v.Name == tt.flag && strings.Contains(v.Evidence, tt.evidence) {
					found = true
				}
			}
			if !found {
				t.Errorf("no %s with %q among %+v", tt.flag, tt.evidence, s.Validity)
			}
			b.clean()
		})
	}
}

// TestParserOfTheLibrary checks a built-in entry with its own parser script, run by an unprivileged
// user, with an SLO on the parsed figures.
func TestParserOfTheLibrary(t *testing.T) {
	b := newBox(t)
	if os.Getuid() == 0 {
		b.asNobody()
	}
	b.checkout()
	r := b.run(b.runArgs(b.in("examples", "dd.yaml"), "--set", "dd.mebibytes=2", "--set", "dd.parts=3", "--set",
		"dd.direct=0")...)
	r.wants(t, 0)
	for _, want := range []string{"dd-0 read.bytes=6291456 B", "dd-0 write.bytes=6291456 B", "dd-0 write.bandwidth="} {
		if !strings.Contains(b.scalars(), want) {
			t.Errorf("no %q among %s", want, b.scalars())
		}
	}
	s, _ := b.readable(b.bundle())
	if len(s.Verdicts) != 1 || s.Verdicts[0].Status != "pass" {
		t.Errorf("verdicts %+v", s.Verdicts)
	}
	b.clean()
}

// TestInterruptedParserScript checks that an interrupt ends a parser script that hangs, and that the run is not
// complete.
func TestInterruptedParserScript(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	l := b.startRun(printing("#!/bin/sh\nexec sleep 4321\n"))
	l.child("sleep", "4321")
	l.signal(syscall.SIGINT)
	l.wait().wants(t, 130)
	if s, _ := b.readable(b.bundle()); s.State != "interrupted" || !s.Complete {
		t.Errorf("state %q, complete %v", s.State, s.Complete)
	}
	for file, want := range map[string]string{"a.txt": "1\n", "b.txt": "2\n"} {
		if got, err := os.ReadFile(filepath.Join(b.bundle(), "raw/p-0/c/output", file)); string(got) != want {
			t.Errorf("%s: %q, %v, want %q", file, got, err, want)
		}
	}
	b.clean()
}
