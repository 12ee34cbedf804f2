// Package swift speaks OpenStack Swift on a pinned connection, with tokens of
// TempAuth (v1) and of Keystone (v2 and v3).
package swift

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/httpconn"
	"github.com/cnsbench/cnsbench/internal/object/payload"
	"github.com/cnsbench/cnsbench/internal/op"
)

// ownerHeader is the property of a container by which it is known as ours; it
// is set by the request that makes the container.
const ownerHeader = "X-Container-Meta-Cnsbench-Owner"

// Config of a store. Settings: timeout (ms), policy (a storage policy for new
// containers), storage_url (with Token, or to override what the token service
// says), cafile, no_verify_ssl. AuthKind: none, tempauth, keystone (the version
// as in auth_url), keystonev2, keystonev3.
type Config struct {
	Settings, Auth  map[string]string
	AuthKind        string
	Password, Token string
	Clock           op.Clock
}

// Store is an account of a Swift cluster.
type Store struct {
	config Config
	tokens *tokens
	at     *url.URL // a proxy server, in place of the storage URL's; nil: that one
	dial   string   // HOST:PORT that connections go to; empty: that of the URL
	routes *httpconn.Routes
}

// At is the same account, with the same tokens, by another proxy server: that of the address, which has no path, or the
// storage URL's if it is empty. dial, if not empty, is the HOST:PORT that connections go to in its place.
func (s *Store) At(address, dial string) (*Store, error) {
	one := *s
	one.routes = &httpconn.Routes{}
	if one.dial = dial; address == "" {
		return &one, nil
	}
	if _, _, err := client.Endpoint(address, s.config.Settings, s.config.Clock); err != nil {
		return nil, fmt.Errorf("swift: %w", err)
	}
	u, err := url.Parse(address)
	if err != nil || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("swift: endpoint %s has a path: the storage URL's is used", address)
	}
	one.at = u
	return &one, nil
}

// storageURL is that of a token, at this store's proxy server.
func (s *Store) storageURL(given string) string {
	u, err := url.Parse(given)
	if s.at == nil || err != nil {
		return given
	}
	u.Scheme, u.Host = s.at.Scheme, s.at.Host
	return u.String()
}

// Routes describes the connections of all clients to the storage.
func (s *Store) Routes() []string { return s.routes.Lines() }

// New checks the settings; nothing is sent.
func New(c Config) (*Store, error) {
	s := &Store{config: c, tokens: &tokens{config: c}, routes: &httpconn.Routes{}}
	if c.AuthKind == "" || c.AuthKind == "none" {
		if c.Token == "" || c.Settings["storage_url"] == "" {
			return nil, fmt.Errorf("swift: without auth it needs a token and a storage_url")
		}
		s.tokens.fixed = &access{token: c.Token, storageURL: c.Settings["storage_url"], opened: &atomic.Bool{}}
	}
	if _, err := client.Timeout(c.Settings["timeout"]); err != nil {
		return nil, fmt.Errorf("swift: %w", err)
	}
	if !client.Fits(c.Token+c.Settings["policy"]) || c.AuthKind == "tempauth" &&
		!client.Fits(c.Auth["username"]+c.Password) {
		return nil, fmt.Errorf("swift: the token, the policy, the user or the password has a line break or " +
			"another control character in it")
	}
	for _, address := range []string{c.Auth["auth_url"], c.Settings["storage_url"]} {
		if address == "" {
			continue
		}
		if _, _, err := client.Endpoint(address, c.Settings, c.Clock); err != nil {
			return nil, fmt.Errorf("swift: %w", err)
		}
	}
	return s, nil
}

// TokenRequests counts the requests that were sent for tokens, for all that share this account's.
func (s *Store) TokenRequests() int64 { return s.tokens.requests.Load() }

// Describe identifies the account, as far as it is known before the first token.
func (s *Store) Describe() string {
	if u := s.config.Settings["storage_url"]; u != "" {
		return "swift " + u
	}
	var how []string
	for _, key := range slices.Sorted(maps.Keys(s.config.Auth)) {
		how = append(how, key+"="+s.config.Auth[key])
	}
	return "swift by " + strings.Join(how, " ")
}

// Client of one worker. It has no connection until it has a token.
func (s *Store) Client() (client.Client, error) { return &adapter{store: s}, nil }

type adapter struct {
	store *Store
	http  *client.HTTP
	at    access // what http and base were made for
	base  []byte
	host  string

	stopped abortion
	lanes   client.Lanes // for parts of an object
	content client.Contents
}

