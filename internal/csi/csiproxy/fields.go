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

// wanted are the fields that are read, wherever a message has them, and where
// they go. Of those that go to one place, an earlier line wins.
var wanted = []struct {
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

// field is one that is wanted (index into wanted) or leads to such.
type field struct {
	wanted int // -1: it only leads on
	below  fields
}

type fields map[protowire.Number]*field

// method is an RPC of CSI.
type method struct {
	name              string
	node              bool // of the node service
	request, response fields
}

// methods are the RPCs of CSI by their path.
var methods = sync.OnceValue(func() map[string]method {
	all := map[string]method{}
	services := csi.File_csi_proto.Services()
	for i := range services.Len() {
		service := services.Get(i)
		for j := range service.Methods().Len() {
			m := service.Methods().Get(j)
			all[fmt.Sprintf("/%s/%s", service.FullName(), m.Name())] = method{
				name: string(m.Name()), node: service.Name() == "Node",
				request: find(m.Input()), response: find(m.Output()),
			}
		}
	}
	return all
})

// find looks up which of the wanted fields a message has. A field that is
// marked as secret is not among them, nor what is below it.
func find(message protoreflect.MessageDescriptor) fields {
	found := fields{}
	for i, w := range wanted {
		if numbers := resolve(message, strings.Split(w.path, ".")); numbers != nil {
			found.add(numbers, i)
		}
	}
	return found
}

func (f fields) add(numbers []protowire.Number, index int) {
	at := f[numbers[0]]
	if at == nil {
		at = &field{wanted: -1, below: fields{}}
		f[numbers[0]] = at
	}
	if len(numbers) == 1 {
		at.wanted = index
		return
	}
	at.below.add(numbers[1:], index)
}

// resolve turns a path of names into one of numbers; nil where there is none.
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

// extract reads the fields from an encoded message, or from the beginning of
// one. What is malformed ends the reading; what was found before stays.
func extract(b []byte, f fields) Subject {
	values := make([]string, len(wanted))
	walk(b, f, values)
	var s Subject
	for i, v := range values {
		if to := wanted[i].to(&s); v != "" && *to == "" {
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
		if at.wanted >= 0 {
			put(&values[at.wanted], value, wanted[at.wanted].list)
		}
		walk(value, at.below, values)
	}
}

// put keeps a value: the last one, as protobuf has it, or all of a list.
func put(to *string, value []byte, list bool) {
	text := strings.ToValidUTF8(string(value[:min(len(value), maxText)]), "�")
	if list && *to != "" {
		text = *to + "," + text
	}
	*to = clip(text)
}
