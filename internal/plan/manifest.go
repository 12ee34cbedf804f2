package plan

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/workload"
)

// manifestObject resolves an object that the file gives as a manifest. It renders the
// first instance, so that errors in the manifest are reported at load time.
func (l *loader) manifestObject(n *info, path string, c *v1alpha1.CreateObjSpec) {
	if !l.need(path+".manifest", "manifest") {
		return
	}
	object, err := workload.NewObject(c.Manifest.Raw)
	if err == nil {
		err = l.identified(path+".manifest", object.Fields)
	}
	if err != nil {
		l.fail(path+".manifest", "apiVersion, kind and spec as for kubectl apply", "%v", err)
		return
	}
	l.unknownNulls(path, object)
	given := map[string]string{}
	object.Numbers = map[string]bool{}
	for k, v := range c.Vars {
		given[k] = string(v)
		_, text := l.doc.at(normal(path + ".vars." + k)).(string)
		object.Numbers[k] = !text
	}
	values, wrong := object.Resolve(given)
	for _, e := range wrong {
		if e.Var == "" {
			l.fail(path+".manifest", e.Hint, "%s", e.Message)
			continue
		}
		l.fail(path+".vars."+e.Var, suggest(e.Var, e.Known), "%s", e.Message)
	}
	if len(wrong) > 0 {
		return
	}
	made := &Manifest{Template: object, Labels: c.Labels, Params: workload.Params{Vars: values, Action: n.out.Name,
		Count: n.out.Count, Engine: l.in.Capabilities.Engine, Cluster: l.classes.cluster, ToolsImage: l.in.ToolsImage}}
	first, err := made.Render("run", 0)
	if err != nil {
		l.fail(path+".manifest", "", "%v", err)
		return
	}
	for _, pod := range workload.DenyToken(first.Object) {
		l.token(path+".manifest", fmt.Sprintf("the pods of %s", n.out.Name), &pod)
	}
	made.Labels = first.GetLabels()
	for _, own := range []string{workload.LabelAction, workload.LabelInstance, workload.LabelRun} {
		delete(made.Labels, own)
	}
	n.out.Manifest = made
}

// identified returns an error if an object has no valid apiVersion or kind, or has a
// namespace. It warns of an object with a name, which is not used.
func (l *loader) identified(path string, fields map[string]any) error {
	o := unstructured.Unstructured{Object: fields}
	if _, err := schema.ParseGroupVersion(o.GetAPIVersion()); err != nil {
		return err
	}
	switch {
	case o.GetAPIVersion() == "":
		return errors.New("apiVersion is missing")
	case o.GetKind() == "":
		return errors.New("kind is missing")
	case o.GetNamespace() != "":
		return errors.New("metadata.namespace: objects are made in the run's namespace")
	case o.GetName() != "" || o.GetGenerateName() != "":
		l.warn(path+".metadata", "", "the name is not used: objects are named by their action and number")
	}
	return nil
}
