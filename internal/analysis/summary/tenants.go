package summary

// emptyTenantLists replaces nil by empty lists in the tenants.
func (s *Summary) emptyTenantLists() {
	for i := range s.Tenants {
		t := &s.Tenants[i]
		notNil(&t.Pools)
		notNil(&t.Targets)
		notNil(&t.Steps)
		notNil(&t.Limits)
		for k := range t.Steps {
			notNil(&t.Steps[k].Metrics)
		}
	}
}
