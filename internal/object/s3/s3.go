// Package s3 speaks S3: requests signed by version 4 (2 on request) on a
// pinned connection, without a library between the clock and the wire.
package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html"
	"strconv"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/httpconn"
	"github.com/cnsbench/cnsbench/internal/object/payload"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Credentials of an account. With the zero value requests are anonymous.
type Credentials struct{ AccessKey, SecretKey, SessionToken string }

// String keeps them out of logs.
func (c Credentials) String() string { return "credentials" }

// Config of a store. Settings are those of COSBench's config string: endpoint,
// region (us-east-1), path_style_access (true), timeout (ms), signature (v4 or
// v2), payload (unsigned or signed), cafile, no_verify_ssl.
type Config struct {
	Settings    map[string]string
	Credentials Credentials
	Clock       op.Clock
	Now         client.Now // nil: time.Now
	// Dial, if not empty, is the HOST:PORT that connections go to, in place of the endpoint's.
	Dial string
}

// Store is an S3 endpoint.
type Store struct {
	config      Config
	endpoint    httpconn.Endpoint
	base        string // path before the bucket
	region      string
	virtualHost bool
	v2, signed  bool
}

// New checks the settings; nothing is sent.
func New(c Config) (*Store, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	ep, base, err := client.Endpoint(c.Settings["endpoint"], c.Settings, c.Clock)
	if err != nil {
		return nil, fmt.Errorf("s3: %w", err)
	}
	if c.Dial != "" {
		ep.Address = c.Dial
	}
	ep.Routes = &httpconn.Routes{}
	s := &Store{config: c, endpoint: ep, base: strings.TrimSuffix(base, "/"), region: c.Settings["region"]}
	if s.region == "" {
		s.region = "us-east-1"
	}
	for _, o := range []struct {
		key, off, on string
		to           *bool
	}{
		{"path_style_access", "true", "false", &s.virtualHost}, {"signature", "v4", "v2", &s.v2},
		{"payload", "unsigned", "signed", &s.signed},
	} {
		switch v := c.Settings[o.key]; v {
		case "", o.off:
		case o.on:
			*o.to = true
		default:
			return nil, fmt.Errorf("s3: %s=%s: there are %s and %s", o.key, v, o.off, o.on)
		}
	}
	if (c.Credentials.AccessKey == "") != (c.Credentials.SecretKey == "") {
		return nil, fmt.Errorf("s3: an access key and a secret key belong together, and only one of them is given")
	}
	if !client.Fits(c.Credentials.AccessKey + c.Credentials.SessionToken + s.region) {
		return nil, fmt.Errorf("s3: the access key, the session token or the region has a line break or another " +
			"control character in it")
	}
	return s, nil
}

// Describe names the endpoint and the account: a server may have different buckets for each.
func (s *Store) Describe() string {
	if s.config.Credentials.AccessKey == "" {
		return fmt.Sprintf("s3 %s (anonymous)", s.config.Settings["endpoint"])
	}
	return fmt.Sprintf("s3 %s (account %.4x)", s.config.Settings["endpoint"],
		sha256.Sum256([]byte(s.config.Credentials.AccessKey)))
}

// Routes describes the connections of all clients.
func (s *Store) Routes() []string { return s.endpoint.Routes.Lines() }

// Client of one worker.
func (s *Store) Client() (client.Client, error) {
	c := s.config.Credentials
	return &adapter{store: s, HTTP: client.NewHTTP(s.endpoint),
		sign: signer{region: s.region, access: c.AccessKey, secret: c.SecretKey, token: c.SessionToken}}, nil
}

type adapter struct {
	*client.HTTP
	store *Store
	sign  signer

	host, path, query, resource, scratch []byte

	extra   []header
	content client.Contents
	hash    string // of the payload, where it is signed
}

func (c *adapter) Abort() { c.Conn.Abort() }

func (c *adapter) Close() { c.Conn.Close() }

