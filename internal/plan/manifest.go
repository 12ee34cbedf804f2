package plan

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/hints"
	"github.com/cnsbench/cnsbench/internal/plan/parse"
	"github.com/cnsbench/cnsbench/internal/workload"
)

// resolveManifest resolves an object that the file gives as a manifest. It renders the
// first instance, so that errors in the manifest are reported at load time.
func resolveManifest(g *graph, n *node, path string, c *v1alpha1.CreateObjSpec) {
	if !g.need(path+".manifest", "manifest") {
		return
	}
	object, err := workload.NewObject(c.Manifest.Raw)
	if err == nil {
		err = identified(g.Report, path+".manifest", object.Fields)
	}
	if err != nil {
		g.Fail(path+".manifest", "apiVersion, kind and spec as for kubectl apply", "%v", err)
		return
	}
	unknownNulls(g, path, object)
	given := map[string]string{}
	object.Numbers = map[string]bool{}
	for k, v := range c.Vars {
		given[k] = string(v)
		_, text := g.At(parse.Normal(path + ".vars." + k)).(string)
		object.Numbers[k] = !text
	}
	values, wrong := object.Resolve(given)
	for _, e := range wrong {
		if e.Var == "" {
			g.Fail(path+".manifest", e.Hint, "%s", e.Message)
			continue
		}
		g.Fail(path+".vars."+e.Var, hints.Suggest(e.Var, e.Known), "%s", e.Message)
	}
	if len(wrong) > 0 {
		return
	}
	made := &Manifest{Template: object, Labels: c.Labels, Params: workload.Params{Vars: values, Action: n.out.Name,
		Count: n.out.Count, Engine: g.in.Capabilities.Engine, Cluster: g.classes.cluster, ToolsImage: g.in.ToolsImage,
		Image: g.in.Image}}
	first, err := made.Render("run", 0)
	if err != nil {
		g.Fail(path+".manifest", "", "%v", err)
		return
	}
	checkFirstPut(g, path+".manifest", &first)
	for _, pod := range workload.DenyToken(first.Object) {
		warnOfToken(g, path+".manifest", fmt.Sprintf("the pods of %s", n.out.Name), &pod)
	}
	made.Labels = first.GetLabels()
	for _, own := range []string{workload.LabelAction, workload.LabelRun} {
		delete(made.Labels, own)
	}
	n.out.Manifest = made
}

// checkFirstPut checks the annotation that requests a first PUT with the credentials of a BucketAccess.
func checkFirstPut(g *graph, path string, o *unstructured.Unstructured) {
	value, has := o.GetAnnotations()[engine.FirstPut]
	if !has {
		return
	}
	at := path + ".metadata.annotations." + engine.FirstPut
	spec := func(field string) string {
		text, _, _ := unstructured.NestedString(o.Object, "spec", field)
		return text
	}
	gvk := o.GroupVersionKind()
	switch {
	case value != "true" && value != "false":
		g.Fail(at, `"true" or "false"`, "%q is neither true nor false", value)
	case gvk.Group != engine.BucketGroup || gvk.Kind != "BucketAccess":
		g.Fail(at, "put it on the BucketAccess, whose Secret has the credentials",
			"a %s has no credentials for a first PUT", gvk.Kind)
	case value == "true" && spec("protocol") != "" && spec("protocol") != "S3":
		g.Fail(at, "remove the annotation, or set protocol: S3", "a first PUT is by S3, the protocol is %s",
			spec("protocol"))
	case value == "true" && spec("credentialsSecretName") == "":
		g.Fail(path+".spec.credentialsSecretName", "", "without the name of a Secret there are no credentials for a "+
			"first PUT")
	}
}

// identified returns an error if an object has no valid apiVersion or kind, or has a
// namespace. It warns of an object with a name, which is not used.
func identified(report *parse.Report, path string, fields map[string]any) error {
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
		report.Warn(path+".metadata", "", "the name is not used: objects are named by their action and number")
	}
	return nil
}
