package parse

// Report collects the problems and warnings of one Benchmark. It is not safe for
// concurrent use.
type Report struct {
	*Document // the Benchmark; nil until it is parsed
	// Faulty holds the paths with a problem from the schema check.
	Faulty   map[string]bool
	Problems []Problem
	Warnings []Problem
}

// Fail reports a problem at a path of the Benchmark, unless the schema check has
// already reported one at the same path.
func (r *Report) Fail(path, hint, format string, args ...any) {
	if !r.Faulty[path] {
		r.Add(r.Problem(path, hint, format, args...))
	}
}

// Warn adds a warning at a path of the Benchmark.
func (r *Report) Warn(path, hint, format string, args ...any) {
	r.Warnings = append(r.Warnings, r.Problem(path, hint, format, args...))
}

// Add adds problems that have their places already.
func (r *Report) Add(ps ...Problem) { r.Problems = append(r.Problems, ps...) }
