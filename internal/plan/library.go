package plan

import (
	"context"
	"fmt"
	"io/fs"
	"slices"

	"github.com/cnsbench/cnsbench/internal/plan/parse"
	"github.com/cnsbench/cnsbench/internal/workload"
	"github.com/cnsbench/cnsbench/library"
)

// BuiltIn returns the library that is embedded in the program.
func BuiltIn() (*workload.Library, error) {
	sub, err := fs.Sub(library.Workloads, "workloads")
	if err != nil {
		return nil, err
	}
	return workload.Embedded(sub, "built in")
}

// baseLibrary returns a copy of a library; nil: of the built-in one. It returns nil if it
// reported a problem.
func baseLibrary(report *parse.Report, given *workload.Library) *workload.Library {
	if given == nil {
		var err error
		if given, err = BuiltIn(); err != nil {
			report.Add(Problem{Message: err.Error()})
			return nil
		}
	}
	return given.Clone()
}

// addSources adds the sources in spec.library to the library. An earlier source takes
// precedence over a later one and over the built-in library. It returns the namespaces
// whose entries could not be read, because no cluster is available.
func addSources(ctx context.Context, report *parse.Report, in *Input, library *workload.Library) (unread []string) {
	spec, _ := report.Value["spec"].(map[string]any)
	list, _ := spec["library"].([]any)
	for i, s := range slices.Backward(list) {
		source, _ := s.(map[string]any)
		path := fmt.Sprintf("spec.library[%d]", i)
		if configMaps, ok := source["configMapSpec"].(map[string]any); ok {
			namespace, _ := configMaps["namespace"].(string)
			if !addConfigMaps(ctx, report, in, library, path+".configMapSpec", namespace) {
				unread = append(unread, namespace)
			}
		}
		folder, _ := source["folderSpec"].(map[string]any)
		name, ok := folder["path"].(string)
		if !ok {
			continue
		}
		if in.Folder == nil {
			report.Fail(path+".folderSpec.path",
				"cnsbench run hands its runner the folder; in a cluster its workloads can be ConfigMaps, which "+
					"configMapSpec finds", "folder %q cannot be read here", name)
			continue
		}
		if err := addFolder(library, in.Folder, name); err != nil {
			report.Fail(path+".folderSpec.path", "the path counts from the Benchmark's file", "%v", err)
		}
	}
	return unread
}

// addConfigMaps adds the library entries in a namespace of the cluster. An invalid
// entry gives a warning only, because the Benchmark may not use it. It returns false if
// no cluster is available.
func addConfigMaps(ctx context.Context, report *parse.Report, in *Input, library *workload.Library,
	path, namespace string) bool {
	switch {
	case !in.Capabilities.Cluster:
		unsupported(report, in.Capabilities, path, "configMapSpec")
		return true
	case namespace == "":
		return true // reported by the schema check
	case in.ConfigMaps == nil:
		report.Warn(path, "", "the library of namespace %s was not read: no cluster is at hand", namespace)
		return false
	}
	list, err := in.ConfigMaps(ctx, namespace)
	if err != nil {
		report.Fail(path+".namespace", "its ConfigMaps with label type: workload must be readable",
			"the library of namespace %s: %v", namespace, err)
		return true
	}
	for i := range list {
		cm := &list[i]
		if !workload.IsEntry(cm) {
			continue
		}
		e, err := workload.FromConfigMap(cm, fmt.Sprintf("ConfigMap %s/%s", namespace, cm.Name))
		if err != nil {
			report.Warn(path+".namespace", "", "%v", err)
			continue
		}
		library.Add(e)
	}
	return true
}

func addFolder(library *workload.Library, open func(path string) (fs.FS, error), name string) error {
	fsys, err := open(name)
	if err != nil {
		return err
	}
	entries, err := workload.FromFolders(fsys, name)
	if err != nil {
		return err
	}
	library.AddAll(entries)
	return nil
}
