package s3

import (
	"testing"

	"github.com/cnsbench/cnsbench/internal/object/option"
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
