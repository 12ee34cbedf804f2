package object

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/minio/minio-go/v7/pkg/signer"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/s3"
	"github.com/cnsbench/cnsbench/internal/op"
)

// recorder answers as S3 does, as far as a client needs to go on, and keeps
// the requests.
type recorder struct {
	mu   sync.Mutex
	seen []*http.Request
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	_, _ = io.Copy(io.Discard, q.Body)
	r.mu.Lock()
	r.seen = append(r.seen, q)
	r.mu.Unlock()
	w.Header().Set("ETag", `"e"`)
	switch {
	case q.Method == "POST" && q.URL.Query().Has("uploads"):
		fmt.Fprint(w, "<InitiateMultipartUploadResult><UploadId>an/odd+id=</UploadId></InitiateMultipartUploadResult>")
	case q.Method == "GET" && q.URL.Query().Has("list-type"):
		fmt.Fprint(w, "<ListBucketResult></ListBucketResult>")
	}
}

// drawn is a random text of what names may have.
func drawn(r *rand.Rand, alphabet string, most int) string {
	letters := []rune(alphabet)
	b := make([]rune, 1+r.IntN(most))
	for i := range b {
		b[i] = letters[r.IntN(len(letters))]
	}
	return string(b)
}

const (
	bucketLetters = "abcdefghijklmnopqrstuvwxyz0123456789-"
	objectLetters = "abcXYZ019 -_.~!*'();:@&=+$,/?%#[]<>\"\\^`{|}äß€漢😀\t"
)

func request(r *rand.Rand) client.Request {
	object := func() []byte { return []byte("o" + drawn(r, objectLetters, 30)) }
	q := client.Request{Container: []byte("b" + drawn(r, bucketLetters, 20) + "x"), Object: object(), To: object(), Length: -1, MaxKeys: 1 + r.IntN(1000), Writer: r.Uint64()}
	q.Verb = []client.Verb{client.Get, client.Put, client.PutParts, client.Head, client.Delete, client.List, client.Copy, client.MakeContainer}[r.IntN(8)]
	switch q.Verb {
	case client.Get:
		if r.IntN(2) == 0 {
			q.Offset, q.Length = int64(r.IntN(10))*4096, int64(1+r.IntN(9999))
		}
	case client.Put:
		q.Size = int64(r.IntN(9999))
	case client.PutParts:
		q.PartSize, q.Size = 4096, int64(r.IntN(12000))
	}
	return q
}

// Each request of a thousand random ones, and of the several that some of them
// take, carries the signature that the SDKs' signers give it.
func TestSignaturesOfRandomRequests(t *testing.T) {
	for _, version := range []string{"v4", "v2"} {
		t.Run(version, func(t *testing.T) {
			seen := &recorder{}
			server := httptest.NewServer(seen)
			defer server.Close()
			rng := rand.New(rand.NewPCG(1, 2))
			signed := 0
			for i := range 1000 {
				at := time.Unix(1.6e9+rng.Int64N(1e8), 0).UTC()
				k := s3.Credentials{AccessKey: drawn(rng, "ABCDEFGHIJ0123456789", 20), SecretKey: drawn(rng, "abcXYZ+/=019", 40)}
				if i%3 == 0 {
					k.SessionToken = drawn(rng, "abcXYZ+/=019", 80)
				}
				settings := map[string]string{"endpoint": server.URL, "signature": version, "region": "r-" + drawn(rng, bucketLetters, 8)}
				if i%2 == 0 {
					settings["payload"] = "signed"
				}
				virtual := i%5 < 2
				if virtual {
					settings["path_style_access"] = "false"
				}
				seen.seen = nil
				send(t, s3.Config{Settings: settings, Credentials: k, Clock: op.NewClock(), Now: func() time.Time { return at }}, request(rng))
				for _, q := range seen.seen {
					signed++
					want := authorizationV2(q, k, virtual)
					if version == "v4" {
						want = authorizationV4(t, q, k, settings["region"], at)
					}
					if got := q.Header.Get("Authorization"); got != want {
						t.Fatalf("request %d: %s %s\n%v\ngot  %s\nwant %s", i, q.Method, q.RequestURI, q.Header, got, want)
					}
				}
			}
			if signed < 1000 {
				t.Errorf("%d requests were compared", signed)
			}
		})
	}
}

func send(t *testing.T, c s3.Config, q client.Request) {
	t.Helper()
	s, err := s3.New(c)
	if err != nil {
		t.Fatal(err)
	}
	worker, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer worker.Close()
	var res client.Result
	if worker.Do(t.Context(), &q, &res); res.Failure != "" {
		t.Fatalf("%+v: %s %s", q, res.Label(), res.Detail)
	}
}

// again is q as it came, with those headers only.
func again(q *http.Request, headers ...string) *http.Request {
	u, _ := url.ParseRequestURI(q.RequestURI) // the server has parsed it too
	u.Scheme, u.Host = "http", q.Host
	r := &http.Request{Method: q.Method, URL: u, Host: q.Host, Header: http.Header{}}
	for _, h := range headers {
		if v := q.Header.Values(h); len(v) > 0 {
			r.Header[http.CanonicalHeaderKey(h)] = slices.Clone(v)
		}
	}
	return r
}

func authorizationV4(t *testing.T, q *http.Request, k s3.Credentials, region string, at time.Time) string {
	t.Helper()
	_, names, _ := strings.Cut(q.Header.Get("Authorization"), "SignedHeaders=")
	names, _, _ = strings.Cut(names, ",")
	for name := range q.Header { // S3 wants these signed, whoever signs
		if n := strings.ToLower(name); strings.HasPrefix(n, "x-amz-") && !slices.Contains(strings.Split(names, ";"), n) {
			t.Errorf("%s is not signed", name)
		}
	}
	r := again(q, strings.Split(names, ";")...)
	for _, h := range []string{"X-Amz-Date", "X-Amz-Security-Token"} { // the signer sets them
		r.Header.Del(h)
	}
	c := aws.Credentials{AccessKeyID: k.AccessKey, SecretAccessKey: k.SecretKey, SessionToken: k.SessionToken}
	err := v4.NewSigner().SignHTTP(t.Context(), c, r, q.Header.Get("X-Amz-Content-Sha256"), "s3", region, at,
		func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	if err != nil {
		t.Fatal(err)
	}
	return r.Header.Get("Authorization")
}

func authorizationV2(q *http.Request, k s3.Credentials, virtualHost bool) string {
	r := again(q, "Date", "X-Amz-Copy-Source", "X-Amz-Security-Token", "Content-Type", "Content-Md5")
	return signer.SignV2(*r, k.AccessKey, k.SecretKey, virtualHost).Header.Get("Authorization")
}
