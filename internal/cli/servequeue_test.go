package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/cluster"
	"github.com/cnsbench/cnsbench/internal/queue"
	"github.com/cnsbench/cnsbench/internal/web"
)

// TestWebLibrary checks that all files which the page begins with are valid, and that all variables are described.
func TestWebLibrary(t *testing.T) {
	var f serveFlags
	l, err := f.webLibrary()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, s := range l.Starts {
		kinds[s.Kind]++
		engine := engineLocal
		if s.Kind == "suite" || strings.HasPrefix(s.Name, "kubernetes/") { // of classes that a cluster has
			engine = engineKubernetes
		}
		c := f.validateText(t.Context(), web.Draft{Engine: engine, Text: s.Text})
		if !c.Valid || c.Name == "" || c.Study != isStudyText(s.Text) {
			t.Errorf("%s %s: %+v", s.Kind, s.Name, c)
		}
		if s.Description == "" {
			t.Errorf("%s %s has no description", s.Kind, s.Name)
		}
	}
	if kinds["workload"] < 15 || kinds["example"] < 20 || kinds["suite"] < 5 {
		t.Errorf("files: %v", kinds)
	}
	for _, w := range l.Workloads {
		if w.Description == "" {
			t.Errorf("workload %s has no description", w.Name)
		}
		for _, v := range w.Variables {
			if v.Meaning == "" || v.Kind == "enum" && len(v.Values) == 0 {
				t.Errorf("variable %s of workload %s: %+v", v.Name, w.Name, v)
			}
		}
	}
}

func isStudyText(text string) bool { return strings.Contains(text, "\nkind: Study\n") }

// TestValidateText checks that a page without --allow-run reads no file of the server, and one with it those in DIR.
func TestValidateText(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "trace.csv"), []byte("secret,line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(volumes, "spec: {", "spec: {rates: [{name: r, traceRateSpec: {source: trace.csv}}], ", 1)
	for _, tt := range []struct {
		allowed bool
		want    string
	}{{false, "cannot be read here"}, {true, "secret"}} {
		f := serveFlags{dir: dir, allowRun: tt.allowed}
		c := f.validateText(t.Context(), web.Draft{Engine: engineLocal, Text: text})
		if c.Valid || len(c.Problems) != 1 || !strings.Contains(c.Problems[0].Message, tt.want) {
			t.Errorf("allowed %v: %+v", tt.allowed, c)
		}
	}
	f := serveFlags{dir: dir, allowRun: true, cluster: cluster.Options{Kubeconfig: filepath.Join(dir, "none")}}
	c := f.validateText(t.Context(), web.Draft{Engine: engineKubernetes, Text: volumes, Namespace: "bench"})
	if !c.Valid || len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0].Message, "not checked") {
		t.Errorf("without the cluster: %+v", c)
	}
	for text, want := range map[string]string{"<workload/>": "is XML", "": "is empty", "a: [": ""} {
		c := f.validateText(t.Context(), web.Draft{Engine: engineLocal, Text: text})
		if c.Valid || len(c.Problems) == 0 || !strings.Contains(c.Problems[0].Message, want) {
			t.Errorf("%q: %+v", text, c)
		}
	}
}