// address sets host, path and resource of a request. Whatever the host, the
// connection is the one to the endpoint: a worker needs no other for each bucket.
func (c *adapter) address(container, object []byte) {
	c.host = c.host[:0]
	c.path = append(c.path[:0], c.store.base...)
	c.resource = append(append(c.resource[:0], '/'), container...)
	if c.store.virtualHost {
		c.host = append(append(c.host, container...), '.')
	} else {
		c.path = encode(append(c.path, '/'), container, true)
	}
	c.host = append(c.host, c.store.endpoint.Host...)
	if len(object) > 0 || c.store.virtualHost {
		c.path = encode(append(c.path, '/'), object, false)
	}
	if len(object) > 0 {
		c.resource = encode(append(c.resource, '/'), object, false)
	} else if c.store.virtualHost {
		c.resource = append(c.resource, '/')
	}
	c.query, c.extra, c.hash = c.query[:0], c.extra[:0], emptyHash
}

// head lays the request out; address, query, extra and hash are set.
func (c *adapter) head(method string) {
	x := &c.X
	now := c.store.config.Now()
	switch {
	case c.sign.access == "":
		x.Head = appendRequestLine(x.Head[:0], method, c.path, c.query)
		x.Head = append(append(append(x.Head, "Host: "...), c.host...), "\r\n"...)
		x.Head = appendFields(x.Head, c.extra)
	case c.store.v2:
		x.Head = c.sign.sign2(x.Head[:0], now, method, c.host, c.path, c.query, c.resource, c.extra)
	default:
		if c.sign.token != "" {
			c.extra = append(c.extra, header{"x-amz-security-token", c.sign.token})
		}
		x.Head = c.sign.sign4(x.Head[:0], now, method, c.host, c.path, c.query, c.hash, c.extra)
	}
	x.Content, x.Size, x.Chunked, x.NoBody = nil, 0, false, method == "HEAD"
}

// with adds an unsigned header.
func (c *adapter) with(name, value string) {
	c.X.Head = append(append(append(append(c.X.Head, name...), ": "...), value...), "\r\n"...)
}

// simple sends a request without a body.
func (c *adapter) simple(ctx context.Context, method string, container, object []byte, res *client.Result) bool {
	c.address(container, object)
	c.head(method)
	if method == "PUT" || method == "POST" {
		c.with("Content-Length", "0")
	}
	return c.explained(c.Send(ctx, res, false), res)
}

// Do executes r.
func (c *adapter) Do(ctx context.Context, r *client.Request, res *client.Result) {
	c.Begin(res)
	if c.store.virtualHost && !hostLabel(r.Container) {
		c.refuse(res, "a bucket of this name cannot be part of a host's name: set path_style_access=true")
		return
	}
	switch r.Verb {
	case client.Get:
		c.get(ctx, r, res)
	case client.Put:
		c.put(ctx, r, res)
	case client.PutParts:
		c.putParts(ctx, r, res)
	case client.Head:
		c.simple(ctx, "HEAD", r.Container, r.Object, res)
	case client.Delete:
		c.simple(ctx, "DELETE", r.Container, r.Object, res)
	case client.List:
		c.list(ctx, r, res)
	case client.Copy:
		c.copy(ctx, r, res)
	case client.MakeContainer:
		c.makeContainer(ctx, r, res)
	case client.RemoveContainer:
		c.removeContainer(ctx, r, res)
	case client.CheckOwner:
		c.checkOwner(ctx, r.Container, res)
	}
}

// refuse fills res for what is not even sent.
func (c *adapter) refuse(res *client.Result, why string) {
	*res = client.Result{Failure: httpconn.LocalFailed, Detail: why, First: op.Never,
		Started: c.store.config.Clock.Now()}
	res.Ended = res.Started
}

// hostLabel reports whether a bucket's name is a valid part of a host's name.
func hostLabel(name []byte) bool {
	for _, c := range name {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_') {
			return false
		}
	}
	return len(name) > 0
}

func (c *adapter) get(ctx context.Context, r *client.Request, res *client.Result) {
	c.address(r.Container, r.Object)
	c.head("GET")
	if r.Length >= 0 {
		b := strconv.AppendInt(append(c.X.Head, "Range: bytes="...), r.Offset, 10)
		b = strconv.AppendInt(append(b, '-'), r.Offset+r.Length-1, 10)
		c.X.Head = append(b, "\r\n"...)
	}
	c.explained(c.Read(ctx, r, res), res)
}

