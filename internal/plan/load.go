package plan

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	sigsjson "sigs.k8s.io/json"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/version"
	"github.com/cnsbench/cnsbench/internal/workload"
	"github.com/cnsbench/cnsbench/internal/workload/parser"
	"github.com/cnsbench/cnsbench/library"
)

// Input holds everything that a plan depends on.
type Input struct {
	// Files hold YAML documents: one Benchmark, and optionally StorageClasses,
	// VolumeSnapshotClasses, VolumeAttributesClasses and ConfigMaps. A ConfigMap
	// with the label type: workload is a library entry.
	Files []File
	// Set holds changes to the Benchmark in the form KEY=VALUE. See applySets for the keys.
	Set []string
	// Capabilities are those of the engine that executes the plan.
	Capabilities engine.Capabilities
	// Library holds the workloads other than those in Files; nil: the built-in library.
	Library *workload.Library
	// Classes are the classes of the cluster (engine kubernetes); nil: not known.
	Classes *Classes
	// ConfigMaps lists the library entries (label type: workload) in a namespace, for
	// spec.library; nil: no cluster is available.
	ConfigMaps func(ctx context.Context, namespace string) ([]corev1.ConfigMap, error)
	// ToolsImage is the image of the library's programs, {{TOOLS_IMAGE}} in templates;
	// empty: the published image of this version.
	ToolsImage string
	// Image is the image of cnsbench, {{CNSBENCH_IMAGE}} in templates; empty: the
	// published image of this version.
	Image string
	// Folder opens a folder that spec.library names; nil: folders cannot be read.
	Folder func(path string) (fs.FS, error)
	// ObjectSpec resolves the objectSpec of a workload; nil: objectSpec is rejected.
	ObjectSpec workload.SpecResolver
	// Parsers are parsers of workload outputs in addition to the built-in ones.
	Parsers map[string]parser.Func
	// Open opens a file that the Benchmark names, such as a trace; nil: files cannot be
	// read.
	Open func(path string) (io.ReadCloser, error)
	// AnyDriver maps every class to the only driver, whatever driver the class names
	// (--csi-endpoint).
	AnyDriver bool
	// Substitute maps a driver to the driver that replaces it. SubstituteReason is the
	// reason for the replacement, for messages.
	Substitute       map[string]string
	SubstituteReason string
	// Seed is used if the Benchmark sets no seed. The caller chooses it.
	Seed uint64
	// Precondition loads the Benchmark of a Study's precondition, not the one that it
	// repeats.
	Precondition bool
}

// BuiltIn returns the library that is embedded in the program.
func BuiltIn() (*workload.Library, error) {
	sub, err := fs.Sub(library.Workloads, "workloads")
	if err != nil {
		return nil, err
	}
	return workload.FromFolders(sub, "built in")
}

// Load resolves the files to a plan. If there are problems, the plan is nil and
// Load returns all problems that it can find. Otherwise Plan.Warnings lists
// questionable settings. Load creates no objects. It is safe for concurrent use.
func Load(ctx context.Context, in Input) (*Plan, []Problem) {
	l := &loader{in: in, ctx: ctx, used: map[string]bool{}, static: map[string]string{}}
	l.in.Image = cmp.Or(in.Image, "cnsbench/cnsbench:"+version.Version)
	l.in.ToolsImage = cmp.Or(in.ToolsImage, "cnsbench/workload-tools:"+version.Version)
	l.plan.Cluster = in.Capabilities.Cluster
	l.load()
	if len(l.problems) > 0 {
		return nil, sorted(l.problems)
	}
	l.plan.Warnings = sorted(l.warnings)
	return &l.plan, nil
}

// loader is the state of one call of Load.
type loader struct {
	in       Input
	ctx      context.Context
	problems []Problem
	warnings []Problem

	doc     *document       // the Benchmark
	faulty  map[string]bool // paths with a problem from the schema check
	spec    *v1alpha1.BenchmarkSpec
	library *workload.Library
	entries workload.Library             // library entries from the files
	configs map[string]*corev1.ConfigMap // other ConfigMaps from the files, by name
	classes classes
	used    map[string]bool // names of rates that actions use
	unread  []string        // library namespaces that were not read

	nulls  map[string][]nullVar // variables without a value, by path of createObjSpec
	static map[string]string    // drivers of static volumes, by claim name of instance 0

	recordings []recording

	infos map[string]*info
	rates map[string]*v1alpha1.Rate
	plan  Plan
}

// fail reports a problem at a path of the Benchmark, unless the schema check has
// already reported one at the same path.
func (l *loader) fail(path, hint, format string, args ...any) {
	if l.faulty[path] {
		return
	}
	l.problems = append(l.problems, l.problem(path, hint, format, args...))
}

