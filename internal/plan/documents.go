package plan

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/hints"
	"github.com/cnsbench/cnsbench/internal/plan/parse"
	"github.com/cnsbench/cnsbench/internal/plan/validate"
	"github.com/cnsbench/cnsbench/internal/workload"
)

// documents holds the documents of the files by kind.
type documents struct {
	benchmark *parse.Document // nil: there is none
	classes   []classFile
	entries   workload.Library             // entries of the library
	configs   map[string]*corev1.ConfigMap // other ConfigMaps, by name
	secrets   []secretFile
	given     []any  // for Plan.Given
	part      string // path of the Benchmark in a Study
}

// readDocuments parses the files and decodes all documents but the Benchmark.
func readDocuments(report *parse.Report, in *Input) *documents {
	all := &documents{configs: map[string]*corev1.ConfigMap{}, part: parse.StudyBenchmark}
	if in.Precondition {
		all.part = parse.StudyPrecondition
	}
	all.read(report, in)
	if all.benchmark == nil && len(report.Problems) == 0 {
		p := Problem{Line: 1, Column: 1, Message: "there is no Benchmark here",
			Hint: "kind: Benchmark, apiVersion: " + validate.APIVersion}
		if len(in.Files) > 0 {
			p.File = in.Files[0].Name
		}
		report.Add(p)
	}
	return all
}

// Entries returns the library entries among the documents of files, and the other ConfigMaps.
func Entries(files []File) (*workload.Library, map[string]*corev1.ConfigMap, []Problem) {
	all := &documents{configs: map[string]*corev1.ConfigMap{}, part: parse.StudyBenchmark}
	report := &parse.Report{}
	all.read(report, &Input{Files: files})
	return &all.entries, all.configs, parse.Sorted(report.Problems)
}

// StorageClassNames returns the names of the StorageClasses among the documents of files, in their order.
func StorageClassNames(files []File) (names []string) {
	all := &documents{configs: map[string]*corev1.ConfigMap{}, part: parse.StudyBenchmark}
	all.read(&parse.Report{}, &Input{Files: files})
	for _, c := range all.classes {
		if c.kind == storageKind && !slices.Contains(names, c.name) {
			names = append(names, c.name)
		}
	}
	return names
}

// read adds the documents of all files.
func (all *documents) read(report *parse.Report, in *Input) {
	for _, f := range in.Files {
		docs, problems := parse.Documents(f)
		report.Add(problems...)
		for _, d := range docs {
			all.add(report, d)
		}
		if len(docs) == 0 && len(problems) == 0 {
			report.Add(Problem{File: f.Name, Line: 1, Column: 1, Message: "the file is empty",
				Hint: "examples/quickstart.yaml is a Benchmark to begin with"})
		}
	}
}

// kinds lists the accepted kinds of document with their apiVersions.
var kinds = map[string][]string{
	"Benchmark":             {validate.APIVersion},
	"ConfigMap":             {"v1"},
	secretKind:              {"v1"},
	"StorageClass":          {"storage.k8s.io/v1"},
	"VolumeAttributesClass": {"storage.k8s.io/v1", "storage.k8s.io/v1beta1"},
	"VolumeSnapshotClass":   {"snapshot.storage.k8s.io/v1"},
	"VolumeGroupSnapshotClass": {"groupsnapshot.storage.k8s.io/v1", "groupsnapshot.storage.k8s.io/v1beta2",
		"groupsnapshot.storage.k8s.io/v1beta1"},
}

// rendered reports whether a document is an object of a run. Render prints such
// objects after the Benchmark; Load accepts that output as input and ignores them.
func rendered(d *parse.Document) bool {
	metadata, _ := d.Value["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	return labels[workload.LabelRun] != nil
}

// add adds a document. It ignores the objects of a run, and takes the Benchmark of a Study
// for the Study.
func (all *documents) add(report *parse.Report, d *parse.Document) {
	fail := func(path, hint, format string, args ...any) {
		report.Add(d.Problem(path, hint, format, args...))
	}
	if rendered(d) {
		return
	}
	if d.Value["kind"] == studyKind {
		d = parse.BenchmarkOf(d, all.part)
	}
	kind, _ := d.Value["kind"].(string)
	version, _ := d.Value["apiVersion"].(string)
	if spec, ok := d.Value["spec"].(map[string]any); kind == "" && ok && spec["actions"] != nil {
		fail("", "kind: Benchmark", "kind is missing")
		kind = "Benchmark"
		d.Value["kind"] = kind
	}
	versions, known := kinds[kind]
	switch {
	case kind == "":
		fail("", "kind: Benchmark", "kind is missing")
		return
	case !known:
		fail("kind", hints.Suggest(kind, sortedKeys(kinds)), "%q is not a kind of document that belongs here", kind)
		return
	case version == "":
		fail("", "apiVersion: "+versions[0], "apiVersion is missing")
		d.Value["apiVersion"] = versions[0]
	case kind == "Benchmark" && strings.HasPrefix(version, "cnsbench.example.com/"):
		fail("apiVersion", "write apiVersion: "+validate.APIVersion,
			"%s is the apiVersion of the paper's prototype", version)
	case !slices.Contains(versions, version):
		fail("apiVersion", "write apiVersion: "+versions[0], "%q is not the apiVersion of a %s", version, kind)
	}
	switch {
	case kind != "Benchmark":
		report.Add(all.manifest(d, kind)...)
	case all.benchmark != nil:
		first := all.benchmark.Problem("", "", "")
		fail("kind", fmt.Sprintf("the first is at %s:%d; a run has one", first.File, first.Line),
			"this is a second Benchmark")
	default:
		all.benchmark = d
		d.Value["apiVersion"] = validate.APIVersion
	}
}

// manifest adds a document other than the Benchmark: a class, a Secret or a ConfigMap.
func (all *documents) manifest(d *parse.Document, kind string) []Problem {
	if kind == secretKind {
		secret, wrong := decodeSecret(d)
		all.secrets = append(all.secrets, secret)
		return wrong
	}
	if kind != "ConfigMap" {
		class, wrong := decodeClass(d, kind)
		if class != nil {
			all.classes = append(all.classes, *class)
		}
		if class != nil && class.attributes != nil {
			all.given = append(all.given, d.Value)
		}
		return wrong
	}
	cm := &corev1.ConfigMap{}
	if wrong := validate.Strict(d, cm); len(wrong) > 0 {
		return wrong
	}
	all.given = append(all.given, d.Value)
	if !workload.IsEntry(cm) {
		all.configs[cm.Name] = cm
		return nil
	}
	e, err := workload.FromConfigMap(cm, d.File)
	if err != nil {
		return []Problem{d.Problem("metadata", "", "%v", err)}
	}
	all.entries.Add(e)
	return nil
}