func (c *adapter) put(ctx context.Context, r *client.Request, res *client.Result) {
	if r.Chunked {
		// S3 takes no chunks of HTTP; its own are another format.
		c.refuse(res, "chunked uploads are not part of S3")
		return
	}
	c.content = client.Contents{ID: r.ID()}
	content := httpconn.Content(&c.content)
	if r.File != nil {
		content = r.File
	}
	c.address(r.Container, r.Object)
	if !c.hashed(content, r.Size, res) {
		return
	}
	c.head("PUT")
	c.X.Content, c.X.Size = content, r.Size
	if c.explained(c.Send(ctx, res, false), res) {
		res.Bytes = r.Size
	}
}

// hashed computes the hash of the payload, where it is signed.
func (c *adapter) hashed(content httpconn.Content, size int64, res *client.Result) bool {
	if c.hash = unsignedHash; !c.store.signed {
		return true
	}
	if !res.Started.Known() { // hashing is part of sending
		res.Started = c.store.config.Clock.Now()
	}
	if c.scratch == nil {
		c.scratch = make([]byte, 64<<10)
	}
	h := sha256.New()
	for offset := int64(0); offset < size; {
		n := min(int64(len(c.scratch)), size-offset)
		if err := content.Read(c.scratch[:n], offset); err != nil {
			res.Failure, res.Detail = httpconn.LocalFailed, err.Error()
			res.Ended = c.store.config.Clock.Now()
			return false
		}
		h.Write(c.scratch[:n])
		offset += n
	}
	c.hash = hex.EncodeToString(h.Sum(nil))
	return true
}

func (c *adapter) list(ctx context.Context, r *client.Request, res *client.Result) {
	c.address(r.Container, nil)
	c.query = append(c.query, "list-type=2&max-keys="...)
	c.query = strconv.AppendInt(c.query, int64(r.MaxKeys), 10)
	if len(r.Object) > 0 {
		c.query = encode(append(c.query, "&prefix="...), r.Object, true)
	}
	c.head("GET")
	if !c.explained(c.Send(ctx, res, true), res) {
		return
	}
	res.Keys = bytes.Count(c.Answer, []byte("<Key>"))
	res.Listed = listed(c.Answer, r.Object)
	if r.Names {
		res.Names = names(c.Answer)
	}
	if !bytes.Contains(c.Answer, []byte("<ListBucketResult")) {
		res.Status, res.Failure, res.Detail = 0, httpconn.Garbage, "the answer is no listing"
	}
}

// names are the keys of a listing.
func names(answer []byte) (all []string) {
	for {
		_, rest, ok := bytes.Cut(answer, []byte("<Key>"))
		key, rest, whole := bytes.Cut(rest, []byte("</Key>"))
		if !ok || !whole {
			return all
		}
		all, answer = append(all, html.UnescapeString(string(key))), rest
	}
}

// listed reports whether a listing has a key. Those with the key as their prefix come behind it, so that it can only
// be the first.
func listed(answer, key []byte) bool {
	if len(key) == 0 {
		return false
	}
	first, ok := element(answer, "Key")
	return ok && first == string(key)
}

func (c *adapter) copy(ctx context.Context, r *client.Request, res *client.Result) {
	c.address(r.Container, r.To)
	source := encode(append(encode([]byte("/"), r.Container, true), '/'), r.Object, false)
	c.extra = append(c.extra, header{"x-amz-copy-source", string(source)})
	c.head("PUT")
	c.with("Content-Length", "0")
	if c.explained(c.Send(ctx, res, true), res) {
		c.lateError(res)
	}
}

// lateError finds the error that S3 may send behind a status of 200, when the
// work began before it failed.
func (c *adapter) lateError(res *client.Result) {
	if bytes.Contains(c.Answer, []byte("<Error>")) {
		res.Status = 500
		c.explained(true, res)
	}
}

