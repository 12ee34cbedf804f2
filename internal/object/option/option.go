// Package option has what requests to object storage may ask for beyond their verb: storage classes, encryption,
// checksums, conditions. An option is one entry of All; files, requests and documentation follow it.
package option

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Set is the options of an operation. The names in JSON are those of a Benchmark's fields; in lower case they are the
// keys of COSBench's config strings.
type Set struct {
	StorageClass string `json:"storageClass,omitempty"`
	Encryption   string `json:"encryption,omitempty"` // SSES3 or SSEC
	Checksum     string `json:"checksum,omitempty"`   // CRC32C, CRC64NVME or SHA256
	IfNoneMatch  bool   `json:"ifNoneMatch,omitempty"`
	// Versioning and ObjectLock are of containers.
	Versioning bool `json:"versioning,omitempty"`
	ObjectLock bool `json:"objectLock,omitempty"`
	// Ranges is the number of ranges in one request; 0 is 1.
	Ranges int `json:"ranges,omitempty"`
	// Batch is the number of objects that one request deletes.
	Batch int `json:"batch,omitempty"`
	// Retention is how long an object is retained, as a duration such as 1h.
	Retention string `json:"retention,omitempty"`
	Delimiter string `json:"delimiter,omitempty"`
	AllPages  bool   `json:"allPages,omitempty"`
}

// Values of Encryption and Checksum.
const (
	SSES3     = "sse-s3"
	SSEC      = "sse-c"
	CRC32C    = "crc32c"
	CRC64NVME = "crc64nvme"
	SHA256    = "sha256"
)

// Defaults of options.
const (
	defaultBatch     = 100
	defaultRetention = time.Minute
	maxCount         = 1000 // of a batch, a limit of S3
)

// Option is one field of a Set.
type Option struct {
	Name   string // in a Benchmark
	Values []string
	Types  []string // of the operations that have it
}

// All options, in the order of the documentation.
var All = []Option{
	{Name: "storageClass", Types: []string{"write", "multipart", "filewrite", "copy"}},
	{Name: "encryption", Values: []string{SSES3, SSEC},
		Types: []string{"write", "multipart", "abort", "filewrite", "read", "head"}},
	{Name: "checksum", Values: []string{CRC32C, CRC64NVME, SHA256},
		Types: []string{"write", "multipart", "abort", "filewrite", "read"}},
	{Name: "ifNoneMatch", Types: []string{"write", "filewrite"}},
	{Name: "versioning", Types: []string{"init"}},
	{Name: "objectLock", Types: []string{"init"}},
	{Name: "ranges", Types: []string{"read"}},
	{Name: "batch", Types: []string{"deleteobjects"}},
	{Name: "retention", Types: []string{"putretention"}},
	{Name: "delimiter", Types: []string{"list"}},
	{Name: "allPages", Types: []string{"list"}},
}

// Key is the option's name in a config string.
func (o *Option) Key() string { return strings.ToLower(o.Name) }

// For reports whether operations of that type have the option.
func (o *Option) For(operation string) bool { return slices.Contains(o.Types, operation) }

// field is the option's field of s.
func (o *Option) field(s *Set) reflect.Value {
	return reflect.ValueOf(s).Elem().FieldByNameFunc(func(name string) bool { return strings.EqualFold(name, o.Name) })
}

// Of reports whether s has the option.
func (o *Option) Of(s *Set) bool { return !o.field(s).IsZero() }

// Text is the value of the option in s, as Put takes it.
func (o *Option) Text(s *Set) string { return fmt.Sprint(o.field(s).Interface()) }

// Put sets the option by its text, which is checked.
func (o *Option) Put(s *Set, text string) error {
	switch f := o.field(s); f.Kind() {
	case reflect.Bool:
		v, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%s=%q is neither true nor false", o.Name, text)
		}
		f.SetBool(v)
	case reflect.Int:
		v, err := strconv.Atoi(text)
		if err != nil || v < 1 || v > maxCount {
			return fmt.Errorf("invalid %s %q: want 1 to %d", o.Name, text, maxCount)
		}
		f.SetInt(int64(v))
	default:
		if o.Values != nil {
			text = strings.ToLower(text)
		}
		if o.Values != nil && !slices.Contains(o.Values, text) {
			return fmt.Errorf("invalid %s %q: want %s", o.Name, text, strings.Join(o.Values, ", "))
		}
		if d, err := time.ParseDuration(text); o.Name == "retention" && (err != nil || d < time.Second) {
			return fmt.Errorf("invalid retention %q: want a duration of at least 1s", text)
		}
		for i := range len(text) { // it becomes part of a header or of a URL
			if text[i] <= ' ' || text[i] >= 0x7f {
				return fmt.Errorf("invalid %s %q: want ASCII without spaces", o.Name, text)
			}
		}
		f.SetString(text)
	}
	return nil
}

// Take adds the options of from that operations of a type have and s lacks.
func (s *Set) Take(from *Set, operation string) {
	for i := range All {
		if o := &All[i]; o.For(operation) && !o.Of(s) {
			o.field(s).Set(o.field(from))
		}
	}
}

// OrNil is s, or nil if it has no options.
func (s *Set) OrNil() *Set {
	if *s == (Set{}) {
		return nil
	}
	return s
}

// RetainFor is the time for which objects are retained.
func (s *Set) RetainFor() time.Duration {
	if s != nil {
		if d, err := time.ParseDuration(s.Retention); err == nil {
			return d
		}
	}
	return defaultRetention
}

// BatchSize is the number of objects of one request.
func (s *Set) BatchSize() int {
	if s == nil || s.Batch == 0 {
		return defaultBatch
	}
	return s.Batch
}

// RangeCount is the number of ranges of one request.
func (s *Set) RangeCount() int {
	if s == nil || s.Ranges == 0 {
		return 1
	}
	return s.Ranges
}
