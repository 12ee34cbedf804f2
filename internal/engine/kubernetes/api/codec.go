package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Media types of the two encodings.
const (
	JSON     = runtime.ContentTypeJSON
	Protobuf = runtime.ContentTypeProtobuf
)

// What the server answers with the metadata of an object, or of those of a list, in protobuf for kinds of JSON too.
const (
	metadataOnly   = Protobuf + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1, " + JSON
	metadataOfList = Protobuf + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, " + JSON
)

// metadataKind is the kind of such an answer.
var metadataKind = kind[metav1.PartialObjectMetadata](metav1.GroupName, "v1", "")

// magic begins every protobuf object. A runtime.Unknown follows, with the kind and the object (apimachinery's
// serializer/protobuf).
var magic = []byte{'k', '8', 's', 0}

// message is implemented by the generated types of built-in kinds.
type message interface {
	Reset()
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// typed is implemented by every type that embeds metav1.TypeMeta.
type typed interface{ GetObjectKind() schema.ObjectKind }

// Encode encodes obj for a request and sets its apiVersion and kind. obj must not be used concurrently.
func (k Kind) Encode(obj Object) ([]byte, error) {
	t, ok := obj.(typed)
	if !ok {
		return nil, fmt.Errorf("encode %s: %T has no apiVersion and kind", k, obj)
	}
	t.GetObjectKind().SetGroupVersionKind(k.GVK())
	if k.JSON {
		b, err := json.Marshal(jsonSource(obj))
		if err != nil {
			return nil, fmt.Errorf("encode %s %q: %w", k, obj.GetName(), err)
		}
		return b, nil
	}
	m, ok := obj.(message)
	if !ok {
		return nil, fmt.Errorf("encode %s: %T has no protobuf form", k, obj)
	}
	raw, err := m.Marshal()
	if err != nil {
		return nil, fmt.Errorf("encode %s %q: %w", k, obj.GetName(), err)
	}
	apiVersion, kind := k.GVK().ToAPIVersionAndKind()
	u := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}
	b, err := u.Marshal()
	if err != nil {
		return nil, fmt.Errorf("encode %s %q: %w", k, obj.GetName(), err)
	}
	return append(bytes.Clone(magic), b...), nil
}

// Decode decodes an object of this kind into into. If the data are a Status, the error is a *NotThisKind with it.
func (k Kind) Decode(data []byte, into Object) error {
	if k.JSON && k.fill(data, into) == nil && k.is(into) {
		return nil
	}
	raw, kind, err := k.open(data)
	switch {
	case err != nil:
	case kind == k.Name:
		err = k.fill(raw, into)
	default:
		err = &NotThisKind{Want: k.Name, Got: kind, Status: status(raw, kind, k.JSON)}
	}
	if err != nil {
		return fmt.Errorf("decode %s: %w", k, err)
	}
	return nil
}

// DecodeEvent decodes an event of a watch of a JSON kind in one pass. It returns false if the frame is not an event
// with an object of this kind.
func (k Kind) DecodeEvent(frame []byte) (typ string, object Object, ok bool) {
	object = k.New()
	event := struct {
		Type   string `json:"type"`
		Object any    `json:"object"`
	}{Object: jsonTarget(object)}
	err := utiljson.Unmarshal(frame, &event)
	return event.Type, object, err == nil && k.is(object)
}

// is reports whether an object that was decoded from JSON says that it is of this kind.
func (k Kind) is(o Object) bool {
	t, ok := o.(typed)
	return ok && t.GetObjectKind().GroupVersionKind().Kind == k.Name
}

// jsonSource returns what an encoder of JSON encodes to encode an object.
func jsonSource(o Object) any {
	if s, ok := o.(interface{ jsonSource() any }); ok {
		return s.jsonSource()
	}
	return o
}

// jsonTarget returns what a decoder of JSON fills to decode into an object.
func jsonTarget(o Object) any {
	if t, ok := o.(interface{ jsonTarget() any }); ok {
		return t.jsonTarget()
	}
	return o
}

// identify returns the resourceVersion and UID of an object of this kind, or of its metadata.
func (k Kind) identify(data []byte) (version string, uid types.UID, err error) {
	if k.JSON = !bytes.HasPrefix(data, magic); k.JSON {
		var o struct {
			Kind     string `json:"kind"`
			Metadata struct {
				ResourceVersion string    `json:"resourceVersion"`
				UID             types.UID `json:"uid"`
			} `json:"metadata"`
		}
		err = utiljson.Unmarshal(data, &o)
		if err == nil && o.Kind != k.Name {
			err = &NotThisKind{Want: k.Name, Got: o.Kind}
		}
		return o.Metadata.ResourceVersion, o.Metadata.UID, err
	}
	raw, kind, err := k.open(data)
	if err == nil && kind != k.Name && kind != metadataKind.Name {
		err = &NotThisKind{Want: k.Name, Got: kind}
	}
	if err != nil {
		return "", "", err
	}
	var o metav1.PartialObjectMetadata // its only field has the same number as in every kind
	err = o.Unmarshal(raw)
	return o.ResourceVersion, o.UID, err
}

