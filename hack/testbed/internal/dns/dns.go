// Package dns answers for the services of the cluster, so that pods find them by name:
// SERVICE.NAMESPACE.svc.cluster.local,
// headless ones and their pods with a host name too. Nothing else exists: there is no way out of the test bed.
package dns

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/cnsbench/cnsbench/hack/testbed/internal/api"
)

const (
	zone = "svc.cluster.local."
	// fresh is how old an answer may be; nothing is asked while nobody asks us.
	fresh = 500 * time.Millisecond
	ttl   = 1
)

// Names maps a lower-case name, without the zone, to its addresses.
type Names map[string][][4]byte

// Server answers over UDP.
type Server struct {
	client *api.Client

	mu    sync.Mutex
	names Names
	at    time.Time
}

// New makes a server that reads services with a client.
func New(client *api.Client) *Server { return &Server{client: client} }

// Serve answers until ctx ends.
func (s *Server) Serve(ctx context.Context, listen string) error {
	var config net.ListenConfig
	conn, err := config.ListenPacket(ctx, "udp4", listen)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	buffer := make([]byte, 4096)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		query := append([]byte(nil), buffer[:n]...)
		go func() {
			names, err := s.current(ctx)
			if reply := Answer(query, names, err != nil); reply != nil {
				_, _ = conn.WriteTo(reply, from) // one that is lost is asked again
			}
		}()
	}
}

func (s *Server) current(ctx context.Context) (Names, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.at) < fresh {
		return s.names, nil
	}
	var services api.List[Service]
	var slices api.List[Slice]
	err := errors.Join(s.client.Get(ctx, "/api/v1/services", &services),
		s.client.Get(ctx, "/apis/discovery.k8s.io/v1/endpointslices", &slices))
	if err != nil {
		return nil, err
	}
	s.names, s.at = Collect(services.Items, slices.Items), time.Now()
	return s.names, nil
}

// Service is what is read of a Service.
type Service struct {
	Metadata api.Meta `json:"metadata"`
	Spec     struct {
		ClusterIP string `json:"clusterIP"`
	} `json:"spec"`
}

// Slice is what is read of an EndpointSlice.
type Slice struct {
	Metadata  api.Meta `json:"metadata"`
	Endpoints []struct {
		Addresses  []string `json:"addresses"`
		Hostname   string   `json:"hostname"`
		Conditions struct {
			Ready *bool `json:"ready"`
		} `json:"conditions"`
	} `json:"endpoints"`
}

// Collect makes the names from what the API server knows.
func Collect(services []Service, slices []Slice) Names {
	names := Names{}
	headless := map[string]bool{}
	for _, s := range services {
		name := s.Metadata.Name + "." + s.Metadata.Namespace
		if names[name] = nil; s.Spec.ClusterIP == "None" {
			headless[name] = true
		} else {
			names.add(name, s.Spec.ClusterIP)
		}
	}
	for _, s := range slices {
		name := s.Metadata.Labels["kubernetes.io/service-name"] + "." + s.Metadata.Namespace
		for _, e := range s.Endpoints {
			if !headless[name] || e.Conditions.Ready != nil && !*e.Conditions.Ready {
				continue
			}
			for _, addr := range e.Addresses {
				names.add(name, addr)
				if e.Hostname != "" {
					names.add(e.Hostname+"."+name, addr)
				}
			}
		}
	}
	return names
}

func (n Names) add(name, addr string) {
	if ip := net.ParseIP(addr).To4(); ip != nil {
		n[name] = append(n[name], [4]byte(ip))
	}
}

// Answer makes the reply to a query; nil when that cannot be understood. Down says that the names cannot be known.
func Answer(query []byte, names Names, down bool) []byte {
	var p dnsmessage.Parser
	h, err := p.Start(query)
	if err != nil || h.Response {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	addrs, known := names[strings.TrimSuffix(strings.ToLower(q.Name.String()), "."+zone)]
	reply := dnsmessage.Header{ID: h.ID, Response: true, Authoritative: true, RecursionDesired: h.RecursionDesired,
		RecursionAvailable: true}
	switch {
	case down:
		reply.RCode = dnsmessage.RCodeServerFailure
	case !known:
		reply.RCode = dnsmessage.RCodeNameError
	}
	b := dnsmessage.NewBuilder(nil, reply)
	if b.StartQuestions() != nil || b.Question(q) != nil || b.StartAnswers() != nil {
		return nil
	}
	for _, a := range addrs {
		if q.Type != dnsmessage.TypeA && q.Type != dnsmessage.TypeALL {
			break // the name exists, and has none of these
		}
		header := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: ttl}
		if b.AResource(header, dnsmessage.AResource{A: a}) != nil {
			return nil
		}
	}
	text, err := b.Finish()
	if err != nil {
		return nil
	}
	return text
}