func (c *adapter) putParts(ctx context.Context, r *client.Request, res *client.Result) {
	c.address(r.Container, r.Object)
	c.query = append(c.query, "uploads="...)
	c.head("POST")
	c.with("Content-Length", "0")
	if !c.explained(c.Send(ctx, res, true), res) {
		return
	}
	id, ok := element(c.Answer, "UploadId")
	if !ok {
		res.Status, res.Failure, res.Detail = 0, httpconn.Garbage, "the answer names no upload"
		return
	}
	var done bytes.Buffer
	done.WriteString("<CompleteMultipartUpload>")
	for part, offset := 1, int64(0); offset < r.Size || part == 1; part++ {
		size := min(r.PartSize, r.Size-offset)
		tag, ok := c.part(ctx, r, id, part, offset, size, res)
		if !ok {
			c.abandon(ctx, r, id, res)
			return
		}
		fmt.Fprintf(&done, "<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>", part, tag)
		offset += size
	}
	done.WriteString("</CompleteMultipartUpload>")
	c.address(r.Container, r.Object)
	c.query = encode(append(c.query, "uploadId="...), []byte(id), true)
	text := client.Text(done.Bytes())
	if !c.hashed(text, int64(len(text)), res) {
		return
	}
	c.head("POST")
	c.X.Content, c.X.Size = text, int64(len(text))
	if c.explained(c.Send(ctx, res, true), res) {
		res.Bytes = r.Size
		c.lateError(res)
	}
}

func (c *adapter) part(ctx context.Context, r *client.Request, id string, part int, offset, size int64,
	res *client.Result) (tag string, ok bool) {
	c.address(r.Container, r.Object)
	c.query = strconv.AppendInt(append(c.query, "partNumber="...), int64(part), 10)
	c.query = encode(append(c.query, "&uploadId="...), []byte(id), true)
	c.content = client.Contents{ID: r.ID(), Offset: offset}
	if !c.hashed(&c.content, size, res) {
		return "", false
	}
	c.head("PUT")
	c.X.Content, c.X.Size = &c.content, size
	if !c.explained(c.Send(ctx, res, false), res) {
		return "", false
	}
	return c.X.Header("etag"), true
}

// abandon gives up an upload that failed, so that its parts do not stay. What
// went wrong before is what counts.
func (c *adapter) abandon(ctx context.Context, r *client.Request, id string, res *client.Result) {
	failed := *res
	c.address(r.Container, r.Object)
	c.query = encode(append(c.query, "uploadId="...), []byte(id), true)
	c.head("DELETE")
	c.Send(ctx, res, false)
	failed.Attempts = res.Attempts
	*res = failed
}

// makeContainer marks what it has made, and nothing else.
func (c *adapter) makeContainer(ctx context.Context, r *client.Request, res *client.Result) {
	if c.simple(ctx, "HEAD", r.Container, nil, res) {
		res.Code = client.Existed
		return
	}
	if res.Status != 404 {
		c.askWhy(ctx, r.Container, res)
		return
	}
	c.address(r.Container, nil)
	var content client.Text
	if c.store.region != "us-east-1" {
		content = client.Text("<CreateBucketConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">" +
			"<LocationConstraint>" + c.store.region + "</LocationConstraint></CreateBucketConfiguration>")
	}
	if !c.hashed(content, int64(len(content)), res) {
		return
	}
	c.head("PUT")
	c.X.Content, c.X.Size = content, int64(len(content))
	if !c.explained(c.Send(ctx, res, false), res) {
		if res.Status == 409 { // another client was faster
			res.Status, res.Code = 200, client.Existed
		}
		return
	}
	c.mark(ctx, r.Container, res)
}

// askWhy repeats a refused HEAD, whose response has no body, by a request whose response has the reason.
func (c *adapter) askWhy(ctx context.Context, container []byte, res *client.Result) {
	if res.Status < 300 || res.Code != "" {
		return
	}
	refused := *res
	c.address(container, nil)
	c.query = append(c.query, "list-type=2&max-keys=1"...)
	c.head("GET")
	if c.explained(c.Send(ctx, res, true), res) || res.Status != refused.Status { // the response does not name it
		refused.Attempts, refused.Ended = res.Attempts, res.Ended
		*res = refused
	}
}