// NotThisKind is the error for an answer of another kind than expected.
type NotThisKind struct {
	Want, Got string
	Status    *metav1.Status // the answer, if it is one
}

// Error names both kinds.
func (e *NotThisKind) Error() string {
	if e.Status != nil {
		return fmt.Sprintf("expected a %s, got a Status: %s", e.Want, e.Status.Message)
	}
	return fmt.Sprintf("expected a %s, got %q", e.Want, e.Got)
}

// DecodeList decodes a list of this kind, or of its metadata.
func (k Kind) DecodeList(data []byte) (metav1.ListMeta, []Object, error) {
	k.JSON = !bytes.HasPrefix(data, magic)
	meta, items, err := k.splitList(data)
	if err != nil {
		return meta, nil, fmt.Errorf("decode list of %s: %w", k, err)
	}
	objects := make([]Object, len(items))
	for i, raw := range items {
		objects[i] = k.New()
		if err := k.fill(raw, objects[i]); err != nil {
			return meta, nil, fmt.Errorf("decode list of %s: item %d: %w", k, i, err)
		}
	}
	return meta, objects, nil
}

func (k Kind) splitList(data []byte) (metav1.ListMeta, [][]byte, error) {
	raw, kind, err := k.open(data)
	if err != nil {
		return metav1.ListMeta{}, nil, err
	}
	if kind != k.Name+"List" && kind != metadataKind.Name+"List" {
		return metav1.ListMeta{}, nil, &NotThisKind{Want: k.Name + "List", Got: kind, Status: status(raw, kind, k.JSON)}
	}
	if !k.JSON {
		return splitProtoList(raw)
	}
	var l struct {
		Metadata metav1.ListMeta   `json:"metadata"`
		Items    []json.RawMessage `json:"items"`
	}
	err = json.Unmarshal(raw, &l)
	items := make([][]byte, len(l.Items))
	for i := range items {
		items[i] = l.Items[i]
	}
	return l.Metadata, items, err
}

// splitProtoList relies on the common layout of lists: metadata is field 1, items are field 2.
func splitProtoList(raw []byte) (meta metav1.ListMeta, items [][]byte, err error) {
	for len(raw) > 0 {
		num, typ, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return meta, nil, protowire.ParseError(n)
		}
		raw = raw[n:]
		if typ != protowire.BytesType || num > 2 {
			if n = protowire.ConsumeFieldValue(num, typ, raw); n < 0 {
				return meta, nil, protowire.ParseError(n)
			}
			raw = raw[n:]
			continue
		}
		field, n := protowire.ConsumeBytes(raw)
		if n < 0 {
			return meta, nil, protowire.ParseError(n)
		}
		raw = raw[n:]
		if num == 2 {
			items = append(items, field)
		} else if err := meta.Unmarshal(field); err != nil {
			return meta, nil, fmt.Errorf("metadata: %w", err)
		}
	}
	return meta, items, nil
}

// open unwraps an object and returns its kind.
func (k Kind) open(data []byte) (raw []byte, kind string, err error) {
	if k.JSON {
		var t metav1.TypeMeta
		if err := json.Unmarshal(data, &t); err != nil {
			return nil, "", err
		}
		return data, t.Kind, nil
	}
	body, ok := bytes.CutPrefix(data, magic)
	if !ok {
		return nil, "", errors.New("the data do not begin as Kubernetes' protobuf does")
	}
	var u runtime.Unknown
	if err := u.Unmarshal(body); err != nil {
		return nil, "", err
	}
	return u.Raw, u.Kind, nil
}

func (k Kind) fill(raw []byte, into Object) error {
	if k.JSON {
		return utiljson.Unmarshal(raw, jsonTarget(into))
	}
	m, ok := into.(message)
	if !ok {
		return fmt.Errorf("%T has no protobuf form", into)
	}
	m.Reset()
	return m.Unmarshal(raw)
}

// Status decodes a metav1.Status in either encoding; nil if data is none.
func Status(data []byte) *metav1.Status {
	k := Kind{JSON: !bytes.HasPrefix(data, magic)}
	raw, kind, err := k.open(data)
	if err != nil {
		return nil
	}
	return status(raw, kind, k.JSON)
}

func status(raw []byte, kind string, isJSON bool) *metav1.Status {
	if kind != "Status" {
		return nil
	}
	s := new(metav1.Status)
	var err error
	if isJSON {
		err = json.Unmarshal(raw, s)
	} else {
		err = s.Unmarshal(raw)
	}
	if err != nil {
		return nil
	}
	return s
}