func (c *adapter) Abort() {
	c.stopped.abort()
	c.lanes.Abort()
}

func (c *adapter) Close() {
	c.lanes.Close()
	c.disconnect()
}

func (c *adapter) disconnect() {
	if c.http != nil {
		c.http.Conn.Close()
	}
}

// Do executes r; where the token has expired, once more with a new one.
func (c *adapter) Do(ctx context.Context, r *client.Request, res *client.Result) {
	*res = client.Result{Started: op.Never, First: op.Never}
	began := c.store.config.Clock.Now()
	for again := range 2 {
		a, err := c.store.tokens.get(ctx, c.stopped.context())
		if err != nil {
			c.unauthorised(res, began, err)
			return
		}
		if err := c.connect(a); err != nil {
			c.unauthorised(res, began, err)
			return
		}
		c.execute(ctx, r, res)
		if res.Status != 401 && res.Failure == "" && !a.opened.Load() {
			a.opened.Store(true)
		}
		if res.Status != 401 || again > 0 || c.store.tokens.fixed != nil || !c.store.tokens.expired(a) {
			break
		}
	}
	res.Started = began // waiting for a token is part of it
}

// unauthorised fills res for an operation that got no token.
func (c *adapter) unauthorised(res *client.Result, began op.Time, err error) {
	res.Started, res.Ended, res.Detail = began, c.store.config.Clock.Now(), err.Error()
	res.Status, res.Failure = 0, httpconn.Unresolved
	var f *failure
	if asFailure(err, &f) {
		res.Status, res.Failure, res.Code = f.status, f.kind, f.code
	} else {
		res.Failure = httpconn.LocalFailed
	}
	if c.stopped.done() {
		res.Status, res.Failure, res.Code = 0, httpconn.Aborted, ""
	}
}

// connect makes the client one of a's storage.
func (c *adapter) connect(a access) error {
	if c.http != nil && a.storageURL == c.at.storageURL {
		c.at = a
		return nil
	}
	ep, base, err := client.Endpoint(c.store.storageURL(a.storageURL), c.store.config.Settings, c.store.config.Clock)
	if err != nil {
		return fmt.Errorf("swift: the token's storage URL: %w", err)
	}
	if c.store.dial != "" {
		ep.Address = c.store.dial
	}
	c.disconnect()
	ep.Routes = c.store.routes
	c.http, c.at, c.base, c.host = client.NewHTTP(ep), a, []byte(strings.TrimSuffix(base, "/")), ep.Host
	c.stopped.set(c.http.Conn)
	return nil
}

// head lays a request out. query is encoded.
func (c *adapter) head(method string, container, object []byte, query string) {
	b := append(append(c.http.X.Head[:0], method...), ' ')
	b = append(b, c.base...)
	b = escape(append(b, '/'), container)
	if len(object) > 0 {
		b = escape(append(b, '/'), object)
	}
	if query != "" {
		b = append(append(b, '?'), query...)
	}
	b = append(append(b, " HTTP/1.1\r\nHost: "...), c.host...)
	b = append(append(b, "\r\nX-Auth-Token: "...), c.at.token...)
	x := &c.http.X
	x.Head = append(b, "\r\n"...)
	x.Content, x.Size, x.Chunked, x.NoBody = nil, 0, false, method == "HEAD"
}

func (c *adapter) with(name, value string) {
	x := &c.http.X
	x.Head = append(append(append(append(x.Head, name...), ": "...), value...), "\r\n"...)
}

const unescaped = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~/"

func escape(b, text []byte) []byte {
	for _, ch := range text {
		if strings.IndexByte(unescaped, ch) >= 0 {
			b = append(b, ch)
		} else {
			b = append(b, '%', "0123456789ABCDEF"[ch>>4], "0123456789ABCDEF"[ch&15])
		}
	}
	return b
}

