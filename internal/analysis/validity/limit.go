package validity

import (
	"github.com/cnsbench/cnsbench/internal/analysis/tenant"
	"github.com/cnsbench/cnsbench/internal/bundle"
)

// Limits flags limits of tenants that were not held, and limits that the load never reached: those show nothing about
// the mechanism.
func Limits(tenants []tenant.Tenant) (flags []bundle.Flag) {
	for _, t := range tenants {
		for i := range t.Limits {
			l := &t.Limits[i]
			switch {
			case l.Exceeded():
				flags = append(flags, bundle.Flag{Name: "limitNotHeld", Severity: Warning, Evidence: l.Evidence(t.Name),
					Sources: []string{l.Instance}})
			case !l.Reached():
				flags = append(flags, flag("limitNotReached", Info, "%s", l.Evidence(t.Name)))
			}
		}
	}
	return flags
}
