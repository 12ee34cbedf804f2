package nullserver

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/test/clienttest"
)

// raw sends requests as they stand over one connection.
type raw struct {
	net.Conn
	r *bufio.Reader
}

func newRaw(t *testing.T, o Options) raw {
	t.Helper()
	address := clienttest.Loopback(t, o.Serve)
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return raw{c, bufio.NewReader(c)}
}

// do sends a request, whose lines are separated by \n, and returns the response and its content.
func (c raw) do(t *testing.T, request string) (*http.Response, string) {
	t.Helper()
	if _, err := io.WriteString(c, strings.ReplaceAll(request, "\n", "\r\n")); err != nil {
		t.Fatal(err)
	}
	return c.answer(t, request)
}

func (c raw) answer(t *testing.T, request string) (*http.Response, string) {
	t.Helper()
	method, _, _ := strings.Cut(request, " ")
	a, err := http.ReadResponse(c.r, &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%s: %v", request, err)
	}
	defer a.Body.Close()
	content, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatalf("%s: %v", request, err)
	}
	return a, string(content)
}

// TestHeadersOfObjects checks the headers that clients of S3 need, of GET and HEAD.
func TestHeadersOfObjects(t *testing.T) {
	before := time.Now().Add(-time.Second)
	c := newRaw(t, Options{Size: 100})
	for _, method := range []string{"GET", "HEAD"} {
		a, content := c.do(t, method+" /b/o HTTP/1.1\n\n")
		at, err := http.ParseTime(a.Header.Get("Last-Modified"))
		if err != nil || at.Before(before.Truncate(time.Second)) || at.After(time.Now()) {
			t.Errorf("%s: Last-Modified %q, %v", method, a.Header.Get("Last-Modified"), err)
		}
		for name, want := range map[string]string{"ETag": etag, "Content-Length": "100", "Accept-Ranges": "bytes",
			"Content-Type": "application/octet-stream", "Content-Range": ""} {
			if got := a.Header.Get(name); got != want {
				t.Errorf("%s: %s %q, want %q", method, name, got, want)
			}
		}
		if want := map[string]int{"GET": 100}[method]; a.StatusCode != 200 || len(content) != want {
			t.Errorf("%s: %s, %d bytes, want %d", method, a.Status, len(content), want)
		}
	}
}

// TestRanges checks which part of an object a range is.
func TestRanges(t *testing.T) {
	c := newRaw(t, Options{Size: 10000})
	_, whole := c.do(t, "GET /b/o HTTP/1.1\n\n")
	for _, tt := range []struct {
		asked    string
		from, to int    // of the content
		span     string // Content-Range; "": the whole object
	}{
		{"bytes=0-99", 0, 100, "bytes 0-99/10000"},
		{"bytes=5000-9000", 5000, 9001, "bytes 5000-9000/10000"},
		{"bytes=9000-", 9000, 10000, "bytes 9000-9999/10000"},
		{"bytes=-7", 9993, 10000, "bytes 9993-9999/10000"},
		{"bytes=-20000", 0, 10000, "bytes 0-9999/10000"},
		{"bytes=9999-9223372036854775807", 9999, 10000, "bytes 9999-9999/10000"},
		{"bytes=0-1,5-6", 0, 2, "bytes 0-1/10000"},
		{"bytes=9-3", 0, 10000, ""}, {"bytes=-", 0, 10000, ""}, {"bytes=a-b", 0, 10000, ""},
		{"bytes=--5", 0, 10000, ""}, {"lines=0-1", 0, 10000, ""},
	} {
		a, content := c.do(t, "GET /b/o HTTP/1.1\nRange: "+tt.asked+"\n\n")
		if content != whole[tt.from:tt.to] || a.Header.Get("Content-Range") != tt.span ||
			(a.StatusCode == 206) != (tt.span != "") {
			t.Errorf("%s: %s, %d bytes, Content-Range %q", tt.asked, a.Status, len(content), a.Header.Get("Content-Range"))
		}
	}
	for _, asked := range []string{"bytes=10000-", "bytes=10000-10001", "bytes=-0"} {
		if a, content := c.do(t, "GET /b/o HTTP/1.1\nRange: "+asked+"\n\n"); a.StatusCode != 416 ||
			!strings.Contains(content, "<Code>InvalidRange</Code>") {
			t.Errorf("%s: %s %s", asked, a.Status, content)
		}
	}
}

