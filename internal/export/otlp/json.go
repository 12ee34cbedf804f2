package otlp

import (
	"encoding/json"
	"strconv"
)

// The types below are OTLP's ExportTraceServiceRequest in its JSON encoding
// (opentelemetry.io/docs/specs/otlp, "JSON Protobuf Encoding"): IDs are in hex, 64-bit
// integers are texts, enumerations are numbers. protojson would write IDs in base64.

type requestJSON struct {
	ResourceSpans []resourceSpans `json:"resourceSpans"`
}

type resourceSpans struct {
	Resource   resource     `json:"resource"`
	ScopeSpans []scopeSpans `json:"scopeSpans"`
}

type resource struct {
	Attributes []attribute `json:"attributes"`
}

type scopeSpans struct {
	Scope scope           `json:"scope"`
	Spans json.RawMessage `json:"spans"` // a list of spanJSON
}

type scope struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

type spanJSON struct {
	TraceID    string      `json:"traceId"`
	SpanID     string      `json:"spanId"`
	Parent     string      `json:"parentSpanId,omitempty"`
	Name       string      `json:"name"`
	Kind       int         `json:"kind"`
	Start      string      `json:"startTimeUnixNano"`
	End        string      `json:"endTimeUnixNano"`
	Attributes []attribute `json:"attributes,omitempty"`
	Events     []eventJSON `json:"events,omitempty"`
	Status     *statusJSON `json:"status,omitempty"`
}

type eventJSON struct {
	Time       string      `json:"timeUnixNano"`
	Name       string      `json:"name"`
	Attributes []attribute `json:"attributes,omitempty"`
}

type statusJSON struct {
	Code    int    `json:"code"`
	Message string `json:"message,omitempty"`
}

// internal is SPAN_KIND_INTERNAL; the others are STATUS_CODE_OK and STATUS_CODE_ERROR.
const (
	internal    = 1
	statusOK    = 1
	statusError = 2
)

type attribute struct {
	Key   string `json:"key"`
	Value value  `json:"value"`
}

type value struct {
	String *string `json:"stringValue,omitempty"`
	Int    string  `json:"intValue,omitempty"`
	Bool   *bool   `json:"boolValue,omitempty"`
}

func text(key, v string) attribute { return attribute{key, value{String: &v}} }

func integer(key string, v int64) attribute {
	return attribute{key, value{Int: strconv.FormatInt(v, 10)}}
}

func boolean(key string, v bool) attribute { return attribute{key, value{Bool: &v}} }
