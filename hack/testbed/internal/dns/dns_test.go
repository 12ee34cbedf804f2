package dns

import (
	"encoding/json"
	"net"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

func names(t *testing.T) Names {
	t.Helper()
	var services []Service
	var slices []Slice
	for text, to := range map[string]any{
		`[{"metadata": {"name": "results", "namespace": "bench"}, "spec": {"clusterIP": "10.0.0.7"}},
		  {"metadata": {"name": "db", "namespace": "bench"}, "spec": {"clusterIP": "None"}},
		  {"metadata": {"name": "none", "namespace": "bench"}, "spec": {"clusterIP": ""}}]`: &services,
		`[{"metadata": {"namespace": "bench", "labels": {"kubernetes.io/service-name": "db"}},
		   "endpoints": [{"addresses": ["10.88.1.5"], "hostname": "db-0"}, {"addresses": ["10.88.2.5"], "conditions": {"ready": false}}]},
		  {"metadata": {"namespace": "bench", "labels": {"kubernetes.io/service-name": "results"}}, "endpoints": [{"addresses": ["10.88.1.9"]}]}]`: &slices,
	} {
		if err := json.Unmarshal([]byte(text), to); err != nil {
			t.Fatal(err)
		}
	}
	return Collect(services, slices)
}

func TestAnswer(t *testing.T) {
	tests := []struct {
		name  string
		kind  dnsmessage.Type
		down  bool
		want  string
		rcode dnsmessage.RCode
	}{
		{name: "results.bench.svc.cluster.local.", kind: dnsmessage.TypeA, want: "10.0.0.7"},
		{name: "Results.Bench.svc.cluster.local.", kind: dnsmessage.TypeA, want: "10.0.0.7"},
		{name: "results.bench.svc.cluster.local.", kind: dnsmessage.TypeAAAA},
		{name: "db.bench.svc.cluster.local.", kind: dnsmessage.TypeA, want: "10.88.1.5"},
		{name: "db-0.db.bench.svc.cluster.local.", kind: dnsmessage.TypeA, want: "10.88.1.5"},
		{name: "none.bench.svc.cluster.local.", kind: dnsmessage.TypeA},
		{name: "results.other.svc.cluster.local.", kind: dnsmessage.TypeA, rcode: dnsmessage.RCodeNameError},
		{name: "example.org.", kind: dnsmessage.TypeA, rcode: dnsmessage.RCodeNameError},
		{name: "results.bench.svc.cluster.local.", kind: dnsmessage.TypeA, down: true,
			rcode: dnsmessage.RCodeServerFailure},
	}
	for _, tt := range tests {
		t.Run(tt.name+tt.kind.String(), func(t *testing.T) {
			query := dnsmessage.Message{Header: dnsmessage.Header{ID: 7}, Questions: []dnsmessage.Question{
				{Name: dnsmessage.MustNewName(tt.name), Type: tt.kind, Class: dnsmessage.ClassINET}}}
			text, err := query.Pack()
			if err != nil {
				t.Fatal(err)
			}
			known := names(t)
			if tt.down {
				known = nil
			}
			var reply dnsmessage.Message
			if err := reply.Unpack(Answer(text, known, tt.down)); err != nil {
				t.Fatal(err)
			}
			if reply.ID != 7 || reply.RCode != tt.rcode {
				t.Errorf("id %d, code %v; want 7, %v", reply.ID, reply.RCode, tt.rcode)
			}
			got := ""
			for _, a := range reply.Answers {
				r := a.Body.(*dnsmessage.AResource)
				got += net.IP(r.A[:]).String()
			}
			if got != tt.want {
				t.Errorf("answered %q, want %q", got, tt.want)
			}
		})
	}
	if Answer([]byte("nonsense"), nil, false) != nil {
		t.Error("nonsense is answered")
	}
}
