// Package spread makes one store of several endpoints: workers, or their operations, are spread over them. It notices
// when an endpoint no longer serves, and leaves it out if that is wanted.
package spread

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/httpconn"
	"github.com/cnsbench/cnsbench/internal/op"
)

// The settings of a store with several endpoints, as a workload has them. All are optional.
const (
	Endpoints = "endpoints"           // URLs, separated by commas
	Addresses = "addresses"           // any or all: of those that a name resolves to
	By        = "spread"              // worker or request
	OnFailure = "on_endpoint_failure" // keep, leaveOut or leaveOutWhileDown
)

// Keys are all settings of this package.
var Keys = []string{Endpoints, Addresses, By, OnFailure}

// The values of settings; the first of each is the default.
const (
	AnyAddress        = "any"
	AllAddresses      = "all"
	ByWorker          = "worker"
	ByRequest         = "request"
	Keep              = "keep"
	LeaveOut          = "leaveOut"
	LeaveOutWhileDown = "leaveOutWhileDown"
)

// resolveTime bounds the time in which a name is resolved.
const resolveTime = 10 * time.Second

// maxEndpoints bounds a list: each has figures of its own.
const maxEndpoints = 256

// Config of a store.
type Config struct {
	Settings map[string]string
	URLs     []string // of the endpoints, in order
	// Open makes the store of one endpoint and sends nothing. dial, if not empty, is the HOST:PORT that connections go
	// to in place of the URL's.
	Open  func(url, dial string) (client.Store, error)
	Clock op.Clock
}

// List returns the URLs of a store's settings: those of Endpoints, or else the one of the key single.
func List(settings map[string]string, single string) ([]string, error) {
	text := settings[Endpoints]
	if text == "" {
		return []string{settings[single]}, nil
	}
	if settings[single] != "" {
		return nil, fmt.Errorf("%s and %s exclude each other", single, Endpoints)
	}
	var urls []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			urls = append(urls, part)
		}
	}
	if len(urls) == 0 {
		return nil, fmt.Errorf("%s has no address", Endpoints)
	}
	return urls, nil
}

// Connections returns how many connections a worker may keep at the same time: one to each endpoint that it uses. The
// addresses of a name are not known before it is resolved, and count once.
func Connections(settings map[string]string) int {
	urls, err := List(settings, "")
	if err != nil || settings[By] != ByRequest && cmp.Or(settings[OnFailure], Keep) == Keep {
		return 1
	}
	return len(urls)
}

// Store is a client.Store of several endpoints, or of one.
type Store struct {
	config  Config
	first   client.Store // for Describe
	all     bool         // addresses of a name
	request bool         // spread by request
	policy  string

	once      sync.Once
	endpoints []endpoint
	failed    error
	healths   *Healths
}

// endpoint is one of a store's.
type endpoint struct {
	name   string
	store  client.Store
	health *health
}

// New checks the settings; nothing is resolved or sent.
func New(c Config) (*Store, error) {
	s := &Store{config: c, policy: cmp.Or(c.Settings[OnFailure], Keep), healths: &Healths{}}
	for _, o := range []struct {
		key, off, on string
		to           *bool
	}{{Addresses, AnyAddress, AllAddresses, &s.all}, {By, ByWorker, ByRequest, &s.request}} {
		switch v := c.Settings[o.key]; v {
		case "", o.off:
		case o.on:
			*o.to = true
		default:
			return nil, fmt.Errorf("invalid %s=%s: want %s or %s", o.key, v, o.off, o.on)
		}
	}
	if !slices.Contains([]string{Keep, LeaveOut, LeaveOutWhileDown}, s.policy) {
		return nil, fmt.Errorf("invalid %s=%s: want %s, %s or %s", OnFailure, s.policy, Keep, LeaveOut,
			LeaveOutWhileDown)
	}
	if len(c.URLs) > maxEndpoints {
		return nil, fmt.Errorf("%d endpoints are too many: at most %d", len(c.URLs), maxEndpoints)
	}
	for i, u := range c.URLs {
		one, err := c.Open(u, "")
		if err != nil {
			return nil, err
		}
		if i == 0 {
			s.first = one
		}
		if slices.Contains(c.URLs[:i], u) {
			return nil, fmt.Errorf("endpoint %s occurs twice", u)
		}
	}
	if s.first == nil {
		return nil, errors.New("there is no endpoint")
	}
	return s, nil
}

// Share has s use the healths of other stores with the same endpoints: what one work has noticed the next one knows.
// It is called before the first client is made.
func (s *Store) Share(h *Healths) { s.healths = h }

// Describe identifies the store by its first endpoint: all endpoints of a list lead to the same containers.
func (s *Store) Describe() string { return s.first.Describe() }

// TokenRequests counts the requests that were sent for tokens; 0 for stores without.
func (s *Store) TokenRequests() int64 {
	if x, ok := s.first.(interface{ TokenRequests() int64 }); ok {
		return x.TokenRequests()
	}
	return 0
}

