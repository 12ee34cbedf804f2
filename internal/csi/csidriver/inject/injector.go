package inject

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
)

// Decision has the injected effects of one call.
type Decision struct {
	// Window is how long the call waits for the end of a stall window, always before its work.
	Window time.Duration
	// Delay and Stall are slept one after the other.
	Delay, Stall time.Duration
	// Hang: the call is never answered.
	Hang bool
	// Code is the error to return, or codes.OK.
	Code codes.Code
	// After: Delay, Stall, Hang and Code apply after the work rather than before it.
	After bool
}

// Injector makes the decisions of one driver process. It is safe for concurrent use.
type Injector struct {
	spec Spec
	seed uint64

	mu      sync.Mutex
	calls   map[string]uint64
	opening []time.Duration // when each window opens, since the driver's start; -1 while it waits for its first call
}

// New returns an injector; time counts from the driver's start.
func New(spec Spec, seed uint64) *Injector {
	in := &Injector{spec: spec, seed: seed, calls: map[string]uint64{},
		opening: make([]time.Duration, len(spec.Windows))}
	for i, w := range spec.Windows {
		in.opening[i] = w.After
		if w.SinceFirst {
			in.opening[i] = -1
		}
	}
	return in
}

// Decide returns the decision for the next call of an RPC, which arrived at sinceStart.
func (in *Injector) Decide(rpc string, sinceStart time.Duration) Decision {
	in.mu.Lock()
	in.calls[rpc]++
	n := in.calls[rpc]
	window := in.windowWait(rpc, sinceStart)
	in.mu.Unlock()

	rule, ok := in.spec.Rules[rpc]
	if !ok && !exempt(rpc) {
		rule = in.spec.Rules[Every]
	}
	d := rule.draw(callRand(in.seed, rpc, n))
	d.Window = window
	return d
}

// draw uses the same number of random draws for each part whatever is configured, so that adding an error
// rate does not change which calls stall.
func (r Rule) draw(rnd *rand.Rand) Decision {
	d := Decision{After: r.After}
	hang, fails, stalls := rnd.Float64() < r.HangProb, rnd.Float64() < r.ErrorProb, rnd.Float64() < r.StallProb
	d.Hang = hang
	if fails {
		d.Code = r.Error
	}
	d.Delay = r.Delay.Sample(rnd)
	if stalls {
		d.Stall = r.Stall.Sample(rnd)
	}
	return d
}

// windowWait returns how long a call that arrives now waits; the caller holds mu.
func (in *Injector) windowWait(rpc string, now time.Duration) time.Duration {
	var wait time.Duration
	for i, w := range in.spec.Windows {
		if len(w.RPCs) > 0 && !slices.Contains(w.RPCs, rpc) {
			continue
		}
		if in.opening[i] < 0 {
			if exempt(rpc) {
				continue
			}
			in.opening[i] = now + w.After
		}
		if end := in.opening[i] + w.For; now >= in.opening[i] && now < end {
			wait = max(wait, end-now)
		}
	}
	return wait
}

// exempt reports whether clients use an RPC to discover a driver.
func exempt(rpc string) bool {
	return strings.HasSuffix(rpc, "Capabilities") && rpc != "ValidateVolumeCapabilities" ||
		rpc == "GetPluginInfo" || rpc == "Probe" || rpc == "NodeGetInfo"
}

// callRand returns a generator for one call. SplitMix64's finaliser spreads consecutive call numbers over the
// whole state, since PCG does not hash its seeds.
func callRand(seed uint64, rpc string, n uint64) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(rpc))
	return rand.New(rand.NewPCG(mix(seed^h.Sum64()), mix(n)))
}

// mix is the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
