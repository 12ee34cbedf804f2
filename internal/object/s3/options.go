package s3

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"strings"
	"sync"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/httpconn"
	"github.com/cnsbench/cnsbench/internal/object/option"
	"github.com/cnsbench/cnsbench/internal/object/payload"
)

// nvme is the polynomial of CRC64NVME (NVM Express, section 5.2.1.3.4), reflected.
var nvme = sync.OnceValue(func() *crc64.Table { return crc64.MakeTable(0x9a6c9329ac4bc9b5) })

// hashes of option checksum.
var hashes = map[string]func() hash.Hash{
	option.CRC32C:    func() hash.Hash { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) },
	option.CRC64NVME: func() hash.Hash { return crc64.New(nvme()) },
	option.SHA256:    sha256.New,
}

func base64Of(h hash.Hash) string { return base64.StdEncoding.EncodeToString(h.Sum(nil)) }

// customer are the headers of SSE-C. All objects have the same key, which protects nothing: it is the server's work
// that is measured.
var customer = sync.OnceValue(func() []header {
	key := sha256.Sum256([]byte("cnsbench sse-c"))
	sum := md5.Sum(key[:])
	const prefix = "x-amz-server-side-encryption-customer-"
	return []header{{prefix + "algorithm", "AES256"}, {prefix + "key", base64.StdEncoding.EncodeToString(key[:])},
		{prefix + "key-md5", base64.StdEncoding.EncodeToString(sum[:])}}
})

// customerKey adds the key of SSE-C, which each request for the object needs.
func (c *adapter) customerKey(o *option.Set) {
	if o != nil && o.Encryption == option.SSEC {
		c.extra = append(c.extra, customer()...)
	}
}

// creating adds the options of a request that makes an object.
func (c *adapter) creating(r *client.Request) {
	o := r.Options
	if o == nil {
		return
	}
	if o.StorageClass != "" {
		c.extra = append(c.extra, header{"x-amz-storage-class", o.StorageClass})
	}
	if o.Encryption == option.SSES3 {
		c.extra = append(c.extra, header{"x-amz-server-side-encryption", "AES256"})
	}
	c.customerKey(o)
}

// encrypted sets the Code of a write that was to be encrypted, if the server's answer does not have the algorithm, as
// S3 has it: a server may ignore what it does not know.
func (c *adapter) encrypted(o *option.Set, res *client.Result) {
	if o == nil || o.Encryption == "" {
		return
	}
	name := map[string]string{option.SSES3: "x-amz-server-side-encryption",
		option.SSEC: "x-amz-server-side-encryption-customer-algorithm"}[o.Encryption]
	if c.X.Header(name) == "" {
		res.Code, res.Detail = client.NotEncrypted, "the answer does not have the header "+name
	}
}

// writing adds the options of a Put.
func (c *adapter) writing(r *client.Request, content httpconn.Content, res *client.Result) bool {
	c.creating(r)
	_, ok := c.checksum(r, content, r.Size, res)
	return ok
}

// partOptions adds the options of a part, and keeps its checksum.
func (c *adapter) partOptions(r *client.Request, sums []string, part int, size int64, res *client.Result) (ok bool) {
	c.customerKey(r.Options)
	sums[part-1], ok = c.checksum(r, &c.content, size, res)
	return ok
}

// checksum adds the checksum of a content that is sent, if r asks for one.
func (c *adapter) checksum(r *client.Request, content httpconn.Content, size int64, res *client.Result) (string, bool) {
	if r.Options.Checksum == "" {
		return "", true
	}
	if !res.Started.Known() { // computing it is part of sending
		res.Started = c.store.config.Clock.Now()
	}
	h := hashes[r.Options.Checksum]()
	if !c.sum(h, content, size, res) {
		return "", false
	}
	text := base64Of(h)
	c.extra = append(c.extra, header{"x-amz-checksum-" + r.Options.Checksum, text})
	return text, true
}

// reading adds the options of a Get.
func (c *adapter) reading(r *client.Request) {
	c.Hash = nil
	if r.Options == nil {
		return
	}
	c.customerKey(r.Options)
	if r.Options.Checksum != "" && r.Length < 0 {
		c.extra = append(c.extra, header{"x-amz-checksum-mode", "ENABLED"})
		c.Hash = hashes[r.Options.Checksum]()
	}
}

// compare checks the checksum of the object that was read. That of an object in parts may be one of its parts'
// checksums, with a dash and their number, which a reader cannot compute.
func (c *adapter) compare(r *client.Request, res *client.Result) {
	h := c.Hash
	c.Hash = nil
	switch got := c.X.Header("x-amz-checksum-" + r.Options.Checksum); {
	case got == "":
		res.Code, res.Violation, res.Detail = "NoChecksum", payload.Corrupt, "the server returned no checksum"
	case strings.Contains(got, "-"):
	case got != base64Of(h):
		res.Code, res.Violation, res.Detail = "ChecksumMismatch", payload.Corrupt, "the server's is "+got
	}
}
