package scrape

import (
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/snappy"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// schema has the messages of remote write 1.0, as its specification defines them.
const schema = `name: "remote.proto" package: "prometheus" syntax: "proto3"
message_type { name: "WriteRequest" field { name: "timeseries" number: 1 label: LABEL_REPEATED type: TYPE_MESSAGE
  type_name: ".prometheus.TimeSeries" } }
message_type { name: "TimeSeries"
  field { name: "labels" number: 1 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".prometheus.Label" }
  field { name: "samples" number: 2 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".prometheus.Sample" } }
message_type { name: "Label" field { name: "name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "value" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL } }
message_type { name: "Sample" field { name: "value" number: 1 type: TYPE_DOUBLE label: LABEL_OPTIONAL }
  field { name: "timestamp" number: 2 type: TYPE_INT64 label: LABEL_OPTIONAL } }`

// point is a sample.
type point struct {
	at    int64
	value float64
}

// decode reads a request: the sample of each series, and the number of series.
func decode(t *testing.T, body []byte) map[string]point {
	t.Helper()
	var file descriptorpb.FileDescriptorProto
	if err := prototext.Unmarshal([]byte(schema), &file); err != nil {
		t.Fatal(err)
	}
	built, err := protodesc.NewFile(&file, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := snappy.Decode(nil, body)
	if err != nil {
		t.Fatal(err)
	}
	request := dynamicpb.NewMessage(built.Messages().ByName("WriteRequest"))
	if err := proto.Unmarshal(text, request); err != nil {
		t.Fatal(err)
	}
	field := func(m protoreflect.Message, name string) protoreflect.Value {
		return m.Get(m.Descriptor().Fields().ByName(protoreflect.Name(name)))
	}
	points := map[string]point{}
	list := field(request, "timeseries").List()
	for i := range list.Len() {
		series := list.Get(i).Message()
		var labels []string
		for l, j := field(series, "labels").List(), 0; j < l.Len(); j++ {
			labels = append(labels, field(l.Get(j).Message(), "name").String()+"="+field(l.Get(j).Message(), "value").String())
		}
		samples := field(series, "samples").List()
		if !slices.IsSorted(labels) || samples.Len() != 1 || len(series.GetUnknown()) > 0 {
			t.Errorf("series %v with %d samples", labels, samples.Len())
		}
		s := samples.Get(0).Message()
		name := strings.Join(labels, " ")
		if _, twice := points[name]; twice {
			t.Errorf("%s twice", name)
		}
		points[name] = point{field(s, "timestamp").Int(), field(s, "value").Float()}
	}
	return points
}

// TestSampling checks the samples of three intervals, of the end, and the marks behind it.
func TestSampling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(&bundle.Run{ID: "r", Name: "b", Engine: "local"})
		var bodies [][]byte
		start := time.Now()
		stop := m.Sampling(time.Second, time.Now, func(body []byte) { bodies = append(bodies, body) })
		for range 3 {
			m.Op(&op.Op{Action: "v", Kind: "create", Outcome: op.OK, Intended: 0, Started: 1e6, Ended: 3e6})
			time.Sleep(time.Second)
			synctest.Wait() // for the sample
		}
		stop() // at the instant of the third interval
		if len(bodies) != 5 {
			t.Fatalf("%d requests, want 5", len(bodies))
		}
		const count = "__name__=cnsbench_operations_total action=v kind=create outcome=ok run=r"
		const bucket = "__name__=cnsbench_operation_response_seconds_bucket action=v le=0.004 outcome=ok run=r"
		wantAt := []int64{1000, 2000, 3000, 3001, 3002}
		for i, want := range []float64{1, 2, 3, 3, math.NaN()} {
			points := decode(t, bodies[i])
			for _, name := range []string{count, bucket} {
				got, ok := points[name]
				if got.at -= start.UnixMilli(); !ok || got.at != wantAt[i] ||
					got.value != want && !(math.IsNaN(want) && math.Float64bits(got.value) == staleNaN) {
					t.Errorf("request %d: %s: %v, want %v at %d", i, name, got, want, wantAt[i])
				}
			}
			if i == 0 && points[strings.Replace(bucket, "0.004", "0.002", 1)].value != 0 {
				t.Errorf("3 ms are within 2 ms: %v", points)
			}
		}
	})
}

// TestSamplingOfMany checks that no request has more than 2000 series, and that none is lost.
func TestSamplingOfMany(t *testing.T) {
	m := New(&bundle.Run{ID: "r"})
	for i := range 1000 {
		m.Sample(op.Sample{Instance: "fio-" + string(rune('a'+i%26)) + time.Duration(i).String(), ReadBytes: 1})
	}
	var sizes []int
	m.Sampling(time.Hour, time.Now, func(body []byte) { sizes = append(sizes, len(decode(t, body))) })()
	if want := []int{2000, 2000, 2000, 1, 2000, 2000, 2000, 1}; !slices.Equal(sizes, want) {
		t.Errorf("requests with %v series, want %v", sizes, want)
	}
}