func (c *adapter) mark(ctx context.Context, container []byte, res *client.Result) {
	c.address(container, []byte(client.Marker))
	mark := client.Text(client.Mark)
	if !c.hashed(mark, int64(len(mark)), res) {
		return
	}
	c.head("PUT")
	c.X.Content, c.X.Size = mark, int64(len(mark))
	c.explained(c.Send(ctx, res, false), res)
}

func (c *adapter) checkOwner(ctx context.Context, container []byte, res *client.Result) bool {
	c.address(container, []byte(client.Marker))
	c.head("GET")
	if !c.explained(c.Send(ctx, res, true), res) {
		if res.Absent() && res.Code != "NoSuchBucket" { // the container is there, the mark is not
			res.Code = client.NotOurs
		}
		return false
	}
	if !bytes.HasPrefix(c.Answer, []byte(client.Mark)) {
		res.Code = client.NotOurs
		return false
	}
	return true
}

// removeContainer refuses to touch what does not carry our mark. The mark goes
// only when nothing else is left, and comes back if the container stays.
func (c *adapter) removeContainer(ctx context.Context, r *client.Request, res *client.Result) {
	if !c.checkOwner(ctx, r.Container, res) {
		return
	}
	c.address(r.Container, nil)
	c.query = append(c.query, "list-type=2&max-keys=2"...)
	c.head("GET")
	if !c.explained(c.Send(ctx, res, true), res) {
		return
	}
	if bytes.Count(c.Answer, []byte("<Key>")) > 1 {
		res.Status, res.Code, res.Detail = 409, "BucketNotEmpty",
			fmt.Sprintf("%s still has objects beside our mark", r.Container)
		return
	}
	if !c.simple(ctx, "DELETE", r.Container, []byte(client.Marker), res) {
		return
	}
	if !c.simple(ctx, "DELETE", r.Container, nil, res) {
		failed := *res
		c.mark(ctx, r.Container, res)
		failed.Attempts = res.Attempts
		*res = failed
	}
}

// explained reads the server's error; true without one.
func (c *adapter) explained(answered bool, res *client.Result) bool {
	if !answered {
		return false
	}
	if res.Status >= 200 && res.Status < 300 {
		return res.Violation == payload.Sound
	}
	if code, ok := element(c.Answer, "Code"); ok && len(code) <= 64 {
		res.Code = code
	} else if res.Status == 404 {
		res.Code = "" // HEAD has no body to explain with
	}
	if m, ok := element(c.Answer, "Message"); ok {
		res.Detail = m
	}
	for _, hint := range []string{c.moved(res), c.skewed(res)} {
		if hint != "" {
			res.Detail = strings.TrimSuffix(hint+": "+res.Detail, ": ")
		}
	}
	c.Explain(res)
	return false
}

// moved says where S3 has the bucket of a refused request, by the endpoint and the region of its answer.
func (c *adapter) moved(res *client.Result) string {
	if res.Status/100 != 3 && res.Code != "AuthorizationHeaderMalformed" {
		return ""
	}
	var where []string
	if endpoint, ok := element(c.Answer, "Endpoint"); ok {
		where = append(where, "endpoint "+endpoint)
	} else if to := c.X.Header("location"); to != "" {
		where = append(where, "endpoint "+to)
	}
	region := c.X.Header("x-amz-bucket-region")
	if region == "" {
		region, _ = element(c.Answer, "Region")
	}
	if region != "" {
		where = append(where, "region "+region)
	}
	if len(where) == 0 {
		return ""
	}
	return "the server names " + strings.Join(where, ", ") + " for this bucket: write that (redirects are not followed)"
}

// skewed says how the clocks differ where that may be why a request was refused: its signature has our time.
func (c *adapter) skewed(res *client.Result) string {
	if res.Status != 403 && res.Code != "RequestTimeTooSkewed" {
		return ""
	}
	return c.Skew(c.store.config.Now())
}

// element is the text of the first element with that name in a response.
func element(b []byte, name string) (string, bool) {
	_, rest, ok := bytes.Cut(b, []byte("<"+name+">"))
	if !ok {
		return "", false
	}
	inner, _, ok := bytes.Cut(rest, []byte("</"+name+">"))
	return html.UnescapeString(string(inner)), ok // XML's entities are among those of HTML
}
