package s3

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/option"
	"github.com/cnsbench/cnsbench/internal/op"
)

// The check values of the catalogue of CRC algorithms (reveng), and SHA-256 by Python's hashlib.
func TestChecksums(t *testing.T) {
	for name, want := range map[string]string{option.CRC32C: "4waSgw==", option.CRC64NVME: "rosUhgp5mIg=",
		option.SHA256: "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU="} {
		h := hashes[name]()
		h.Write([]byte("123456789"))
		if got := base64Of(h); got != want {
			t.Errorf("%s of 123456789 is %s, want %s", name, got, want)
		}
	}
}

// TestEncrypted checks that a write with encryption succeeds with another code if the server does not state it: of
// uploads, in the answer to their creation.
func TestEncrypted(t *testing.T) {
	for _, confirmed := range []bool{true, false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if asked := r.Header.Get("X-Amz-Server-Side-Encryption"); confirmed && asked != "" {
				w.Header().Set("X-Amz-Server-Side-Encryption", asked)
			}
			w.Header().Set("ETag", `"tag"`)
			if r.Method == http.MethodPost && r.URL.Query().Has("uploads") {
				_, _ = io.WriteString(w, "<InitiateMultipartUploadResult><UploadId>u</UploadId>"+
					"</InitiateMultipartUploadResult>")
			} else if r.Method == http.MethodPost {
				_, _ = io.WriteString(w, "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>")
			}
		}))
		defer server.Close()
		s, err := New(Config{Settings: map[string]string{"endpoint": server.URL}, Clock: op.NewClock()})
		if err != nil {
			t.Fatal(err)
		}
		c, err := s.Client()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for _, verb := range []client.Verb{client.Put, client.PutParts} {
			var res client.Result
			c.Do(t.Context(), &client.Request{Verb: verb, Container: []byte("b"), Object: []byte("o"), Size: 8192,
				PartSize: 4096, Options: &option.Set{Encryption: option.SSES3}}, &res)
			want := map[bool]string{true: "", false: client.NotEncrypted}[confirmed]
			if !res.OK() || res.Code != want || res.Bytes != 8192 {
				t.Errorf("verb %d, confirmed %v: %s of %d bytes, %s; want the code %q", verb, confirmed, res.Label(),
					res.Bytes, res.Detail, want)
			}
		}
	}
}