// warn adds a warning at a path of the Benchmark.
func (l *loader) warn(path, hint, format string, args ...any) {
	l.warnings = append(l.warnings, l.problem(path, hint, format, args...))
}

func (l *loader) problem(path, hint, format string, args ...any) Problem {
	at := l.doc.find(path)
	return Problem{File: at.file, Line: at.line, Column: at.col, Path: path, Message: fmt.Sprintf(format, args...),
		Hint: hint}
}

func (l *loader) load() {
	l.classes.init(l)
	if l.library = l.in.Library; l.library == nil {
		var err error
		if l.library, err = BuiltIn(); err != nil {
			l.problems = append(l.problems, Problem{Message: err.Error()})
			return
		}
	}
	l.library = l.library.Clone()
	l.configs = map[string]*corev1.ConfigMap{}
	if !l.documents() {
		return
	}
	ofLibrary := func(set string) bool { return strings.HasPrefix(set, "spec.library") }
	l.applySets(ofLibrary)
	l.sources() // before the other flags: they set variables of library workloads
	l.applySets(func(set string) bool { return !ofLibrary(set) })
	if !l.decode() {
		return
	}
	l.resolve()
}

// documents parses the files and processes each document by its kind. It returns
// false if there is no Benchmark.
func (l *loader) documents() bool {
	for _, f := range l.in.Files {
		docs, problems := parseFile(f)
		l.problems = append(l.problems, problems...)
		for _, d := range docs {
			l.document(d)
		}
		if len(docs) == 0 && len(problems) == 0 {
			l.problems = append(l.problems, Problem{File: f.Name, Line: 1, Column: 1, Message: "the file is empty",
				Hint: "examples/quickstart.yaml is a Benchmark to begin with"})
		}
	}
	if l.doc == nil && len(l.problems) == 0 {
		l.problems = append(l.problems, Problem{File: l.firstFile(), Line: 1, Column: 1,
			Message: "there is no Benchmark here",
			Hint:    "kind: Benchmark, apiVersion: " + apiVersion})
	}
	return l.doc != nil
}

func (l *loader) firstFile() string {
	if len(l.in.Files) == 0 {
		return ""
	}
	return l.in.Files[0].Name
}

var apiVersion = v1alpha1.GroupVersion.String()

// kinds lists the accepted kinds of document with their apiVersions.
var kinds = map[string][]string{
	"Benchmark":             {apiVersion},
	"ConfigMap":             {"v1"},
	"StorageClass":          {"storage.k8s.io/v1"},
	"VolumeAttributesClass": {"storage.k8s.io/v1", "storage.k8s.io/v1beta1"},
	"VolumeSnapshotClass":   {"snapshot.storage.k8s.io/v1"},
	"VolumeGroupSnapshotClass": {"groupsnapshot.storage.k8s.io/v1", "groupsnapshot.storage.k8s.io/v1beta2",
		"groupsnapshot.storage.k8s.io/v1beta1"},
}

