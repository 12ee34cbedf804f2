package s3

import (
	"math/rand/v2"
	"regexp"
	"testing"
	"time"
)

// The examples of "Signature Calculations for the Authorization Header" in
// Amazon's API reference of S3, as far as they sign what this client signs.
func TestSignatureOfAmazonsExamples(t *testing.T) {
	const host = "examplebucket.s3.amazonaws.com"
	at := time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC)
	tests := []struct {
		name, method, path, query, payload string
		extra                              []header
		want                               string
	}{
		{"range", "GET", "/test.txt", "", emptyHash, []header{{"range", "bytes=0-9"}},
			"f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
		{"storage class", "PUT", "/test%24file.text", "",
			"44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
			[]header{{"date", "Fri, 24 May 2013 00:00:00 GMT"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
			"98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
		{"lifecycle", "GET", "/", "lifecycle=", emptyHash, nil,
			"fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
		{"list", "GET", "/", "max-keys=2&prefix=J", emptyHash, nil,
			"34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
	}
	s := signer{region: "us-east-1", access: "AKIAIOSFODNN7EXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			head := s.sign4(nil, at, tt.method, []byte(host), []byte(tt.path), []byte(tt.query), tt.payload, tt.extra)
			got := regexp.MustCompile(`Signature=([0-9a-f]{64})`).FindSubmatch(head)
			if got == nil || string(got[1]) != tt.want {
				t.Errorf("signature %s, want %s in\n%s", got, tt.want, head)
			}
		})
	}
}

// The example of "Signing and authenticating REST requests", version 2.
func TestSignature2OfAmazonsExample(t *testing.T) {
	at := time.Date(2007, 3, 27, 19, 36, 42, 0, time.UTC)
	s := signer{access: "AKIAIOSFODNN7EXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", v2: true}
	s.tick(at)
	s.date = "Tue, 27 Mar 2007 19:36:42 +0000" // as that page writes it
	head := s.sign2(nil, at, "GET", []byte("johnsmith.s3.amazonaws.com"), []byte("/photos/puppy.jpg"), nil,
		[]byte("/johnsmith/photos/puppy.jpg"), nil)
	want := "GET /photos/puppy.jpg HTTP/1.1\r\nHost: johnsmith.s3.amazonaws.com\r\nDate: Tue, 27 Mar 2007 " +
		"19:36:42 +0000\r\n" +
		"Authorization: AWS AKIAIOSFODNN7EXAMPLE:bWq2s1WEIj+Ydj0vQ697zp+IXMU=\r\n"
	if string(head) != want {
		t.Errorf("%s\nwant\n%s", head, want)
	}
}

// The example of "Authenticating Requests: Using Query Parameters".
func TestPresignedURLOfAmazonsExample(t *testing.T) {
	at := time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC)
	s := signer{region: "us-east-1", access: "AKIAIOSFODNN7EXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}
	head := s.presign4(nil, at, "GET", []byte("examplebucket.s3.amazonaws.com"), []byte("/test.txt"), nil, nil)
	want := "GET /test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2F" +
		"us-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&" +
		"X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404 HTTP/1.1\r\n" +
		"Host: examplebucket.s3.amazonaws.com\r\n"
	if string(head) != want {
		t.Errorf("%s\nwant\n%s", head, want)
	}
}

func TestEncode(t *testing.T) {
	for in, want := range map[string]string{"abc-_.~/9": "abc-_.~/9", "a b+c": "a%20b%2Bc", "ü=&": "%C3%BC%3D%26"} {
		if got := string(encode(nil, []byte(in), false)); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	if got := string(encode(nil, []byte("a/b"), true)); got != "a%2Fb" {
		t.Error(got)
	}
}

func TestSignedQuery(t *testing.T) {
	for in, want := range map[string]string{"": "", "list-type=2&max-keys=5": "", "uploads=": "?uploads",
		"partNumber=1&uploadId=x": "?partNumber=1&uploadId=x",
		"uploadId=a%2Fb%2Bc%3D":   "?uploadId=a/b+c="} {
		if got := signedQuery(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestSignAgain checks that a signer that has signed other requests lays one out as a new signer does.
func TestSignAgain(t *testing.T) {
	at := time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC)
	fresh := func() *signer { return &signer{region: "us-east-1", access: "AKIAIOSFODNN7EXAMPLE", secret: "secret"} }
	used := fresh()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		now := at.Add(time.Duration(rng.IntN(3)) * time.Second)
		host, payload := []string{"a.example", "b.example"}[rng.IntN(2)], []string{emptyHash, unsignedHash}[rng.IntN(2)]
		var extra []header
		if rng.IntN(3) == 0 {
			extra = []header{{"range", "bytes=0-9"}}
		}
		sign := func(s *signer) string {
			return string(s.sign4(nil, now, "GET", []byte(host), []byte("/k"), nil, payload, extra))
		}
		if got, want := sign(used), sign(fresh()); got != want {
			t.Fatalf("%s\nwant\n%s", got, want)
		}
	}
}