func (c *adapter) execute(ctx context.Context, r *client.Request, res *client.Result) {
	if o := r.Options; o != nil && (o.StorageClass != "" || o.Encryption != "" || o.Checksum != "" || o.ObjectLock) {
		res.NotOffered("this option", c.store.config.Clock.Now())
		return
	}
	switch r.Verb {
	case client.Get:
		c.head("GET", r.Container, r.Object, "")
		if r.Length >= 0 {
			c.with("Range", string(r.RangeHeader(nil)))
		}
		c.explained(c.http.Read(ctx, r, res), res)
	case client.Put:
		c.put(ctx, r, res)
	case client.PutParts:
		c.putParts(ctx, r, res)
	case client.Head:
		c.simple(ctx, "HEAD", r.Container, r.Object, res)
	case client.Delete:
		c.remove(ctx, r, res)
	case client.List:
		r.ListPages(res, func(q *client.Request, one *client.Result) bool { return c.list(ctx, q, one) })
	case client.Call:
		c.call(ctx, r, res)
	case client.Copy:
		if r.PartSize > 0 {
			c.copyParts(ctx, r, res)
			return
		}
		c.head("PUT", r.Container, r.To, "")
		c.with("X-Copy-From", copySource(r))
		c.with("Content-Length", "0")
		c.explained(c.http.Send(ctx, res, false), res)
	case client.MakeContainer:
		c.makeContainer(ctx, r, res)
	case client.RemoveContainer:
		c.removeContainer(ctx, r, res)
	case client.CheckOwner:
		c.checkOwner(ctx, r.Container, res)
	case client.ListUploads: // Swift has none: segments are objects
		c.simple(ctx, "HEAD", r.Container, nil, res)
	}
}

func (c *adapter) simple(ctx context.Context, method string, container, object []byte, res *client.Result) bool {
	c.head(method, container, object, "")
	return c.explained(c.http.Send(ctx, res, false), res)
}

func (c *adapter) put(ctx context.Context, r *client.Request, res *client.Result) {
	c.head("PUT", r.Container, r.Object, "")
	if r.Options != nil && r.Options.IfNoneMatch {
		c.with("If-None-Match", "*")
	}
	c.content = client.Contents{ID: r.ID()}
	x := &c.http.X
	x.Content, x.Size, x.Chunked = &c.content, r.Size, r.Chunked
	if r.File != nil {
		x.Content = r.File
	}
	if c.explained(c.http.Send(ctx, res, false), res) {
		res.Bytes = r.Size
	}
}

// segments separates the name of a large object from the write of a segment: two writes of one object share no
// segment.
const segments = "/.cnsbench-"

// segment reports whether an object is one that putParts made as a part of another.
func segment(name string) bool {
	_, rest, ok := strings.Cut(name, segments)
	if !ok || len(rest) != 25 || rest[16] != '/' {
		return false
	}
	return strings.Trim(rest[:16], "0123456789abcdef") == "" && strings.Trim(rest[17:], "0123456789") == ""
}

// putParts writes a static large object: segments below its own name, and a manifest that joins them. With Abandon the
// segments are removed instead.
func (c *adapter) putParts(ctx context.Context, r *client.Request, res *client.Result) {
	c.inParts(ctx, r, r.Object, res, func(k *adapter, name []byte, offset, size int64, one *client.Result) bool {
		k.head("PUT", r.Container, name, "")
		k.content = client.Contents{ID: r.ID(), Offset: offset}
		k.http.X.Content, k.http.X.Size, k.http.X.Chunked = &k.content, size, r.Chunked
		if !k.explained(k.http.Send(ctx, one, false), one) {
			return false
		}
		one.Bytes = size
		return true
	})
}

// copyParts copies an object within the server into segments of its own.
func (c *adapter) copyParts(ctx context.Context, r *client.Request, res *client.Result) {
	if !c.simple(ctx, "HEAD", r.Container, r.Object, res) {
		return
	}
	whole := *r
	whole.Size = max(0, c.http.X.Declared)
	c.inParts(ctx, &whole, r.To, res, func(k *adapter, name []byte, offset, size int64, one *client.Result) bool {
		k.head("PUT", r.Container, name, "")
		k.with("X-Copy-From", copySource(r))
		if whole.Size > 0 {
			k.with("Range", fmt.Sprintf("bytes=%d-%d", offset, offset+size-1))
		}
		k.with("Content-Length", "0")
		return k.explained(k.http.Send(ctx, one, false), one)
	})
	res.Bytes = 0 // no content was moved by this client
}

func copySource(r *client.Request) string {
	return string(escape(append(escape([]byte("/"), r.Container), '/'), r.Object))
}

