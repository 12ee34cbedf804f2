package awkwarddriver

import (
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// longPrefix begins long IDs, which end with the plain one.
const (
	longPrefix = "0001-0024-awkward/pool/"
	idLength   = 128
)

// longID returns the ID of 128 bytes for a plain one.
func longID(id string) string {
	if id == "" {
		return ""
	}
	return longPrefix + strings.Repeat("x", idLength-len(longPrefix)-len("/")-len(id)) + "/" + id
}

// plainID returns the plain ID for any; unknown IDs stay.
func plainID(id string) string {
	if strings.HasPrefix(id, longPrefix) && len(id) == idLength {
		return id[strings.LastIndexByte(id, '/')+1:]
	}
	return id
}

// idFields are the fields of requests and answers that have IDs.
var idFields = map[protoreflect.Name]bool{"volume_id": true, "snapshot_id": true, "source_volume_id": true,
	"group_snapshot_id": true, "source_volume_ids": true, "snapshot_ids": true}

// renameIDs changes all IDs in a message.
func renameIDs(m proto.Message, to func(string) string) { renameIn(m.ProtoReflect(), to) }

func renameIn(m protoreflect.Message, to func(string) string) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap():
		case f.IsList() && f.Kind() == protoreflect.MessageKind:
			for i := range v.List().Len() {
				renameIn(v.List().Get(i).Message(), to)
			}
		case f.IsList() && idFields[f.Name()]:
			for i := range v.List().Len() {
				v.List().Set(i, protoreflect.ValueOfString(to(v.List().Get(i).String())))
			}
		case f.IsList():
		case f.Kind() == protoreflect.MessageKind:
			renameIn(v.Message(), to)
		case idFields[f.Name()]:
			m.Set(f, protoreflect.ValueOfString(to(v.String())))
		}
		return true
	})
}