// TestBodies checks that the body of a request is read to its end in each form, so that the connection can go on.
func TestBodies(t *testing.T) {
	c := newRaw(t, Options{Size: 1})
	for _, tt := range []struct{ name, request string }{
		{"of a length", "PUT /b/o HTTP/1.1\nContent-Length: 5\n\nhello"},
		{"chunks", "PUT /b/o HTTP/1.1\nTransfer-Encoding: chunked\n\n3\nabc\n2;sig=x\nde\n0\n\n"},
		{"chunks and trailers", "PUT /b/o HTTP/1.1\nTransfer-Encoding: chunked\nTrailer: x-amz-checksum-crc32\n\n" +
			"3\nabc\n0\nx-amz-checksum-crc32: AAAAAA==\nx-amz-trailer-signature: 00\n\n"},
	} {
		if a, _ := c.do(t, tt.request); a.StatusCode != 200 || a.Header.Get("ETag") != etag {
			t.Errorf("%s: %s, ETag %q", tt.name, a.Status, a.Header.Get("ETag"))
		}
		if a, _ := c.do(t, "HEAD /b/o HTTP/1.1\n\n"); a.StatusCode != 200 {
			t.Errorf("the next request after %s: %s", tt.name, a.Status)
		}
	}
	if a, _ := c.do(t, "PUT /b/o HTTP/1.1\nExpect: 100-continue\nContent-Length: 5\n\n"); a.StatusCode != 100 {
		t.Fatalf("instead of 100: %s", a.Status)
	}
	if a, _ := c.do(t, "hello"); a.StatusCode != 200 {
		t.Errorf("after 100: %s", a.Status)
	}
}

