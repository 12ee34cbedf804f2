package inject

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/cnsbench/cnsbench/internal/bounded"
)

var known = []string{"CreateVolume", "DeleteVolume", "CreateSnapshot", "Probe"}

func TestParseErrors(t *testing.T) {
	tests := []struct{ name, yaml, want string }{
		{"unknown field", "rpcs: {CreateVolume: {dealy: 1ms}}", "dealy"},
		{"unknown RPC", "rpcs: {CreateVolumes: {delay: 1ms}}", `unknown RPC "CreateVolumes"`},
		{"unknown distribution", "rpcs: {CreateVolume: {delay: weibull(1ms)}}", `unknown distribution "weibull"`},
		{"no unit", "rpcs: {CreateVolume: {delay: 5}}", "not a duration"},
		{"negative", "rpcs: {CreateVolume: {delay: -5ms}}", "not between"},
		{"arguments", "rpcs: {CreateVolume: {delay: 'exp(1ms,2ms)'}}", "one argument"},
		{"parenthesis", "rpcs: {CreateVolume: {delay: 'exp(1ms'}}", "parenthesis"},
		{"sigma", "rpcs: {CreateVolume: {delay: 'lognormal(1ms,nan)'}}", "sigma"},
		{"uniform order", "rpcs: {CreateVolume: {delay: 'uniform(2ms,1ms)'}}", "low is above high"},
		{"percentage", "rpcs: {CreateVolume: {stall: 101% of 1s}}", "percentage"},
		{"stall form", "rpcs: {CreateVolume: {stall: 1s}}", "1% of 2s"},
		{"code", "rpcs: {CreateVolume: {error: 1% BROKEN}}", "gRPC error code"},
		{"OK is no error", "rpcs: {CreateVolume: {error: 1% OK}}", "gRPC error code"},
		{"when", "rpcs: {CreateVolume: {when: later}}", "want before or after"},
		{"window", "windows: [{after: 1s}]", "not a duration"},
		{"window since", "windows: [{after: 1s, for: 1s, since: dawn}]", "want start or first"},
		{"window RPC", "windows: [{after: 1s, for: 1s, rpcs: [Nope]}]", `"Nope"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Parse([]byte(tt.yaml), known); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
	_, err := Parse([]byte("rpcs: {CreateVolume: {delay: x, error: z}, Nope: {}}"), known)
	for _, want := range []string{`"x"`, `"z"`, `"Nope"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not report %s: not every problem at once", err, want)
		}
	}
}