// Routes describes the connections to all endpoints.
func (s *Store) Routes() []string {
	var lines []string
	for i := range s.endpoints {
		if r, ok := s.endpoints[i].store.(client.Router); ok {
			lines = append(lines, r.Routes()...)
		}
	}
	return lines
}

// Names are those of the endpoints, in order: HOST:PORT, with the path if there is one. It resolves them.
func (s *Store) Names() ([]string, error) {
	if err := s.resolve(); err != nil {
		return nil, err
	}
	var names []string
	for i := range s.endpoints {
		names = append(names, s.endpoints[i].name)
	}
	return names, nil
}

// resolve makes the endpoints, once.
func (s *Store) resolve() error {
	s.once.Do(func() {
		for _, u := range s.config.URLs {
			if s.failed = s.add(u); s.failed != nil {
				return
			}
		}
		if n := len(s.endpoints); n > maxEndpoints {
			s.failed = fmt.Errorf("%d endpoints are too many: at most %d", n, maxEndpoints)
		}
	})
	return s.failed
}

// add adds the endpoint of a URL, or one for each address of its name.
func (s *Store) add(text string) error {
	u, err := url.Parse(text)
	if err != nil {
		return fmt.Errorf("endpoint: %w", err)
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	dials := []string{""}
	if s.all && u.Hostname() != "" {
		ctx, cancel := context.WithTimeout(context.Background(), resolveTime)
		addresses, err := net.DefaultResolver.LookupHost(ctx, u.Hostname())
		cancel()
		if err != nil {
			return fmt.Errorf("endpoint %s: %w", text, err)
		}
		dials = nil
		slices.Sort(addresses)
		for _, a := range slices.Compact(addresses) {
			dials = append(dials, net.JoinHostPort(a, port))
		}
	}
	for _, dial := range dials {
		one, err := s.config.Open(text, dial)
		if err != nil {
			return err
		}
		name := cmp.Or(dial, u.Host) + strings.TrimSuffix(u.EscapedPath(), "/")
		if slices.ContainsFunc(s.endpoints, func(e endpoint) bool { return e.name == name }) {
			return fmt.Errorf("endpoint %s occurs twice", name)
		}
		s.endpoints = append(s.endpoints, endpoint{name, one, s.healths.of(s.first.Describe(), name)})
	}
	return nil
}

// Client of a worker whose number does not matter.
func (s *Store) Client() (client.Client, error) { return s.ClientOf(0) }

// ClientOf a worker, by its number among all workers of the work, on whatever host.
func (s *Store) ClientOf(worker int) (client.Client, error) {
	if err := s.resolve(); err != nil {
		return nil, err
	}
	n := len(s.endpoints)
	c := &adapter{store: s, clients: make([]client.Client, n), home: worker % n}
	c.next = c.home
	_, err := c.client(c.home)
	return c, err
}

// adapter is a worker's access to all endpoints. It connects to one when it first uses it.
type adapter struct {
	store *Store
	home  int // endpoint of the worker
	next  int // spread by request: the endpoint of the next operation

	mu      sync.Mutex // guards clients and aborted against Abort
	clients []client.Client
	aborted bool
}

// client of an endpoint. Only the worker itself writes the list, so that it reads it without the lock.
func (c *adapter) client(i int) (client.Client, error) {
	if one := c.clients[i]; one != nil {
		return one, nil
	}
	one, err := c.store.endpoints[i].store.Client()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.clients[i] = one; c.aborted {
		one.Abort()
	}
	return one, nil
}

// Do executes r at one endpoint, with all its requests.
func (c *adapter) Do(ctx context.Context, r *client.Request, res *client.Result) {
	i := c.choose()
	one := c.clients[i]
	if one == nil {
		var err error
		if one, err = c.client(i); err != nil {
			now := c.store.config.Clock.Now()
			*res = client.Result{Failure: httpconn.LocalFailed, Detail: err.Error(), Started: now, First: op.Never, Ended: now,
				Endpoint: i}
			return
		}
	}
	one.Do(ctx, r, res)
	res.Endpoint = i
	c.store.endpoints[i].health.note(res)
}

// choose returns the endpoint of the next operation: the worker's, or the next in turn, and in place of one that is
// left out the next that is not. If all are, none is.
func (c *adapter) choose() int {
	s := c.store
	n := len(s.endpoints)
	i := c.home
	if s.request {
		i = c.next
		if c.next++; c.next == n {
			c.next = 0
		}
	}
	if s.policy == Keep || n == 1 {
		return i
	}
	for k := range n {
		at := (i + k) % n
		if s.endpoints[at].health.open(s.policy == LeaveOutWhileDown, s.config.Clock) {
			return at
		}
	}
	return i
}

func (c *adapter) Abort() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.aborted = true
	for _, one := range c.clients {
		if one != nil {
			one.Abort()
		}
	}
}

func (c *adapter) Close() {
	for _, one := range c.clients {
		if one != nil {
			one.Close()
		}
	}
}
