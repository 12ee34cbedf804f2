// Package capacity measures a stage of an object workload more than once: at rates
// that close in on the highest at which a condition holds, with numbers of
// workers that go up, or against a null server for the client's own ceiling.
// What each step measures is what any stage does; here it is decided which step
// comes next.
package capacity
