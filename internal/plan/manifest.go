package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/workload"
)

// manifestObject resolves an object that the file gives as a manifest, and
// renders the first, so that whatever is wrong with it is known now.
func (l *loader) manifestObject(n *info, path string, c *v1alpha1.CreateObjSpec) {
	if !l.need(path+".manifest", "manifest") {
		return
	}
	fields, err := fieldsOf(c.Manifest.Raw)
	if err == nil {
		err = l.identified(path+".manifest", fields)
	}
	if err != nil {
		l.fail(path+".manifest", "apiVersion, kind and spec as for kubectl apply", "%v", err)
		return
	}
	object, err := workload.NewObject(fields)
	if err != nil {
		l.fail(path+".manifest", "", "%v", err)
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
	params := workload.Params{Vars: values, Action: n.out.Name, Count: n.out.Count, Engine: l.in.Capabilities.Engine, ToolsImage: l.in.ToolsImage, RunID: "run"}
	render := func(runID string, i int) (unstructured.Unstructured, error) {
		p := params
		p.RunID, p.Index = runID, i
		filled, err := object.Render(p)
		if err != nil {
			return unstructured.Unstructured{}, fmt.Errorf("manifest of %s, instance %d: %w", p.Action, i, err)
		}
		workload.DenyToken(filled)
		out := unstructured.Unstructured{Object: filled}
		labels := out.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, c.Labels)
		labels[workload.LabelAction], labels[workload.LabelInstance], labels[workload.LabelRun] = p.Action, workload.InstanceName(p.Action, i), runID
		out.SetLabels(labels)
		out.SetName(workload.InstanceName(p.Action, i))
		return out, nil
	}
	first, err := render("run", 0)
	if err != nil {
		l.fail(path+".manifest", "", "%v", err)
		return
	}
	for _, pod := range workload.DenyToken(first.Object) {
		l.token(path+".manifest", fmt.Sprintf("the pods of %s", n.out.Name), &pod)
	}
	labels := first.GetLabels()
	for _, own := range []string{workload.LabelAction, workload.LabelInstance, workload.LabelRun} {
		delete(labels, own)
	}
	n.out.Manifest = &Manifest{Render: render, Labels: labels}
}

func fieldsOf(raw []byte) (map[string]any, error) {
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	// Whole numbers are int64 in unstructured objects, as an apiserver has them.
	return unstructuredNumbers(fields).(map[string]any), nil
}

// unstructuredNumbers makes the floats of encoding/json whole numbers where
// they are.
func unstructuredNumbers(v any) any {
	switch v := v.(type) {
	case float64:
		if n := int64(v); float64(n) == v {
			return n
		}
	case []any:
		for i := range v {
			v[i] = unstructuredNumbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = unstructuredNumbers(v[k])
		}
	}
	return v
}

// identified says what is missing to know which kind of object it is.
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
