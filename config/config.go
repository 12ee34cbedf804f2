// Package config has the manifests of an installation in a cluster. They are the
// one source: "cnsbench install" applies or prints them, and the Helm chart is
// generated from them (go test ./config -update).
package config

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/cnsbench/cnsbench/config/crd"
)

//go:embed install/*.yaml csi-proxy/csi-proxy.yaml
var files embed.FS

// What the manifests say, to be replaced by what an installation wants.
const (
	DefaultNamespace = "cnsbench-system"
	DefaultImage     = "cnsbench/cnsbench:devel"
)

// names of the manifests, in the order in which they are applied.
var names = []string{"namespace", "admission", "operator", "results", "roles"}

// Options are what differs between installations. Zero values are those of the
// manifests.
type Options struct {
	Namespace string
	Image     string
	// ResultsStorageClass of the volume with the bundles; empty: the cluster's
	// default. It should not be the class under test.
	ResultsStorageClass string
	// ResultsSize of that volume, e.g. 10Gi.
	ResultsSize string
	// CSIProxy adds proxies on drivers' sockets; nil: none.
	CSIProxy *CSIProxy
}

var imageName = regexp.MustCompile(`^[a-zA-Z0-9][-a-zA-Z0-9._/:@]*$`)

func (o *Options) complete() error {
	if o.Namespace == "" {
		o.Namespace = DefaultNamespace
	}
	if o.Image == "" {
		o.Image = DefaultImage
	}
	if problems := validation.IsDNS1123Label(o.Namespace); problems != nil {
		return fmt.Errorf("namespace %q: %s", o.Namespace, strings.Join(problems, ", "))
	}
	if !imageName.MatchString(o.Image) {
		return fmt.Errorf("image %q is not the name of an image", o.Image)
	}
	if o.ResultsSize != "" {
		if _, err := resource.ParseQuantity(o.ResultsSize); err != nil {
			return fmt.Errorf("size of the results volume %q: %w", o.ResultsSize, err)
		}
	}
	return nil
}

// Objects are all objects of an installation, in the order in which they are
// applied.
func Objects(o Options) ([]*unstructured.Unstructured, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	all, err := decode("crd", crd.Benchmark)
	if err != nil {
		return nil, err
	}
	fit := strings.NewReplacer(DefaultNamespace, o.Namespace, DefaultImage, o.Image)
	for _, name := range names {
		text, err := files.ReadFile("install/" + name + ".yaml")
		if err != nil {
			return nil, err
		}
		objects, err := decode(name, []byte(fit.Replace(string(text))))
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	if o.CSIProxy != nil {
		objects, err := o.CSIProxy.objects(func(text []byte) []byte { return []byte(fit.Replace(string(text))) })
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	i := slices.IndexFunc(all,
		func(u *unstructured.Unstructured) bool { return u.GetKind() == "PersistentVolumeClaim" })
	return all, o.resultsVolume(all[i])
}

func (o *Options) resultsVolume(claim *unstructured.Unstructured) error {
	var errs []error
	if o.ResultsStorageClass != "" {
		errs = append(errs, unstructured.SetNestedField(claim.Object, o.ResultsStorageClass, "spec",
			"storageClassName"))
	}
	if o.ResultsSize != "" {
		errs = append(errs, unstructured.SetNestedField(claim.Object, o.ResultsSize, "spec", "resources", "requests",
			"storage"))
	}
	return errors.Join(errs...)
}

// decode reads the documents of one manifest.
func decode(name string, text []byte) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		u := &unstructured.Unstructured{}
		err := d.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("manifest %s: %w", name, err)
		}
		if len(u.Object) > 0 {
			all = append(all, u)
		}
	}
}