// TestResponsesOfS3 checks the status and the content of the requests that have an answer of their own.
func TestResponsesOfS3(t *testing.T) {
	c := newRaw(t, Options{Size: 1})
	remove := func(content string) string {
		return fmt.Sprintf("POST /b?delete HTTP/1.1\nContent-Length: %d\n\n%s", len(content), content)
	}
	for _, tt := range []struct {
		request string
		status  int
		want    string // in the content; "": it is empty
	}{
		{"GET /?x-id=ListBuckets", 200, "<Buckets></Buckets>"},
		{"GET /b", 200, "<Marker></Marker><MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated></ListBucketResult>"},
		{"GET /b/?list-type=2&prefix=a%26b&max-keys=7", 200, "<Prefix>a&amp;b</Prefix><KeyCount>0</KeyCount><MaxKeys>7<"},
		{"GET /b?encoding-type=url&prefix=a%26b&delimiter=/", 200,
			"<EncodingType>url</EncodingType><Prefix>a%26b</Prefix><Delimiter>%2F</Delimiter>"},
		{"GET /b?location", 200, "></LocationConstraint>"},
		{"GET /b?versioning", 200, "></VersioningConfiguration>"},
		{"GET /b?versions", 200, "<IsTruncated>false</IsTruncated></ListVersionsResult>"},
		{"GET /b?uploads", 200, "<Bucket>b</Bucket>"},
		{"HEAD /b", 200, ""}, {"PUT /b", 200, ""}, {"DELETE /b", 204, ""}, {"DELETE /b/o", 204, ""},
		{"POST /b/a%20%3C?uploads=", 200, "<Bucket>b</Bucket><Key>a &lt;</Key><UploadId>null</UploadId>"},
		{"PUT /b/o?partNumber=1&uploadId=null", 200, ""},
		{"POST /b/o?uploadId=null", 200, "<Key>o</Key><ETag>&#34;"},
		{"GET /b/o?uploadId=null", 200, "</ListPartsResult>"},
		{"DELETE /b/o?uploadId=null", 204, ""},
		{"GET /b/o?tagging", 200, "<TagSet></TagSet>"}, {"PUT /b/o?tagging", 200, ""}, {"DELETE /b/o?tagging", 204, ""},
		{"PUT /b/o?legal-hold", 200, ""}, {"PUT /b/o?retention", 200, ""}, {"PUT /b?versioning", 200, ""},
		{"GET /b?acl", 501, "<Code>NotImplemented</Code><Message>the null server does not have GET /b with acl</Message>"},
		{"PUT /b?policy", 501, "<Code>NotImplemented</Code>"}, {"HEAD /b/o?attributes", 501, ""},
		{"POST /b/o?select&select-type=2", 501, "<Code>NotImplemented</Code>"},
		{"PATCH /b/o", 501, "<Code>NotImplemented</Code>"}, {"POST /", 501, "<Code>NotImplemented</Code>"},
		{remove("<Delete><Object><Key>a&lt;</Key></Object><Object><Key>b</Key><VersionId>v</VersionId></Object></Delete>"),
			200, "<Deleted><Key>a&lt;</Key></Deleted><Deleted><Key>b</Key><VersionId>v</VersionId></Deleted></DeleteResult>"},
		{remove("<Delete><Quiet>true</Quiet><Object><Key>a</Key></Object></Delete>"), 200, "></DeleteResult>"},
		{remove("<Delete>"), 400, "<Code>MalformedXML</Code>"}, {remove(""), 400, "<Code>MalformedXML</Code>"},
		{"POST /b?delete HTTP/1.1\nTransfer-Encoding: chunked\n\n8\n<Delete>\n26\n<Object><Key>a</Key></Object></Delete>\n" +
			"0\n\n", 200, "<Deleted><Key>a</Key></Deleted>"},
		{"GET /b/.cnsbench-owner", 200, client.Mark},
	} {
		request := tt.request
		if !strings.Contains(request, "HTTP/1.1") {
			request += " HTTP/1.1\n\n"
		}
		a, content := c.do(t, request)
		if a.StatusCode != tt.status || !strings.Contains(content, tt.want) || (tt.want == "") != (content == "") {
			t.Errorf("%q: %s %s", tt.request, a.Status, content)
		}
		if content != "" && content != client.Mark {
			if err := xml.Unmarshal([]byte(content), new(struct{})); err != nil ||
				a.Header.Get("Content-Type") != "application/xml" {
				t.Errorf("%q: %v in %s of type %s", tt.request, err, content, a.Header.Get("Content-Type"))
			}
		}
	}
}

// TestBodiesAreBounded checks that a body that is kept has a limit, and is read to its end.
func TestBodiesAreBounded(t *testing.T) {
	c := newRaw(t, Options{Size: 1})
	huge := strings.Repeat("x", maxBody+1000)
	if a, content := c.do(t, fmt.Sprintf("POST /b?delete HTTP/1.1\nContent-Length: %d\n\n%s", len(huge), huge)); a.
		StatusCode != 400 {
		t.Errorf("%s %s", a.Status, content)
	}
	if a, _ := c.do(t, "HEAD /b/o HTTP/1.1\n\n"); a.StatusCode != 200 {
		t.Error(a.Status)
	}
}

// TestAllocations checks that a request of an object needs few allocations: the texts of its path, and no more for
// its headers.
func TestAllocations(t *testing.T) {
	const headers = " HTTP/1.1\r\nHost: h\r\nAuthorization: a\r\nX-Amz-Date: d\r\nRange: bytes=0-9\r\n\r\n"
	s := &server{size: 100, facts: factsAt(time.Now())}
	for _, method := range []string{"GET", "HEAD", "PUT"} {
		request := strings.NewReader("")
		c := &conn{server: s, c: discard{}, r: bufio.NewReader(request), out: make([]byte, 0, bufferSize)}
		if n := testing.AllocsPerRun(200, func() {
			request.Reset(method + " /bucket/object" + headers)
			c.r.Reset(request)
			if err := c.one(t.Context()); err != nil {
				t.Error(err)
			}
		}); n > 5 {
			t.Errorf("%s: %v allocations", method, n)
		}
	}
}

type discard struct{ net.Conn }

func (discard) Write(p []byte) (int, error) { return len(p), nil }