// rendered reports whether a document is an object of a run. Render prints such
// objects after the Benchmark; Load accepts that output as input and ignores them.
func rendered(d *document) bool {
	metadata, _ := d.value["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	return labels[workload.LabelRun] != nil
}

func (l *loader) document(d *document) {
	fail := func(path, hint, format string, args ...any) {
		at := d.find(path)
		l.problems = append(l.problems, Problem{File: at.file, Line: at.line, Column: at.col, Path: path,
			Message: fmt.Sprintf(format, args...), Hint: hint})
	}
	if rendered(d) {
		return
	}
	if d.value["kind"] == studyKind {
		part := studyBenchmark
		if l.in.Precondition {
			part = studyPrecondition
		}
		d = benchmarkOf(d, part)
	}
	kind, _ := d.value["kind"].(string)
	version, _ := d.value["apiVersion"].(string)
	if spec, ok := d.value["spec"].(map[string]any); kind == "" && ok && spec["actions"] != nil {
		fail("", "kind: Benchmark", "kind is missing")
		kind = "Benchmark"
		d.value["kind"] = kind
	}
	versions, known := kinds[kind]
	switch {
	case kind == "":
		fail("", "kind: Benchmark", "kind is missing")
		return
	case !known:
		fail("kind", suggest(kind, sortedKeys(kinds)), "%q is not a kind of document that belongs here", kind)
		return
	case version == "":
		fail("", "apiVersion: "+versions[0], "apiVersion is missing")
		d.value["apiVersion"] = versions[0]
	case kind == "Benchmark" && strings.HasPrefix(version, "cnsbench.example.com/"):
		fail("apiVersion", "write apiVersion: "+apiVersion, "%s is the apiVersion of the paper's prototype", version)
	case !slices.Contains(versions, version):
		fail("apiVersion", "write apiVersion: "+versions[0], "%q is not the apiVersion of a %s", version, kind)
	}
	switch {
	case kind != "Benchmark":
		l.manifest(d, kind)
	case l.doc != nil:
		first := l.doc.find("")
		fail("kind", fmt.Sprintf("the first is at %s:%d; a run has one", first.file, first.line),
			"this is a second Benchmark")
	default:
		l.doc = d
		d.value["apiVersion"] = apiVersion
	}
}

// manifest adds a document other than the Benchmark: a class or a ConfigMap.
func (l *loader) manifest(d *document, kind string) {
	if kind != "ConfigMap" {
		l.classes.add(d, kind)
		return
	}
	cm := &corev1.ConfigMap{}
	if !l.strict(d, cm) {
		return
	}
	l.plan.Given = append(l.plan.Given, d.value)
	if !workload.IsEntry(cm) {
		l.configs[cm.Name] = cm
		return
	}
	e, err := workload.FromConfigMap(cm, d.file)
	if err != nil {
		at := d.find("metadata")
		l.problems = append(l.problems, Problem{File: at.file, Line: at.line, Column: at.col, Path: "metadata",
			Message: err.Error()})
		return
	}
	l.entries.Add(e)
}

// strict decodes a document into a typed object and reports unknown fields as
// problems. It returns false if it reported a problem.
func (l *loader) strict(d *document, into any) bool {
	raw, err := json.Marshal(d.value)
	if err != nil {
		l.problems = append(l.problems, Problem{File: d.file, Message: err.Error()})
		return false
	}
	unknown, err := sigsjson.UnmarshalStrict(raw, into)
	if err != nil {
		at := d.find("")
		l.problems = append(l.problems, Problem{File: at.file, Line: at.line, Column: at.col,
			Message: strings.TrimPrefix(err.Error(), "json: ")})
		return false
	}
	for _, e := range unknown {
		path := strings.TrimPrefix(e.Error(), "unknown field ")
		path = strings.Trim(path, `"`)
		at := d.findKey(path)
		l.problems = append(l.problems, Problem{File: at.file, Line: at.line, Column: at.col, Path: path,
			Message: "unknown field"})
	}
	return len(unknown) == 0
}

// sources adds the sources in spec.library to the library. An earlier source takes
// precedence over a later one and over the built-in library. ConfigMaps from the
// files take precedence over all sources.
func (l *loader) sources() {
	spec, _ := l.doc.value["spec"].(map[string]any)
	list, _ := spec["library"].([]any)
	for i, s := range slices.Backward(list) {
		source, _ := s.(map[string]any)
		path := fmt.Sprintf("spec.library[%d]", i)
		if configMaps, ok := source["configMapSpec"].(map[string]any); ok {
			namespace, _ := configMaps["namespace"].(string)
			l.addConfigMaps(path+".configMapSpec", namespace)
		}
		folder, _ := source["folderSpec"].(map[string]any)
		name, ok := folder["path"].(string)
		if !ok {
			continue
		}
		if l.in.Folder == nil {
			l.fail(path+".folderSpec.path", "cnsbench run hands its runner the folder; in a cluster its workloads can be ConfigMaps, which configMapSpec finds", "folder %q cannot be read here", name)
			continue
		}
		if err := l.addFolder(name); err != nil {
			l.fail(path+".folderSpec.path", "the path counts from the Benchmark's file", "%v", err)
		}
	}
	l.library.AddAll(&l.entries)
}

// addConfigMaps adds the library entries in a namespace of the cluster. An invalid
// entry gives a warning only, because the Benchmark may not use it.
func (l *loader) addConfigMaps(path, namespace string) {
	switch {
	case !l.in.Capabilities.Cluster:
		l.unsupported(path, "configMapSpec")
		return
	case namespace == "":
		return // reported by the schema check
	case l.in.ConfigMaps == nil:
		l.warn(path, "", "the library of namespace %s was not read: no cluster is at hand", namespace)
		l.unread = append(l.unread, namespace)
		return
	}
	list, err := l.in.ConfigMaps(l.ctx, namespace)
	if err != nil {
		l.fail(path+".namespace", "its ConfigMaps with label type: workload must be readable",
			"the library of namespace %s: %v", namespace, err)
		return
	}
	for i := range list {
		cm := &list[i]
		if !workload.IsEntry(cm) {
			continue
		}
		e, err := workload.FromConfigMap(cm, fmt.Sprintf("ConfigMap %s/%s", namespace, cm.Name))
		if err != nil {
			l.warn(path+".namespace", "", "%v", err)
			continue
		}
		l.library.Add(e)
	}
}

func (l *loader) addFolder(name string) error {
	fsys, err := l.in.Folder(name)
	if err != nil {
		return err
	}
	entries, err := workload.FromFolders(fsys, name)
	if err != nil {
		return err
	}
	l.library.AddAll(entries)
	return nil
}

// decode applies the schema and decodes the Benchmark into its Go type. It returns
// false if the Benchmark cannot be decoded, so that no further check is possible.
func (l *loader) decode() bool {
	c, err := benchmarkChecker()
	if err != nil {
		l.problems = append(l.problems, Problem{Message: err.Error()})
		return false
	}
	l.faulty = map[string]bool{}
	l.findNulls()
	for _, p := range c.apply(l.ctx, l.doc) {
		l.problems = append(l.problems, p)
		l.faulty[p.Path] = true
	}
	b := &v1alpha1.Benchmark{}
	if err := into(l.doc.value, b); err != nil {
		if len(l.problems) == 0 {
			l.locate(err)
			return false
		}
		// Check the valid part too, so that all problems are reported at once.
		b = &v1alpha1.Benchmark{}
		if into(l.withoutFaulty(c), b) != nil {
			return false
		}
	}
	l.plan.Benchmark, l.plan.Name, l.spec = b, b.Name, &b.Spec
	if b.Name == "" {
		l.fail("metadata", "metadata: {name: …}", "metadata.name is missing")
	}
	if b.Name != "" && len(validation.IsDNS1123Subdomain(b.Name)) > 0 {
		l.fail("metadata.name", "small letters, digits, dashes and dots, a letter or digit first and last",
			"%q cannot be a name", b.Name)
	}
	return true
}

// withoutFaulty returns a copy of the Benchmark in which fields with schema
// problems are removed or have their defaults.
func (l *loader) withoutFaulty(c *checker) map[string]any {
	value := runtime.DeepCopyJSON(l.doc.value)
	rest := &document{value: value}
	for _, path := range sortedKeys(l.faulty) {
		path = normal(path)
		step := path[strings.LastIndexByte(path, '.')+1:]
		switch around := rest.at(parent(path)).(type) {
		case map[string]any:
			delete(around, step)
		case []any:
			if i, err := strconv.Atoi(step); err == nil && i < len(around) {
				around[i] = nil
			}
		}
	}
	defaulting.Default(value, c.structural)
	return value
}

func into(value any, typed any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, typed)
}

