package op

// Kind is what an action does.
type Kind string

// The kinds of actions, in the order of the documentation.
const (
	Create   Kind = "create"
	Snapshot Kind = "snapshot"
	Restore  Kind = "restore"
	Clone    Kind = "clone"
	Resize   Kind = "resize"
	Reattach Kind = "reattach"
	Rollout  Kind = "rollout"
	Drain    Kind = "drain"
	Scale    Kind = "scale"
	Kill     Kind = "kill"
	Modify   Kind = "modify"
	Check    Kind = "check"
	Delete   Kind = "delete"
)

// Effect is the effect of an op on the objects of its run.
type Effect int8

// The effects.
const (
	Changes  Effect = iota // the target stays, with other properties
	Makes                  // a new object exists
	Removes                // the target is gone
	Restarts               // processes or pods end, and others take their place
)

// Effect returns the effect of ops of a kind. A kind that is not listed here only changes its target.
func (k Kind) Effect() Effect {
	switch k {
	case Create, Snapshot, Restore, Clone:
		return Makes
	case Delete:
		return Removes
	case Kill, Reattach, Rollout, Drain, Scale:
		return Restarts
	}
	return Changes
}