// inParts makes an object of segments that send writes, by as many connections as r asks for. Segments of a write that
// failed or is abandoned are removed.
func (c *adapter) inParts(ctx context.Context, r *client.Request, object []byte, res *client.Result,
	send func(k *adapter, name []byte, offset, size int64, one *client.Result) bool) {
	lanes, err := c.lanes.Open(r, c, c.store.Client)
	for _, lane := range lanes[min(1, len(lanes)):] {
		err = errors.Join(err, lane.(*adapter).connect(c.at))
	}
	if err != nil {
		res.Failure, res.Detail, res.Ended = httpconn.LocalFailed, err.Error(), c.store.config.Clock.Now()
		return
	}
	segment := func(part int) string { return fmt.Sprintf("%s%s%016x/%08d", object, segments, r.Writer, part) }
	tags := make([]string, r.PartCount())
	sent := client.SendParts(lanes, r, res, func(lane client.Client, part int, one *client.Result) bool {
		k := lane.(*adapter)
		offset, size := r.PartRange(part)
		if !send(k, []byte(segment(part)), offset, size, one) {
			return false
		}
		tags[part-1] = strings.Trim(k.http.X.Header("etag"), `"`)
		return true
	})
	if !sent || r.Abandon {
		failed := *res
		dropped := r.Step(client.Abandon, res, func(one *client.Result) bool {
			for part := range tags {
				if tags[part] != "" && !c.simple(ctx, "DELETE", r.Container, []byte(segment(part+1)), one) {
					return false
				}
			}
			return true
		})
		if !sent {
			failed.Attempts = res.Attempts
			*res = failed
		} else if dropped {
			res.Bytes = r.Size
		}
		return
	}
	if r.Step(client.Complete, res, func(one *client.Result) bool {
		var manifest bytes.Buffer
		for part, tag := range tags {
			_, size := r.PartRange(part + 1)
			fmt.Fprintf(&manifest, `%c{"path":%q,"etag":%q,"size_bytes":%d}`, "[,"[min(part, 1)],
				string(r.Container)+"/"+segment(part+1), tag, size)
		}
		manifest.WriteByte(']')
		c.head("PUT", r.Container, object, "multipart-manifest=put")
		c.http.X.Content, c.http.X.Size = client.Text(manifest.Bytes()), int64(manifest.Len())
		return c.explained(c.http.Send(ctx, one, false), one)
	}) {
		res.Bytes = r.Size
	}
}

// list requests one page; a common prefix counts as a key.
func (c *adapter) list(ctx context.Context, r *client.Request, res *client.Result) bool {
	query := "limit=" + strconv.Itoa(r.MaxKeys)
	if r.Page != "" {
		query += "&marker=" + url.QueryEscape(r.Page)
	}
	if r.Options != nil && r.Options.Delimiter != "" {
		query += "&delimiter=" + url.QueryEscape(r.Options.Delimiter)
	}
	if len(r.Object) > 0 {
		query += "&prefix=" + url.QueryEscape(string(r.Object))
	}
	c.head("GET", r.Container, nil, query)
	c.with("Accept", "text/plain")
	if !c.explained(c.http.Send(ctx, res, true), res) {
		return false
	}
	res.Keys = bytes.Count(c.http.Answer, []byte("\n"))
	first, _, _ := bytes.Cut(c.http.Answer, []byte("\n")) // those with it as their prefix come behind it
	res.Listed = len(r.Object) > 0 && bytes.Equal(first, r.Object)
	if r.Names {
		res.Names = strings.Split(string(c.http.Answer), "\n")[:res.Keys]
	}
	if lines := bytes.TrimSuffix(c.http.Answer, []byte("\n")); res.Keys > 0 && res.Keys == r.MaxKeys {
		res.Next = string(lines[bytes.LastIndexByte(lines, '\n')+1:])
	}
	return true
}

// calls by the type of their operation in a workload. Another one is an entry here and one in model.Operations.
var calls = map[string]func(c *adapter, ctx context.Context, r *client.Request, res *client.Result){
	"deleteobjects": (*adapter).bulkDelete,
	"listversions":  (*adapter).listVersions,
	"readversion":   (*adapter).readVersion,
	"deleteversion": (*adapter).deleteVersion,
}

func (c *adapter) call(ctx context.Context, r *client.Request, res *client.Result) {
	if call := calls[r.Call]; call != nil {
		call(c, ctx, r, res)
		return
	}
	res.NotOffered(r.Call, c.store.config.Clock.Now())
}

// bulkDelete removes several objects by one request.
func (c *adapter) bulkDelete(ctx context.Context, r *client.Request, res *client.Result) {
	var names []byte
	for _, name := range r.Batch {
		names = append(escape(append(escape(names, r.Container), '/'), name), '\n')
	}
	c.head("POST", r.Container, nil, "bulk-delete")
	c.with("Content-Type", "text/plain")
	c.with("Accept", "text/plain")
	c.http.X.Content, c.http.X.Size = client.Text(names), int64(len(names))
	if !c.explained(c.http.Send(ctx, res, true), res) {
		return
	}
	_, deleted, ok := strings.Cut(string(c.http.Answer), "Number Deleted: ")
	if !ok { // a proxy server without that filter takes it for something else
		res.Status, res.Code, res.Detail = 501, client.NotOffered, "the server has no bulk delete"
		return
	}
	deleted, _, _ = strings.Cut(deleted, "\n")
	res.Keys, _ = strconv.Atoi(strings.TrimSpace(deleted))
	c.statusInAnswer(res)
}