// locate reports the part of the spec that the schema accepts but the Go types do
// not, such as a duration of ten thousand years.
func (l *loader) locate(err error) {
	spec, _ := l.doc.value["spec"].(map[string]any)
	found := false
	try := func(path string, v any, typed any) {
		if e := into(v, typed); e != nil {
			l.fail(path, "", "%v", e)
			found = true
		}
	}
	for _, key := range []string{"actions", "rates", "outputs", "slos", "library"} {
		list, _ := spec[key].([]any)
		for i, v := range list {
			types := map[string]any{"actions": &v1alpha1.Action{}, "rates": &v1alpha1.Rate{},
				"outputs": &v1alpha1.Output{},
				"slos":    &v1alpha1.SLO{}, "library": &v1alpha1.LibrarySource{}}
			try(fmt.Sprintf("spec.%s[%d]", key, i), v, types[key])
		}
	}
	for _, key := range []string{"runtime", "gracePeriod"} {
		if v, ok := spec[key]; ok {
			try("spec."+key, v, &v1alpha1.Duration{})
		}
	}
	if !found {
		l.fail("", "", "%v", err)
	}
}

// unsupported reports a field that the engine does not support.
func (l *loader) unsupported(path, what string) {
	hint := ""
	if !l.in.Capabilities.Cluster {
		hint = "--engine kubernetes has it"
	}
	l.notHere(path, what, "not offered", hint)
}

// later reports a field that no engine supports yet.
func (l *loader) later(path, what string) { l.notHere(path, what, "not supported yet", "") }

func (l *loader) notHere(path, what, message, hint string) {
	if !strings.HasSuffix(path, "."+what) {
		message = what + ": " + message
	}
	l.fail(path, hint, "%s by engine %s", message, l.in.Capabilities.Engine)
}

// need records a feature that the plan requires. It returns false, after reporting
// a problem, if the engine lacks the feature.
func (l *loader) need(path, feature string) bool {
	if !l.in.Capabilities.Features[feature] {
		l.unsupported(path, feature)
		return false
	}
	l.plan.Needs.Features[feature] = true
	return true
}