func TestLoad(t *testing.T) {
	file := filepath.Join(t.TempDir(), "faults.yaml")
	if err := os.WriteFile(file, []byte("rpcs: {CreateVolume: {error: 50% UNAVAILABLE}}"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, arg := range []string{file, "rpcs: {CreateVolume: {error: 50% UNAVAILABLE}}"} {
		spec, err := Load(arg, known)
		if err != nil {
			t.Fatal(err)
		}
		if r := spec.Rules["CreateVolume"]; r.ErrorProb != 0.5 || r.Error != codes.Unavailable {
			t.Errorf("Load(%q): %+v", arg, r)
		}
	}
	if _, err := Load("/no/such/file", known); err == nil {
		t.Error("a missing file is no error")
	}
	if err := os.Truncate(file, 1<<40); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file, known); !errors.Is(err, bounded.ErrTooLarge) || !strings.Contains(err.Error(), file) {
		t.Errorf("a file of 1 TiB: %v", err)
	}
}

// TestDecideIsRepeatable checks that the decision for the n-th call of an RPC does not depend on calls of other RPCs.
func TestDecideIsRepeatable(t *testing.T) {
	spec, err := Parse([]byte(`rpcs: {CreateVolume: {delay: exp(10ms), stall: 20% of 1s, error: 10% INTERNAL, hang: 5%}, "*": {delay: exp(1ms)}}`), known)
	if err != nil {
		t.Fatal(err)
	}
	fates := func(seed uint64, others int) []Decision {
		in := New(spec, seed)
		var all []Decision
		for range 500 {
			for range others {
				in.Decide("DeleteVolume", 0)
			}
			all = append(all, in.Decide("CreateVolume", 0))
		}
		return all
	}
	if diff := cmp.Diff(fates(1, 0), fates(1, 3)); diff != "" {
		t.Errorf("other calls change the fate of these:\n%s", diff)
	}
	if cmp.Equal(fates(1, 0), fates(2, 0)) {
		t.Error("two seeds give the same fates")
	}
	var stalls, fails, hangs float64
	for _, d := range fates(7, 0) {
		if d.Stall > 0 {
			stalls++
		}
		if d.Code == codes.Internal {
			fails++
		}
		if d.Hang {
			hangs++
		}
	}
	// Binomial(500, p): the tolerance is five standard deviations.
	for _, c := range []struct {
		name   string
		got, p float64
	}{{"stalls", stalls, 0.2}, {"errors", fails, 0.1}, {"hangs", hangs, 0.05}} {
		if sd := math.Sqrt(500 * c.p * (1 - c.p)); math.Abs(c.got-500*c.p) > 5*sd {
			t.Errorf("%g %s among 500, want about %g", c.got, c.name, 500*c.p)
		}
	}
}

func TestEverySparesQueries(t *testing.T) {
	spec, err := Parse([]byte(`rpcs: {"*": {delay: 10ms}}`), known)
	if err != nil {
		t.Fatal(err)
	}
	in := New(spec, 0)
	for rpc, want := range map[string]time.Duration{
		"CreateVolume": 10 * time.Millisecond, "ValidateVolumeCapabilities": 10 * time.Millisecond,
		"Probe": 0, "GetPluginInfo": 0, "NodeGetInfo": 0, "ControllerGetCapabilities": 0,
	} {
		if got := in.Decide(rpc, 0).Delay; got != want {
			t.Errorf("%s is delayed by %v, want %v", rpc, got, want)
		}
	}
}

func TestWindows(t *testing.T) {
	spec, err := Parse([]byte("windows: [{after: 10s, for: 5s}, {after: 1s, for: 2s, since: first, rpcs: [CreateSnapshot]}]"), known)
	if err != nil {
		t.Fatal(err)
	}
	in := New(spec, 0)
	for _, c := range []struct {
		rpc      string
		at, want time.Duration
	}{
		{"CreateVolume", 9 * time.Second, 0},
		{"CreateVolume", 10 * time.Second, 5 * time.Second},
		{"Probe", 14 * time.Second, time.Second},
		{"CreateVolume", 15 * time.Second, 0},
		{"CreateVolume", 21 * time.Second, 0},
		{"CreateSnapshot", 20 * time.Second, 0}, // the first call: the window opens one second later
		{"CreateSnapshot", 21 * time.Second, 2 * time.Second},
		{"CreateVolume", 21 * time.Second, 0},
		{"CreateSnapshot", 23 * time.Second, 0},
	} {
		if got := in.Decide(c.rpc, c.at).Window; got != c.want {
			t.Errorf("%s at %v waits %v, want %v", c.rpc, c.at, got, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`rpcs: {CreateVolume: {delay: "20ms+exp(10ms)", stall: 1% of 2s, error: 0.5% UNAVAILABLE, hang: 0.1%, when: after}}`))
	f.Add([]byte(`windows: [{after: 10s, for: 5s, since: first, rpcs: [CreateVolume]}]`))
	f.Add([]byte(`rpcs: {"*": {delay: "lognormal(1ms,2)+normal(1ms,1ms)+uniform(0s,1h)"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		spec, err := Parse(text, known)
		if err != nil {
			return
		}
		in := New(spec, 1)
		for _, rpc := range known {
			if d := in.Decide(rpc, time.Second); d.Delay < 0 || d.Stall < 0 || d.Window < 0 ||
				max(d.Delay, d.Stall, d.Window) > 48*time.Hour {
				t.Errorf("%q decides %+v", text, d)
			}
		}
	})
}
