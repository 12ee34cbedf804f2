package cli

import (
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/examples"
	"github.com/cnsbench/cnsbench/internal/csi/csidriver"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/web"
	"github.com/cnsbench/cnsbench/internal/workload"
)

// webLibrary is what the web interface builds a Benchmark from.
func (f *serveFlags) webLibrary() (*web.Library, error) {
	built, err := plan.BuiltIn()
	if err != nil {
		return nil, err
	}
	l := &web.Library{Engines: []string{engineLocal, engineKubernetes}, Engine: defaultEngine(),
		Namespace: f.cluster.Namespace, StorageClasses: csidriver.Backends()}
	for _, name := range built.Names() {
		e, _ := built.Get(name)
		l.Workloads = append(l.Workloads, web.Workload{Name: name, Description: strings.TrimSpace(e.Description),
			Variables: webVariables(e)})
	}
	for _, list := range []func(*workload.Library) ([]web.Start, error){workloadStarts, exampleStarts, suiteStarts} {
		starts, err := list(built)
		if err != nil {
			return nil, err
		}
		l.Starts = append(l.Starts, starts...)
	}
	return l, nil
}

// webVariables are the variables of an entry.
func webVariables(e *workload.Entry) []web.Variable {
	all := []web.Variable{}
	for _, name := range e.Variables() {
		t := e.Types[name]
		v := web.Variable{Name: name, Meaning: e.Meanings[name], Type: t.String(), Kind: t.Kind(), List: t.List(),
			Values: t.Values()}
		if value, ok := e.Defaults[name]; ok {
			v.Default = &value
		}
		all = append(all, v)
	}
	return all
}

// workloadStarts are Benchmarks as init writes them, of each workload that init offers.
func workloadStarts(built *workload.Library) (starts []web.Start, err error) {
	classes := builtInClasses()
	for _, name := range withStorage(built) {
		e, _ := built.Get(name)
		f := initFlags{file: name + ".yaml", count: 1, runtime: 30 * time.Second, every: 5 * time.Second}
		f.run.Engine = defaultEngine()
		text, err := f.benchmark(e, classes.usual, classes.snapshots[classes.usual])
		if err != nil {
			return nil, err
		}
		starts = append(starts, web.Start{Kind: "workload", Name: name, Description: summaryOf(e), Text: string(text)})
	}
	return starts, nil
}

// exampleStarts are the files of examples.
func exampleStarts(*workload.Library) (starts []web.Start, err error) {
	err = fs.WalkDir(examples.Files, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := examples.Files.ReadFile(file)
		starts = append(starts, web.Start{Kind: "example", Name: strings.TrimSuffix(file, path.Ext(file)),
			Description: firstComment(string(text)), Text: string(text)})
		return err
	})
	return starts, err
}

func suiteStarts(*workload.Library) (starts []web.Start, err error) {
	for _, name := range suites() {
		text, err := readSuite(name)
		if err != nil {
			return nil, err
		}
		starts = append(starts, web.Start{Kind: "suite", Name: name, Description: describeSuite(name), Text: string(text)})
	}
	return starts, nil
}

// firstComment is the first paragraph of the comment at the beginning of a file.
func firstComment(text string) string {
	var words []string
	for line := range strings.Lines(text) {
		comment, ok := strings.CutPrefix(strings.TrimSpace(line), "#")
		if !ok || strings.TrimSpace(comment) == "" {
			break
		}
		words = append(words, strings.Fields(comment)...)
	}
	return strings.Join(words, " ")
}
