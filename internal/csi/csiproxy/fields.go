package csiproxy

import (
	"fmt"
	"strings"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// fieldPaths are the recorded message fields and their destinations. For one destination, an earlier entry
// wins.
var fieldPaths = []struct {
	path string
	to   func(*Subject) *string
	list bool // several values are joined
}{
	{"name", func(s *Subject) *string { return &s.Name }, false},
	{"node_id", func(s *Subject) *string { return &s.Node }, false},
	{"volume_id", func(s *Subject) *string { return &s.Volume }, false},
	{"volume.volume_id", func(s *Subject) *string { return &s.Volume }, false},
	{"snapshot_id", func(s *Subject) *string { return &s.Snapshot }, false},
	{"snapshot_ids", func(s *Subject) *string { return &s.Snapshot }, true},
	{"snapshot.snapshot_id", func(s *Subject) *string { return &s.Snapshot }, false},
	{"group_snapshot.snapshots.snapshot_id", func(s *Subject) *string { return &s.Snapshot }, true},
	{"group_snapshot_id", func(s *Subject) *string { return &s.Group }, false},
	{"group_snapshot.group_snapshot_id", func(s *Subject) *string { return &s.Group }, false},
	{"source_volume_id", func(s *Subject) *string { return &s.Source }, false},
	{"source_volume_ids", func(s *Subject) *string { return &s.Source }, true},
	{"volume_content_source.snapshot.snapshot_id", func(s *Subject) *string { return &s.Source }, false},
	{"volume_content_source.volume.volume_id", func(s *Subject) *string { return &s.Source }, false},
	{"target_path", func(s *Subject) *string { return &s.Path }, false},
	{"volume_path", func(s *Subject) *string { return &s.Path }, false},
	{"staging_target_path", func(s *Subject) *string { return &s.Path }, false},
}

// field is a recorded field or leads to one.
type field struct {
	path  int // index into fieldPaths; -1: only leads to others
	below fields
}

type fields map[protowire.Number]*field

// method is an RPC of CSI.
type method struct {
	name              string
	node              bool // belongs to the node service
	request, response fields
}

// methods returns the RPCs of CSI by their path.
var methods = sync.OnceValue(func() map[string]method {
	all := map[string]method{}
	services := csi.File_csi_proto.Services()
	for i := range services.Len() {
		service := services.Get(i)
		for j := range service.Methods().Len() {
			m := service.Methods().Get(j)
			all[fmt.Sprintf("/%s/%s", service.FullName(), m.Name())] = method{
				name: string(m.Name()), node: service.Name() == "Node",
				request: fieldsOf(m.Input()), response: fieldsOf(m.Output()),
			}
		}
	}
	return all
})

// fieldsOf returns the fieldPaths that a message has, without fields marked secret and what is below them.
func fieldsOf(message protoreflect.MessageDescriptor) fields {
	found := fields{}
	for i, w := range fieldPaths {
		if numbers := resolve(message, strings.Split(w.path, ".")); numbers != nil {
			found.add(numbers, i)
		}
	}
	return found
}

func (f fields) add(numbers []protowire.Number, index int) {
	at := f[numbers[0]]
	if at == nil {
		at = &field{path: -1, below: fields{}}
		f[numbers[0]] = at
	}
	if len(numbers) == 1 {
		at.path = index
		return
	}
	at.below.add(numbers[1:], index)
}

// resolve converts a path of names to one of field numbers; nil if the message lacks it.
func resolve(message protoreflect.MessageDescriptor, path []string) []protowire.Number {
	fd := message.Fields().ByName(protoreflect.Name(path[0]))
	if fd == nil || secret(fd) {
		return nil
	}
	numbers := []protowire.Number{fd.Number()}
	if len(path) == 1 {
		if fd.Kind() != protoreflect.StringKind {
			return nil
		}
		return numbers
	}
	if fd.Message() == nil || fd.IsMap() {
		return nil
	}
	below := resolve(fd.Message(), path[1:])
	if below == nil {
		return nil
	}
	return append(numbers, below...)
}

func secret(fd protoreflect.FieldDescriptor) bool {
	marked, ok := proto.GetExtension(fd.Options(), csi.E_CsiSecret).(bool)
	return ok && marked
}

// extract reads the fields from an encoded message or its beginning. Malformed data ends the reading; fields
// found before are kept.
func extract(b []byte, f fields) Subject {
	values := make([]string, len(fieldPaths))
	walk(b, f, values)
	var s Subject
	for i, v := range values {
		if to := fieldPaths[i].to(&s); v != "" && *to == "" {
			*to = v
		}
	}
	return s
}

func walk(b []byte, f fields, values []string) {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return
		}
		b = b[n:]
		at := f[number]
		if at == nil || kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
				return
			}
			b = b[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return
		}
		b = b[n:]
		if at.path >= 0 {
			setValue(&values[at.path], value, fieldPaths[at.path].list)
		}
		walk(value, at.below, values)
	}
}

// setValue stores a value: the last one, as in protobuf, or all of a list, joined by commas.
func setValue(to *string, value []byte, list bool) {
	text := strings.ToValidUTF8(string(value[:min(len(value), maxText)]), "�")
	if list && *to != "" {
		text = *to + "," + text
	}
	*to = clip(text)
}
