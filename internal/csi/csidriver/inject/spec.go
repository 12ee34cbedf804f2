package inject

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"sigs.k8s.io/yaml"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/dist"
)

// Every is the rule name for all RPCs of the controller, group controller and node services without a rule of
// their own. The identity service and capability queries are exempt, so that clients can still connect.
const Every = "*"

// file is the YAML form. Field comments give the grammar.
type file struct {
	RPCs    map[string]fileRule `json:"rpcs"`
	Windows []fileWindow        `json:"windows"`
}

type fileRule struct {
	Delay string `json:"delay"` // a distribution: "20ms+exp(10ms)"
	Stall string `json:"stall"` // "1% of 2s"; what follows "of" is a distribution
	Error string `json:"error"` // "0.5% UNAVAILABLE"
	Hang  string `json:"hang"`  // "0.1%": never answers; the client has to give up
	When  string `json:"when"`  // before (default) or after the work itself
}

type fileWindow struct {
	After string   `json:"after"` // "10s"
	For   string   `json:"for"`   // "5s"
	Since string   `json:"since"` // start (default): of the driver; first: of the first call that the window concerns
	RPCs  []string `json:"rpcs"`  // none: all, the identity service too
}

// Rule has the injected effects of one RPC.
type Rule struct {
	Delay     dist.Dist
	StallProb float64
	Stall     dist.Dist
	ErrorProb float64
	Error     codes.Code
	HangProb  float64
	// After injects after the work rather than before it, so that a client that gives up or gets an error
	// leaves an object behind.
	After bool
}

// Window is a period during which matching calls wait for its end.
type Window struct {
	After, For time.Duration
	SinceFirst bool
	RPCs       []string
}

// Spec is a parsed injection. The zero value injects nothing.
type Spec struct {
	Rules   map[string]Rule
	Windows []Window
}

// maxText bounds the bytes read of an injection file.
const maxText = 1 << 20

// Load parses an injection, given as a path to a YAML file or, if no such file exists, as YAML. An empty
// argument injects nothing. known lists the RPCs that can be named.
func Load(pathOrYAML string, known []string) (Spec, error) {
	if pathOrYAML == "" {
		return Spec{}, nil
	}
	text, err := bounded.ReadFile(nil, pathOrYAML, maxText)
	switch {
	case err == nil:
	case errors.Is(err, bounded.ErrTooLarge):
		return Spec{}, fmt.Errorf("injection: %w", err)
	case strings.ContainsAny(pathOrYAML, ":{\n"):
		pathOrYAML, text = "inline", []byte(pathOrYAML)
	default:
		return Spec{}, fmt.Errorf("injection: neither a readable file nor YAML: %w", err)
	}
	spec, err := Parse(text, known)
	if err != nil {
		return Spec{}, fmt.Errorf("injection (%s): %w", pathOrYAML, err)
	}
	return spec, nil
}

// Parse parses the YAML of an injection and reports all problems.
func Parse(text []byte, known []string) (Spec, error) {
	var f file
	if err := yaml.UnmarshalStrict(text, &f); err != nil {
		return Spec{}, err
	}
	spec := Spec{Rules: make(map[string]Rule, len(f.RPCs))}
	var problems []error
	for _, rpc := range slices.Sorted(maps.Keys(f.RPCs)) {
		if rpc != Every {
			problems = append(problems, checkRPC(rpc, known))
		}
		rule, err := parseRule(f.RPCs[rpc])
		if err != nil {
			problems = append(problems, fmt.Errorf("rpcs.%s: %w", rpc, err))
		}
		spec.Rules[rpc] = rule
	}
	for i, fw := range f.Windows {
		w, err := parseWindow(fw, known)
		if err != nil {
			problems = append(problems, fmt.Errorf("windows[%d]: %w", i, err))
		}
		spec.Windows = append(spec.Windows, w)
	}
	return spec, errors.Join(problems...)
}

func parseRule(f fileRule) (Rule, error) {
	var (
		r        Rule
		problems []error
		err      error
	)
	if f.Delay != "" {
		r.Delay, err = dist.Parse(f.Delay)
		problems = append(problems, err)
	}
	if f.Stall != "" {
		r.StallProb, r.Stall, err = parseStall(f.Stall)
		problems = append(problems, err)
	}
	if f.Error != "" {
		r.ErrorProb, r.Error, err = parseError(f.Error)
		problems = append(problems, err)
	}
	if f.Hang != "" {
		r.HangProb, err = parsePercent(f.Hang)
		problems = append(problems, err)
	}
	switch f.When {
	case "", "before":
	case "after":
		r.After = true
	default:
		problems = append(problems, fmt.Errorf("invalid when %q: want before or after", f.When))
	}
	return r, errors.Join(problems...)
}

func parseStall(s string) (float64, dist.Dist, error) {
	chance, length, ok := strings.Cut(s, " of ")
	if !ok {
		return 0, dist.Dist{}, fmt.Errorf("invalid stall %q: want a form like \"1%% of 2s\"", s)
	}
	p, errP := parsePercent(chance)
	d, errD := dist.Parse(strings.TrimSpace(length))
	return p, d, errors.Join(errP, errD)
}

func parseError(s string) (float64, codes.Code, error) {
	chance, name, _ := strings.Cut(strings.TrimSpace(s), " ")
	p, err := parsePercent(chance)
	if err != nil {
		return 0, 0, fmt.Errorf("error: %w: want a form like \"0.5%% UNAVAILABLE\"", err)
	}
	var code codes.Code
	if err := code.UnmarshalJSON([]byte(`"` + strings.TrimSpace(name) + `"`)); err != nil || code == codes.OK {
		return 0, 0, fmt.Errorf("invalid error %q: want a gRPC error code such as UNAVAILABLE", strings.TrimSpace(name))
	}
	return p, code, nil
}

func parseWindow(f fileWindow, known []string) (Window, error) {
	w := Window{RPCs: f.RPCs, SinceFirst: f.Since == "first"}
	var problems []error
	var errAfter, errFor error
	w.After, errAfter = dist.ParseDuration(f.After)
	w.For, errFor = dist.ParseDuration(f.For)
	problems = append(problems, errAfter, errFor)
	if f.Since != "" && f.Since != "start" && f.Since != "first" {
		problems = append(problems, fmt.Errorf("invalid since %q: want start or first", f.Since))
	}
	for _, rpc := range f.RPCs {
		problems = append(problems, checkRPC(rpc, known))
	}
	return w, errors.Join(problems...)
}

func checkRPC(rpc string, known []string) error {
	if slices.Contains(known, rpc) {
		return nil
	}
	return fmt.Errorf("unknown RPC %q: want one of %s", rpc, strings.Join(known, ", "))
}

// parsePercent parses "1%" into 0.01.
func parsePercent(s string) (float64, error) {
	number, ok := strings.CutSuffix(strings.TrimSpace(s), "%")
	p, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(p >= 0 && p <= 100) {
		return 0, fmt.Errorf("invalid percentage %q: want 0%% to 100%%", s)
	}
	return p / 100, nil
}
