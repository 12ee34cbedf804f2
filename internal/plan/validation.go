package plan

// Validation is the answer to whether files are valid, as validate --output json prints it.
type Validation struct {
	Valid    bool      `json:"valid"`
	Name     string    `json:"name,omitempty" doc:"of the Benchmark, if it is valid"`
	Problems []Problem `json:"problems"`
	Warnings []Problem `json:"warnings"`
}
