package s3

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Hashes of payloads that are not computed for each request.
const (
	emptyHash    = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" // SHA-256 of nothing
	unsignedHash = "UNSIGNED-PAYLOAD"
)

// header is one that is signed, its name in lower case.
type header struct{ name, value string }

// signer lays out requests with their signature, version 4: "Authenticating
// Requests: Using the Authorization Header", Amazon S3 API reference. The key
// is derived once a day, the time is formatted once a second; otherwise a
// request costs two runs of SHA-256 over its canonical form and the hash's hash.
type signer struct {
	region, access, secret, token string
	v2                            bool

	second int64  // of at
	at     []byte // 20060102T150405Z
	date   string // Mon, 02 Jan 2006 …, for version 2
	day    string
	scope  string // day/region/s3/aws4_request
	mac    hash.Hash

	fields            [2]fields // of a hashed payload or none, and of one that is not signed
	canonical, toSign []byte
	sum               [sha256.Size]byte
	hexSum            [2 * sha256.Size]byte
}

// tick brings what depends on the time up to date.
func (s *signer) tick(now time.Time) {
	if sec := now.Unix(); sec != s.second || s.at == nil {
		now = now.UTC()
		s.second, s.at = sec, now.AppendFormat(s.at[:0], "20060102T150405Z")
		s.date = now.Format("Mon, 02 Jan 2006 15:04:05 GMT")
	}
	if day := s.at[:8]; string(day) != s.day {
		s.day = string(day)
		s.scope = s.day + "/" + s.region + "/s3/aws4_request"
		s.mac = hmac.New(sha256.New, signingKey(s.secret, s.day, s.region))
	}
}

func signingKey(secret, day, region string) []byte {
	key := []byte("AWS4" + secret)
	for _, part := range []string{day, region, "s3", "aws4_request"} {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(part))
		key = h.Sum(nil)
	}
	return key
}

// sign4 appends the request's head to b: the request line, Host, and the
// headers of the signature. path is encoded; query is canonical (sorted,
// encoded); extra are further headers that must be signed, sorted.
func (s *signer) sign4(b []byte, now time.Time, method string, host, path, query []byte, payload string,
	extra []header) []byte {
	s.tick(now)
	f := s.fieldsOf(host, payload, extra)
	c := append(s.canonical[:0], method...)
	c = append(append(c, '\n'), path...)
	c = append(append(c, '\n'), query...)
	s.canonical = append(c, f.canonical...)
	s.finish()

	b = append(appendRequestLine(b, method, path, query), f.head...)
	return append(append(b, s.hexSum[:]...), "\r\n"...)
}

// fields is what requests without further headers have in common for a second: canonical is what comes after the query
// in the canonical form, head what comes after the request line, up to the signature.
type fields struct {
	second          int64
	host            []byte
	payload         string
	canonical, head []byte
}

// fieldsOf returns the fields of a request. They are made again if they are not those of the last with such a payload.
func (s *signer) fieldsOf(host []byte, payload string, extra []header) *fields {
	f := &s.fields[0]
	if payload == unsignedHash {
		f = &s.fields[1]
	}
	if len(extra) == 0 && f.second == s.second && f.payload == payload && bytes.Equal(f.host, host) {
		return f
	}
	f.second, f.host, f.payload = s.second, append(f.host[:0], host...), payload
	if len(extra) > 0 {
		f.host = f.host[:0] // these fields are not for the next
	}
	g := group(extra)
	c := appendHeaders(append(f.canonical[:0], '\n'), g[0])
	c = append(append(c, "host:"...), host...)
	c = append(appendHeaders(append(c, '\n'), g[1]), "x-amz-content-sha256:"...)
	c = append(append(c, payload...), '\n')
	c = appendHeaders(c, g[2])
	c = append(append(append(c, "x-amz-date:"...), s.at...), '\n')
	c = appendHeaders(c, g[3])
	c = appendNames(append(c, '\n'), g)
	f.canonical = append(append(c, '\n'), payload...)

	b := append(append(append(f.head[:0], "Host: "...), host...), "\r\nX-Amz-Content-Sha256: "...)
	b = append(append(b, payload...), "\r\nX-Amz-Date: "...)
	b = append(append(b, s.at...), "\r\n"...)
	b = appendFields(b, extra)
	b = append(append(b, "Authorization: AWS4-HMAC-SHA256 Credential="...), s.access...)
	b = append(append(append(b, '/'), s.scope...), ", SignedHeaders="...)
	f.head = append(appendNames(b, g), ", Signature="...)
	return f
}

// finish signs s.canonical: its signature is in s.hexSum.
func (s *signer) finish() {
	s.sum = sha256.Sum256(s.canonical)
	t := append(s.toSign[:0], "AWS4-HMAC-SHA256\n"...)
	t = append(append(t, s.at...), '\n')
	t = append(append(t, s.scope...), '\n')
	hex.Encode(s.hexSum[:], s.sum[:])
	t = append(t, s.hexSum[:]...)
	s.toSign = t
	s.mac.Reset()
	s.mac.Write(t)
	s.mac.Sum(s.sum[:0])
	hex.Encode(s.hexSum[:], s.sum[:])
}

// presignedFor is how long a presigned URL is valid, in seconds: a day.
const presignedFor = "86400"

