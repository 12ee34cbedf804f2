package loadgen

import (
	"fmt"
	"strings"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/model"
)

// Finding is a reason not to trust the figures of a work, or of a stage.
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
	if evidence, ok := w.notSteady(); ok {
		add("not-steady", false, "%s", evidence)
	}
	if evidence, invalid, ok := w.NoSuccess(); ok {
		add("noSuccess", invalid, "%s", evidence)
	}
	if n := w.notEncrypted(); n > 0 {
		add("not-encrypted", false, "%d writes with the option encryption succeeded, and the server did not confirm that "+
			"it encrypts them", n)
	}
	if evidence, ok := w.NoRamp(); ok {
		add("no-ramp-up", false, "%s", evidence)
	}
	return list
}

// notEncrypted are the writes that succeeded and are not known to be encrypted, although they were to be.
func (w *WorkResult) notEncrypted() (n int64) {
	for k, c := range w.Cells {
		if k.OK && k.Whole() && strings.HasSuffix(k.Label, " "+client.NotEncrypted) {
			n += c.N
		}
	}
	return n
}

// Findings of a stage: those of its works, lost hosts, and a client that limited what is measured.
func (s *StageResult) Findings() (list []Finding) {
	measured := false
	for i := range s.Works {
		w := &s.Works[i]
		measured = measured || w.Work.Kind == model.Normal
		for _, f := range w.Findings() {
			f.Text = fmt.Sprintf("stage %s, work %s: %s", s.Name, w.Work.Name, f.Text)
			list = append(list, f)
		}
	}
	for i := range s.Hosts {
		if h := &s.Hosts[i]; h.Lost != nil {
			list = append(list, Finding{"incomplete", true, fmt.Sprintf("stage %s: host %s was lost: %v; %s", s.Name,
				h.Host, h.Lost, strings.Join(h.Missing, "; "))})
		}
	}
	for i := range s.Outages {
		list = append(list, Finding{"outage", false, fmt.Sprintf("stage %s: %s", s.Name,
			outageText(&s.Outages[i], s.Began))})
	}
	if b, evidence := s.Bound(); measured && b == ClientBound {
		list = append(list, Finding{string(b), false, fmt.Sprintf("stage %s: %s", s.Name, evidence)})
	}
	return list
}
