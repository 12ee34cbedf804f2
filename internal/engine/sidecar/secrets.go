package sidecar

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// Secret is a kind of secret that a class names, by the first words of its parameters: PREFIX + kind + "-name" and
// "-namespace".
type Secret string

// The kinds of secrets.
const (
	Provisioner       Secret = "provisioner-secret"
	ControllerPublish Secret = "controller-publish-secret"
	NodeStage         Secret = "node-stage-secret"
	NodePublish       Secret = "node-publish-secret"
	ControllerExpand  Secret = "controller-expand-secret"
	NodeExpand        Secret = "node-expand-secret"
	ControllerModify  Secret = "controller-modify-secret"
	anyCall           Secret = "secret" // of all calls whose own is not set

	Snapshotter         Secret = "snapshotter-secret"
	SnapshotterList     Secret = "snapshotter-list-secret"
	GroupSnapshotter    Secret = "group-snapshotter-secret"
	GroupSnapshotterGet Secret = "group-snapshotter-get-secret"
)

// Secrets that the classes name: a StorageClass those of its volumes, a VolumeSnapshotClass or
// VolumeGroupSnapshotClass those of its snapshots.
var (
	VolumeSecrets = []Secret{Provisioner, ControllerPublish, NodeStage, NodePublish, ControllerExpand, NodeExpand,
		ControllerModify, anyCall}
	SnapshotSecrets = []Secret{Snapshotter, SnapshotterList, GroupSnapshotter, GroupSnapshotterGet}
)

// Parameter returns the parameter that names the secret.
func (s Secret) Parameter() string    { return Prefix + string(s) + "-name" }
func (s Secret) namespaceKey() string { return Prefix + string(s) + "-namespace" }

// Reference is a secret's namespace and name; zero: none.
type Reference struct{ Namespace, Name string }

// String returns NAMESPACE/NAME; of a reference to none it is empty.
func (r Reference) String() string {
	if r == (Reference{}) {
		return ""
	}
	return r.Namespace + "/" + r.Name
}

// ParseReference is the inverse of String.
func ParseReference(text string) Reference {
	namespace, name, _ := strings.Cut(text, "/")
	return Reference{namespace, name}
}

// Object has what the tokens of a template stand for: ${pv.name}, ${pvc.namespace}, ${pvc.name} and
// ${pvc.annotations['KEY']} of a volume, ${volumesnapshotcontent.name}, ${volumesnapshot.namespace} and
// ${volumesnapshot.name} of a snapshot.
type Object struct {
	Snapshot    bool
	ID          string // the name that the driver gets: of the PersistentVolume or VolumeSnapshotContent
	Namespace   string
	Name        string // of the claim or VolumeSnapshot
	Annotations map[string]string
}

// tokens returns the values of the tokens of a name, or of a namespace, which may not come from who makes the claim.
func (o *Object) tokens(name bool) map[string]string {
	if o.Snapshot {
		t := map[string]string{"volumesnapshotcontent.name": o.ID, "volumesnapshot.namespace": o.Namespace}
		if name {
			t["volumesnapshot.name"] = o.Name
		}
		return t
	}
	t := map[string]string{"pv.name": o.ID, "pvc.namespace": o.Namespace}
	if name {
		t["pvc.name"] = o.Name
		for k, v := range o.Annotations {
			t["pvc.annotations['"+k+"']"] = v
		}
	}
	return t
}

// Of returns the secret of a kind that the parameters of a class name for an object, as csi-provisioner and
// csi-snapshotter resolve them; zero: none. The error says which parameter is missing or has an unknown token.
func (s Secret) Of(parameters map[string]string, of Object) (Reference, error) {
	name, namespace, err := s.templates(parameters)
	if err == nil && name == "" && slices.Contains(VolumeSecrets, s) {
		name, namespace, err = anyCall.templates(parameters)
	}
	if err != nil || name == "" {
		return Reference{}, err
	}
	r := Reference{}
	if r.Namespace, err = expand(namespace, of.tokens(false)); err != nil {
		return Reference{}, fmt.Errorf("%s: %w", s.namespaceKey(), err)
	}
	if r.Name, err = expand(name, of.tokens(true)); err != nil {
		return Reference{}, fmt.Errorf("%s: %w", s.Parameter(), err)
	}
	return r, nil
}

func (s Secret) templates(parameters map[string]string) (name, namespace string, err error) {
	name, named := parameters[s.Parameter()]
	namespace, placed := parameters[s.namespaceKey()]
	switch {
	case named && !placed:
		err = fmt.Errorf("%s is set, %s is missing", s.Parameter(), s.namespaceKey())
	case placed && !named:
		err = fmt.Errorf("%s is set, %s is missing", s.namespaceKey(), s.Parameter())
	case named && (name == "" || namespace == ""):
		err = fmt.Errorf("%s and %s must not be empty", s.Parameter(), s.namespaceKey())
	}
	return name, namespace, err
}

// expand replaces the tokens of a template.
func expand(template string, tokens map[string]string) (string, error) {
	var unknown []string
	text := os.Expand(template, func(token string) string {
		value, ok := tokens[token]
		if !ok {
			unknown = append(unknown, "${"+token+"}")
		}
		return value
	})
	if len(unknown) > 0 {
		return "", fmt.Errorf("unknown token %s in %q", strings.Join(unknown, ", "), template)
	}
	return text, nil
}