// presign4 is sign4 with the signature in the URL: "Authenticating Requests: Using Query Parameters", Amazon S3 API
// reference. Parameters of query begin with a small letter, so that they come behind those of the signature.
func (s *signer) presign4(b []byte, now time.Time, method string, host, path, query []byte, extra []header) []byte {
	s.tick(now)
	g := group(extra)
	names := append(appendNamed(nil, g[0]), "host"...)
	for _, h := range extra[len(g[0]):] {
		names = append(append(names, ';'), h.name...)
	}
	q := append([]byte("X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential="), s.access...)
	q = encode(append(q, "%2F"...), []byte(s.scope), true)
	q = append(append(q, "&X-Amz-Date="...), s.at...)
	q = append(q, "&X-Amz-Expires="+presignedFor...)
	if s.token != "" {
		q = encode(append(q, "&X-Amz-Security-Token="...), []byte(s.token), true)
	}
	q = encode(append(q, "&X-Amz-SignedHeaders="...), names, true)
	if len(query) > 0 {
		q = append(append(q, '&'), query...)
	}
	c := append(s.canonical[:0], method...)
	c = append(append(append(c, '\n'), path...), '\n')
	c = append(append(c, q...), '\n')
	c = append(append(appendHeaders(c, g[0]), "host:"...), host...)
	c = appendHeaders(append(c, '\n'), extra[len(g[0]):])
	c = append(append(append(c, '\n'), names...), '\n')
	s.canonical = append(c, unsignedHash...)
	s.finish()
	q = append(append(q, "&X-Amz-Signature="...), s.hexSum[:]...)
	b = appendRequestLine(b, method, path, q)
	b = append(append(append(b, "Host: "...), host...), "\r\n"...)
	return appendFields(b, extra)
}

// group divides sorted headers by the places of those that are always signed: before host, x-amz-content-sha256 and
// x-amz-date, and behind.
func group(extra []header) (g [4][]header) {
	for i, name := range []string{"host", "x-amz-content-sha256", "x-amz-date"} {
		n := 0
		for n < len(extra) && extra[n].name < name {
			n++
		}
		g[i], extra = extra[:n], extra[n:]
	}
	g[3] = extra
	return g
}

func appendNamed(b []byte, hs []header) []byte {
	for _, h := range hs {
		b = append(append(b, h.name...), ';')
	}
	return b
}

func sortHeaders(hs []header) {
	slices.SortFunc(hs, func(a, b header) int { return strings.Compare(a.name, b.name) })
}

func appendHeaders(b []byte, hs []header) []byte {
	for _, h := range hs {
		b = append(append(append(append(b, h.name...), ':'), h.value...), '\n')
	}
	return b
}

func appendFields(b []byte, hs []header) []byte {
	for _, h := range hs {
		b = append(append(append(append(b, h.name...), ": "...), h.value...), "\r\n"...)
	}
	return b
}

func appendNames(b []byte, g [4][]header) []byte {
	b = append(appendNamed(b, g[0]), "host;"...)
	b = append(appendNamed(b, g[1]), "x-amz-content-sha256;"...)
	b = append(appendNamed(b, g[2]), "x-amz-date"...)
	for _, h := range g[3] {
		b = append(append(b, ';'), h.name...)
	}
	return b
}

func appendRequestLine(b []byte, method string, path, query []byte) []byte {
	b = append(append(append(b, method...), ' '), path...)
	if len(query) > 0 {
		b = append(append(b, '?'), query...)
	}
	return append(b, " HTTP/1.1\r\n"...)
}

// subresources are the parameters that version 2 signs.
var subresources = []string{"uploads", "uploadId", "partNumber", "location", "versions", "versionId", "versioning",
	"delete", "tagging", "retention", "legal-hold", "object-lock"}

// sign2 is sign4 by the older scheme: "Signing and authenticating REST
// requests", Amazon S3 developer guide. resource is the path with the bucket
// in it, whichever style the request has.
func (s *signer) sign2(b []byte, now time.Time, method string, host, path, query, resource []byte,
	extra []header) []byte {
	s.tick(now)
	if s.token != "" {
		extra = append(extra[:len(extra):len(extra)], header{"x-amz-security-token", s.token})
		sortHeaders(extra)
	}
	t := append(append(s.toSign[:0], method...), '\n')
	amz := extra
	if len(extra) > 0 && extra[0].name == "content-md5" {
		t, amz = append(t, extra[0].value...), extra[1:]
	}
	t = append(append(append(t, "\n\n"...), s.date...), '\n')
	t = appendHeaders(t, amz)
	t = append(t, resource...)
	t = append(t, signedQuery(string(query))...)
	s.toSign = t
	mac := hmac.New(sha1.New, []byte(s.secret))
	mac.Write(t)
	b = appendRequestLine(b, method, path, query)
	b = append(append(append(b, "Host: "...), host...), "\r\nDate: "...)
	b = append(append(b, s.date...), "\r\n"...)
	b = appendFields(b, extra)
	b = append(append(append(b, "Authorization: AWS "...), s.access...), ':')
	b = base64.StdEncoding.AppendEncode(b, mac.Sum(nil))
	return append(b, "\r\n"...)
}

// signedQuery is the part of a sorted query that version 2 signs, as it was
// before it was encoded.
func signedQuery(query string) string {
	var kept []string
	for part := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(part, "=")
		for _, s := range subresources {
			if name == s && value == "" {
				kept = append(kept, name)
			} else if name == s {
				plain, _ := url.PathUnescape(value) // we encoded it
				kept = append(kept, name+"="+plain)
			}
		}
	}
	if len(kept) == 0 {
		return ""
	}
	return "?" + strings.Join(kept, "&")
}

const upperHex = "0123456789ABCDEF"

// encode appends text with everything encoded that is not unreserved (RFC
// 3986); slashes stay, unless all is set.
func encode(b, text []byte, all bool) []byte {
	for _, c := range text {
		switch {
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_', c == '.', c == '~',
			c == '/' && !all:
			b = append(b, c)
		default:
			b = append(b, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return b
}
