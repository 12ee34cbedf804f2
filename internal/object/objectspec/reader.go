package objectspec

import (
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/workload"
	"k8s.io/apimachinery/pkg/api/resource"
)

// reader turns an ObjectSpec into the model.
type reader struct {
	file    workload.SpecFile
	engine  string
	cluster bool
	failed  bool
	// incomplete: an operation of an unknown type, which the schema reports, is left out.
	incomplete bool
	paths      []string // of the lines that the model has
	volume     *v1alpha1.ObjectFileSpec
	secret     string
	pass       []string // variables of the environment
	host       []hostMount
}

func (o *reader) fail(path, hint, format string, args ...any) {
	o.failed = true
	o.file.Fail(path, hint, format, args...)
}

// line is a number by which the model's problems find their place.
func (o *reader) line(path string) int {
	o.paths = append(o.paths, path)
	return len(o.paths)
}

// hostMount is a file or a directory of this machine that the program is given.
type hostMount struct{ path, kind string }

// given is where the program finds what the Benchmark names by its path: on the
// cluster's nodes it is the program's own; here the program sees nothing of the
// machine that it is not given.
func (o *reader) given(path, kind string) string {
	if path == "" || o.cluster {
		return path
	}
	if m := (hostMount{path, kind}); !slices.Contains(o.host, m) {
		o.host = append(o.host, m)
	}
	return hostDir + path
}

// Mount points of an object workload's program.
const (
	volumeDir      = "/data"
	credentialsDir = "/credentials"
	hostDir        = "/host" // files of this machine, below it by their path
)

func (o *reader) duration(path string, d *v1alpha1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	if d.Duration.Duration < 0 {
		o.fail(path, "", "must not be negative")
	}
	return d.Duration.Duration
}

// positive is a duration of more than 0, or 0 if there is none.
func (o *reader) positive(path string, d *v1alpha1.Duration) time.Duration {
	if d != nil && d.Duration.Duration <= 0 {
		o.fail(path, "", "must be more than 0")
		return 0
	}
	return o.duration(path, d)
}

// bytes of a quantity; 0 if there is none.
func (o *reader) bytes(path string, q *resource.Quantity) int64 {
	if q == nil {
		return 0
	}
	if q.Value() <= 0 {
		o.fail(path, "such as 64Ki or 5Mi", "a size of %s is not more than 0", q)
	}
	return q.Value()
}
