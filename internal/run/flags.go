package run

import (
	"fmt"
	"slices"

	"github.com/cnsbench/cnsbench/internal/bundle"
)

// warn adds a validity flag to the result.
func (r *runner) warn(code, evidence string) { r.flag(warning, code, evidence) }

// warnOf adds a warning about one source; see flagOf.
func (r *runner) warnOf(code, source, message string) {
	r.flagOf(sameFlag{severity: warning, code: code, message: message}, source)
}

// flagOf adds a flag about one source. Equal flags of several sources become one flag, which lists all
// sources and has their number in its evidence.
func (r *runner) flagOf(same sameFlag, source string) {
	r.Record.Log(r.Clock.Now(), "run", source+": "+same.message)
	r.flags.Lock()
	defer r.flags.Unlock()
	at, seen := r.same[same]
	if !seen {
		r.Observer.Log("run", source+": "+same.message)
		at = len(r.result.Flags)
		r.same[same] = at
		r.result.Flags = append(r.result.Flags, bundle.Flag{Name: same.code, Severity: same.severity})
	}
	f := &r.result.Flags[at]
	if !slices.Contains(f.Sources, source) {
		f.Sources = append(f.Sources, source)
	}
	who := f.Sources[0]
	if others := len(f.Sources) - 1; others > 0 {
		who = fmt.Sprintf("%s and %d more", who, others)
	}
	f.Evidence = who + ": " + same.message
}

func (r *runner) flag(severity, code, evidence string) {
	r.log("run", evidence)
	r.flags.Lock()
	defer r.flags.Unlock()
	r.result.Flags = append(r.result.Flags, bundle.Flag{Name: code, Severity: severity, Evidence: evidence})
}

// Severities of flags.
const (
	info    = "info"
	warning = "warning"
	invalid = "invalid"
)

// flagRead flags the cut files that a parser has read: the numbers from them are incomplete.
func (r *runner) flagRead(instance, container string, names map[string]bool) {
	for _, c := range r.outputs.readByParser(instance, container, names) {
		r.flag(invalid, outputCut,
			fmt.Sprintf("%s/%s: its figures are of a part of %s; spec.maxOutput says how much is kept", instance,
				container, c))
	}
}