func TestSubmissionCommand(t *testing.T) {
	f := serveFlags{storageDir: "/disk", image: "i", createRBAC: true,
		cluster: cluster.Options{Kubeconfig: "k", Context: "c"}}
	c, err := f.submissionCommand(queue.Submission{Engine: engineKubernetes}, "f", "o")
	if err != nil || !slices.Contains(c.Args, "--image=i") || !slices.Contains(c.Args, "--create-rbac") {
		t.Errorf("in a cluster: %q, %v", c.Args, err)
	}
	for _, tt := range []struct {
		study bool
		want  []string
	}{{false, []string{"run"}}, {true, []string{"study", "run"}}} {
		c, err := f.submissionCommand(queue.Submission{Study: tt.study, Engine: "local"}, "d/a.yaml", "d/a")
		if err != nil {
			t.Fatal(err)
		}
		want := append(tt.want, "--engine=local", "--out=d/a", "--storage-dir=/disk", "--kubeconfig=k", "--context=c", "--",
			"d/a.yaml")
		if got := c.Args[1:]; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestSubmissionNamespace checks that a submission runs in its own namespace, else in that of serve.
func TestSubmissionNamespace(t *testing.T) {
	for _, tt := range []struct {
		flag, own string
		want      []string
	}{
		{"", "", nil},
		{"flag", "", []string{"--namespace=flag"}},
		{"flag", "own", []string{"--namespace=own"}},
		{"", "own", []string{"--namespace=own"}},
	} {
		f := serveFlags{cluster: cluster.Options{Namespace: tt.flag}}
		c, err := f.submissionCommand(queue.Submission{Engine: engineKubernetes, Namespace: tt.own}, "f", "o")
		if err != nil {
			t.Fatal(err)
		}
		got := slices.DeleteFunc(c.Args, func(a string) bool { return !strings.Contains(a, "namespace") })
		if !slices.Equal(got, tt.want) {
			t.Errorf("serve %q, submission %q: %q, want %q", tt.flag, tt.own, got, tt.want)
		}
	}
	var f serveFlags
	for _, name := range []string{"Two Words", "a/b", "--all", strings.Repeat("n", 64)} {
		c := f.validateText(t.Context(), web.Draft{Engine: engineKubernetes, Text: volumes, Namespace: name})
		if c.Valid || len(c.Problems) != 1 || !strings.Contains(c.Problems[0].Message, "invalid namespace") {
			t.Errorf("%q: %+v", name, c)
		}
	}
}

func TestServeRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"--allow-run":                           "serve DIR --allow-run",
		"DIR --storage-dir /x":                  "for the runs of --allow-run",
		"DIR --image x":                         "for the runs of --allow-run",
		"DIR --namespace x":                     "for the runs of --allow-run",
		"DIR --allow-run --listen 0.0.0.0:0":    "can be reached by others",
		"DIR --allow-run --auth kubernetes":     "want token or none",
		"DIR/none --allow-run":                  "no such file or directory",
		"DIR --allow-run --listen 127.0.0.1:-1": "--listen",
		"DIR --allow-run --auth none":           "open the address with the token",
		"DIR --insecure":                        "--insecure is for --auth none",
		"DIR --auth none --insecure":            "together with --allow-run",
		"DIR --allow-host a":                    "with a token all names are accepted",
		"DIR --auth none --token-file x":        "--token-file is for --auth token",
		"--token-file x":                        "--token-file is for --auth token",
	} {
		code, out, errs := call(append([]string{"serve"}, strings.Fields(strings.Replace(args, "DIR", t.TempDir(), 1))...)...)
		if code == exitOK || out != "" || !strings.Contains(errs, want) {
			t.Errorf("serve %s: exit %d, %q, %q, want %q", args, code, out, errs, want)
		}
	}
}

// All users of a machine reach its loopback addresses: a queue without a token is refused, to root always.
func TestServeOpenQueue(t *testing.T) {
	for _, tt := range []struct {
		name string
		f    serveFlags
		uid  int
		want string // part of the error; empty: none
	}{
		{"reads only", serveFlags{auth: authNone}, 0, ""},
		{"token", serveFlags{auth: authToken, allowRun: true}, 0, ""},
		{"open", serveFlags{auth: authNone, allowRun: true}, 1000, "run commands as you"},
		{"open and insecure", serveFlags{auth: authNone, allowRun: true, insecure: true}, 1000, ""},
		{"open to root", serveFlags{auth: authNone, allowRun: true}, 0, "run commands as root"},
		{"open to root and insecure", serveFlags{auth: authNone, allowRun: true, insecure: true}, 0, "run commands as root"},
		{"insecure token", serveFlags{auth: authToken, allowRun: true, insecure: true}, 1000, "--insecure is for"},
	} {
		err := tt.f.checkOpen(tt.uid)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}
