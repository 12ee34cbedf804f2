package cli

// Growth of the heap between two collections, in per cent, of parts of a command.
const (
	growthOfRun    = 400 // CPU time of the runner is missing in what it measures
	growthOfReader = 25  // of closing and reading: most is arrays without pointers, which a collection does not read
	growthOfLoad   = 40  // of object workloads: their hot path allocates nothing
	growthOfShow   = 50  // its user waits for it, and it makes no report, which needs memory besides
)
