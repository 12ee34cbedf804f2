package loadgen

import "fmt"

// Finding is a reason not to trust the figures of a work.
type Finding struct {
	Code    string // of the validity flag
	Invalid bool   // the figures must not be used
	Text    string
}

// Findings of a work that has ended, or was lost.
func (w *WorkResult) Findings() (list []Finding) {
	add := func(code string, invalid bool, format string, args ...any) {
		list = append(list, Finding{code, invalid, fmt.Sprintf(format, args...)})
	}
	if bad, all := w.Violated(); bad > 0 {
		add("inconsistent", false, "%d of %d checks found the store inconsistent", bad, all)
	}
	if lost, all := w.Lost(); lost > 0 {
		add("lost-operations", false, "%d of %d operations that were due had not begun, or not ended, when it "+
			"ended; they count as infinite", lost, all)
	}
	if evidence, invalid, ok := w.NoSuccess(); ok {
		add("noSuccess", invalid, "%s", evidence)
	}
	if evidence, ok := w.NoRamp(); ok {
		add("no-ramp-up", false, "%s", evidence)
	}
	return list
}
