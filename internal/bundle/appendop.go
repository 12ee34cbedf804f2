package bundle

import (
	"encoding/json"
	"strconv"

	"github.com/cnsbench/cnsbench/internal/op"
)

// appendOp appends the JSON of an op as json.Marshal encodes it, but without reflection, since it runs once
// per op during the measurement.
func appendOp(b []byte, o *op.Op) []byte {
	b = appendInt(append(b, `{"id":`...), o.ID)
	b = appendInt(append(b, `,"episode":`...), o.Episode)
	b = appendString(append(b, `,"action":`...), o.Action)
	b = appendInt(append(b, `,"instance":`...), int64(o.Instance))
	b = appendString(append(b, `,"kind":`...), string(o.Kind))
	b = appendString(append(b, `,"target":`...), o.Target)
	b = appendString(append(b, `,"node":`...), o.Node)
	b = appendTime(append(b, `,"intended":`...), o.Intended)
	b = appendTime(append(b, `,"started":`...), o.Started)
	b = appendTime(append(b, `,"ended":`...), o.Ended)
	b = appendMilestones(append(b, `,"milestones":`...), o.Milestones)
	b = appendInt(append(b, `,"attempts":`...), int64(o.Attempts))
	b = appendString(append(b, `,"outcome":`...), string(o.Outcome))
	b = appendString(append(b, `,"code":`...), o.Code)
	b = appendString(append(b, `,"message":`...), o.Message)
	b = appendString(append(b, `,"object":`...), o.Object)
	return append(b, '}')
}

func appendMilestones(b []byte, list []op.Milestone) []byte {
	if list == nil {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for i, m := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"name":`...), m.Name)
		b = appendTime(append(b, `,"at":`...), m.At)
		b = appendInt(append(b, `,"err":`...), m.Err)
		b = appendString(append(b, `,"source":`...), m.Source)
		b = append(b, '}')
	}
	return append(b, ']')
}

func appendInt(b []byte, v int64) []byte { return strconv.AppendInt(b, v, 10) }

func appendTime(b []byte, t op.Time) []byte {
	if !t.Known() {
		return append(b, "null"...)
	}
	return appendInt(b, int64(t))
}

// appendString leaves strings that need escaping to package json.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, _ := json.Marshal(s) // cannot fail for a string
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
