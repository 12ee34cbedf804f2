package cli

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/object/coordinator"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/opfile"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/registry"
)

// objectFlags are those of object run.
type objectFlags struct {
	out    string
	output string // of the summary, and of --dry-run
	seed   uint64
	grace  time.Duration
	dryRun bool
	strict bool
	log    bool // of operations
	hosts  hostFlags
	search searchFlags
}

// listPrices are those of Amazon S3 Standard in us-east-1, as they were in 2025, in dollars.
var listPrices = model.Prices{Write: 0.005, Read: 0.0004, Received: 0.09}

func defaultObjectFlags() objectFlags { return objectFlags{grace: 10 * time.Second} }

// add registers the flags.
func (f *objectFlags) add(fl *pflag.FlagSet) {
	fl.StringVarP(&f.out, "out", "o", "", "directory for the bundle; must not exist or be empty "+
		"(default cnsbench-NAME-TIME)")
	fl.Uint64Var(&f.seed, "seed", 0, "seed of all random choices (default random)")
	fl.DurationVar(&f.grace, "grace", f.grace, "how long to wait for operations in flight after a work's end")
	fl.BoolVar(&f.dryRun, "dry-run", false, "print requests, bytes and cost; send nothing")
	fl.BoolVar(&f.strict, "strict", false, "exit with 4 when the client limits the figures, due operations were "+
		"lost, or a check found the store inconsistent")
	fl.BoolVar(&f.log, "log-operations", false, "write each operation to a Parquet file in the bundle")
	f.hosts.add(fl)
	f.search.add(fl)
}

// shaping are the flags that shape the result of an object run, beside its seed.
var shaping = []string{"stage", "find-max", "find-from", "find-least", "find-most", "find-resolution",
	"scale-workers", "repetitions", "knee-gain",
	"window", "warm-up", "ceiling", "ceiling-for", "grace", "log-operations", "hosts", "host-credentials"}

// args are the flags that shape the run, as they were given, and the seed, given
// or drawn.
func (f *objectFlags) args() []string {
	args := []string{"--seed", strconv.FormatUint(f.seed, 10)}
	if f.search.flags == nil {
		return args
	}
	for _, name := range shaping {
		fl := f.search.flags.Lookup(name)
		switch {
		case !fl.Changed || fl.Value.String() == "false":
		case fl.Value.Type() == "bool":
			args = append(args, "--"+name)
		default:
			text := fl.Value.String()
			if list, ok := fl.Value.(pflag.SliceValue); ok {
				text = strings.Join(list.GetSlice(), ",")
			}
			args = append(args, "--"+name, text)
		}
	}
	return args
}

// objectRun is one run of an object workload.
type objectRun struct {
	*streams
	flags      *objectFlags
	workload   *model.Workload
	clock      op.Clock
	id         string
	writer     *bundle.Writer
	entry      *registry.Run           // nil: it makes no containers
	controller *coordinator.Controller // nil: this process does it
	search     *search
	log        *opfile.Writer // nil: none
	unwatch    func()         // ends the reading of this machine; nil: it has not begun
}
