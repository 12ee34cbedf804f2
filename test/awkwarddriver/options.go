package awkwarddriver

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Options are the switches of a driver. The zero value is a driver without any. Each has a flag, by which tests name
// it: see Parse.
type Options struct {
	// Secrets are the kinds of secrets that calls must bring with the values of SecretOf.
	Secrets []string
	// Parameters: volumes, snapshots and groups need the class parameter RequiredParameter.
	Parameters bool
	// Topology: a volume needs accessibility requirements with the segment of Segment.
	Topology bool
	// VolumeContext: what CreateVolume and ControllerPublishVolume answer as contexts must come back.
	VolumeContext bool

	// Aborted and Unavailable calls are answered so, for each object, before they work. TimedOut ones have done their
	// work.
	Aborted, Unavailable, TimedOut Repeats
	// InProgress is how long the first call for an object works. It answers DEADLINE_EXCEEDED after half of that time;
	// until the work is done, others are ABORTED. 0: calls answer when they are done.
	InProgress time.Duration
	// AsyncCopies is how long restores and clones work, during which each call answers ABORTED.
	AsyncCopies time.Duration
	// SlowDeletes and LateReady delay each deletion, and the time at which a snapshot is ready to use.
	SlowDeletes, LateReady time.Duration
	// NotFound: the deletion of an object that does not exist fails with NOT_FOUND.
	NotFound bool

	// RoundUp and RoundDown are the steps of sizes in bytes. A size that is rounded down to less than was requested is
	// a false answer.
	RoundUp, RoundDown int64
	// NoCapacity: answers do not state sizes where CSI allows that.
	NoCapacity bool
	// NoContentSource: a restored or cloned volume does not state its source.
	NoContentSource bool
	// LongIDs: IDs have 128 bytes with slashes.
	LongIDs bool
	// Lies have by RPC what is false in each of its answers.
	Lies map[string]Lie

	// What the driver does not offer.
	NoListSnapshots, NoListVolumes, NoNodeExpansion, NoStage, NoAttach, NoBlock, NoGroups bool

	// Mounts: a volume is a directory that is mounted at its path, else an empty directory there. It needs root.
	Mounts bool
}

// Repeats are calls that fail a number of times.
type Repeats struct {
	RPCs  []string // empty: none; "all": all that create, change or delete
	Times int      // for each object
}

// Flags adds the flag of each option to a set.
func (o *Options) Flags(fs *flag.FlagSet) {
	fs.Func("secrets", "comma-separated `kinds` of secrets that are required; all: every kind", o.setSecrets)
	fs.BoolVar(&o.Parameters, "parameters", false, "classes need the parameter "+RequiredParameter)
	fs.BoolVar(&o.Topology, "topology", false, "volumes need accessibility requirements")
	fs.BoolVar(&o.VolumeContext, "volume-context", false, "contexts of volumes must come back")
	fs.Func("aborted", "`RPCs=times`: calls that are ABORTED for each object at first", o.Aborted.set)
	fs.Func("unavailable", "`RPCs=times`: calls that are UNAVAILABLE for each object at first", o.Unavailable.set)
	fs.Func("timed-out", "`RPCs=times`: calls that work, but answer DEADLINE_EXCEEDED at first", o.TimedOut.set)
	fs.DurationVar(&o.InProgress, "in-progress", 0, "how long the first call for an object works beyond its deadline")
	fs.DurationVar(&o.AsyncCopies, "async-copies", 0, "how long copies work, while their calls are ABORTED")
	fs.DurationVar(&o.SlowDeletes, "slow-deletes", 0, "delay of each deletion")
	fs.DurationVar(&o.LateReady, "late-ready", 0, "how long a snapshot is not ready to use")
	fs.BoolVar(&o.NotFound, "not-found", false, "a second deletion fails with NOT_FOUND")
	fs.Func("round-up", "`step` to which sizes are rounded up: 100Mi", setSize(&o.RoundUp))
	fs.Func("round-down", "`step` to which sizes are rounded down: 100Mi", setSize(&o.RoundDown))
	fs.BoolVar(&o.NoCapacity, "no-capacity", false, "sizes are not stated")
	fs.BoolVar(&o.NoContentSource, "no-content-source", false, "copies do not state their source")
	fs.BoolVar(&o.LongIDs, "long-ids", false, "IDs of 128 bytes with slashes")
	fs.Func("lie", "`RPC=lie`: what is false in each answer of an RPC; may be repeated", o.setLie)
	fs.BoolVar(&o.NoListSnapshots, "no-list-snapshots", false, "snapshots cannot be listed")
	fs.BoolVar(&o.NoListVolumes, "no-list-volumes", false, "volumes cannot be listed")
	fs.BoolVar(&o.NoNodeExpansion, "no-node-expansion", false, "volumes grow at the controller alone")
	fs.BoolVar(&o.NoStage, "no-stage", false, "volumes are not staged")
	fs.BoolVar(&o.NoAttach, "no-attach", false, "volumes are not attached")
	fs.BoolVar(&o.NoBlock, "no-block", false, "volumes are file systems only")
	fs.BoolVar(&o.NoGroups, "no-groups", false, "no group snapshots")
	fs.BoolVar(&o.Mounts, "mounts", false, "volumes are mounted directories")
}

// Parse returns the options that flags set, such as "-topology" and "-aborted=CreateVolume=2".
func Parse(flags ...string) (Options, error) {
	var o Options
	fs := flag.NewFlagSet("awkwarddriver", flag.ContinueOnError)
	o.Flags(fs)
	if err := fs.Parse(flags); err != nil {
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	return o, nil
}

func (o *Options) setSecrets(s string) error {
	o.Secrets = strings.Split(s, ",")
	if s == "all" {
		o.Secrets = SecretKinds()
	}
	for _, kind := range o.Secrets {
		if !slices.Contains(SecretKinds(), kind) {
			return fmt.Errorf("invalid kind %q: want %s", kind, strings.Join(SecretKinds(), ", "))
		}
	}
	return nil
}

func (r *Repeats) set(s string) error {
	rpcs, times, _ := strings.Cut(s, "=")
	n, err := strconv.Atoi(times)
	if err != nil || n < 1 {
		return fmt.Errorf("invalid repeats %q: want RPC,RPC=times", s)
	}
	r.RPCs, r.Times = strings.Split(rpcs, ","), n
	return nil
}

func (r *Repeats) concern(c *call) bool {
	return slices.Contains(r.RPCs, c.rpc) || slices.Equal(r.RPCs, []string{"all"}) && c.changes()
}

func setSize(to *int64) func(string) error {
	return func(s string) error {
		q, err := resource.ParseQuantity(s)
		*to = q.Value()
		return err
	}
}

func (o *Options) setLie(s string) error {
	rpc, name, _ := strings.Cut(s, "=")
	if !slices.Contains(lies[Lie(name)], rpc) {
		return fmt.Errorf("lie %q is not possible in %s", name, rpc)
	}
	if o.Lies == nil {
		o.Lies = map[string]Lie{}
	}
	o.Lies[rpc] = Lie(name)
	return nil
}