// statusInAnswer replaces a status that is always 200 by that in the answer.
func (c *adapter) statusInAnswer(res *client.Result) {
	_, answer, _ := strings.Cut(string(c.http.Answer), "Response Status: ")
	if status, err := strconv.Atoi(answer[:min(3, len(answer))]); err != nil || status/100 != 2 {
		res.Status, res.Detail = max(status, 400), strings.TrimSpace(string(c.http.Answer[:min(len(c.http.Answer),
			200)]))
	}
}

// remove deletes an object. Swift deletes a manifest's segments only on request, and refuses that for objects without
// any.
func (c *adapter) remove(ctx context.Context, r *client.Request, res *client.Result) {
	if !r.Parts {
		c.simple(ctx, "DELETE", r.Container, r.Object, res)
		return
	}
	if !c.simple(ctx, "HEAD", r.Container, r.Object, res) {
		return
	}
	if c.http.X.Header("x-static-large-object") == "" {
		c.simple(ctx, "DELETE", r.Container, r.Object, res)
		return
	}
	c.head("DELETE", r.Container, r.Object, "multipart-manifest=delete")
	c.with("Accept", "text/plain")
	if !c.explained(c.http.Send(ctx, res, true), res) {
		return
	}
	c.statusInAnswer(res)
}

// removeContainer removes a marked container. Swift refuses that if there are objects in it; segments without an
// object, which was overwritten or whose write did not end, are removed before.
func (c *adapter) removeContainer(ctx context.Context, r *client.Request, res *client.Result) {
	if !c.checkOwner(ctx, r.Container, res) {
		return
	}
	if c.http.X.Header(strings.ToLower(versionsHeader)) != "" && !c.purge(ctx, r.Container, res) {
		return
	}
	for !c.simple(ctx, "DELETE", r.Container, nil, res) && res.Status == 409 {
		conflict := *res
		if !c.removeSegments(ctx, r.Container, res) {
			conflict.Ended, conflict.Attempts = res.Ended, res.Attempts
			*res = conflict
			return
		}
	}
}

// removeSegments removes remaining segments; false without any, or if the container has other objects. A listing has
// an object before its segments.
func (c *adapter) removeSegments(ctx context.Context, container []byte, res *client.Result) bool {
	c.head("GET", container, nil, "limit=1000")
	c.with("Accept", "text/plain")
	if !c.explained(c.http.Send(ctx, res, true), res) {
		return false
	}
	names := strings.FieldsFunc(string(c.http.Answer), func(r rune) bool { return r == '\n' })
	for _, name := range names {
		if !segment(name) {
			return false
		}
	}
	for _, name := range names {
		if !c.simple(ctx, "DELETE", container, []byte(name), res) && res.Status != 404 {
			return false
		}
	}
	return len(names) > 0
}

func (c *adapter) makeContainer(ctx context.Context, r *client.Request, res *client.Result) {
	if c.simple(ctx, "HEAD", r.Container, nil, res) {
		res.Code = client.Existed
		return
	}
	if res.Status != 404 {
		return
	}
	c.head("PUT", r.Container, nil, "")
	c.with(ownerHeader, client.Mark)
	if r.Options != nil && r.Options.Versioning {
		c.with(versionsHeader, "true")
	}
	if p := c.store.config.Settings["policy"]; p != "" {
		c.with("X-Storage-Policy", p)
	}
	c.with("Content-Length", "0")
	c.explained(c.http.Send(ctx, res, false), res)
}

func (c *adapter) checkOwner(ctx context.Context, container []byte, res *client.Result) bool {
	if !c.simple(ctx, "HEAD", container, nil, res) {
		return false
	}
	if !strings.HasPrefix(c.http.X.Header(strings.ToLower(ownerHeader)), client.Mark) {
		res.Status, res.Code = 404, client.NotOurs
		return false
	}
	return true
}

// explained reports whether there is no error; what Swift writes about one is for people.
func (c *adapter) explained(answered bool, res *client.Result) bool {
	if !answered {
		return false
	}
	if res.Status >= 200 && res.Status < 300 {
		return res.Violation == payload.Sound
	}
	c.http.Explain(res)
	return false
}
