package interference

import (
	"cmp"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Operations is the source of a period without operations.
const Operations = "operations"

// fewestDue is how many operations must be due in a period without any, at the mean rate of the instance: with 10, a
// Poisson process has none in 5 of 100 000 such periods.
const fewestDue = 10

// ZeroPeriods returns the times in which an instance, by the series of its tool, completed no operation, in order of
// time, with the ops in progress. They consist of whole slices: From may be up to ErrorNs earlier, and To up to
// ErrorNs later. A period begins after the first operation. ws are the windows of all ops.
func (p *Periods) ZeroPeriods(ws []dataset.Window) []Stall { return p.withOps(p.zeros, ws) }

// silent returns those times without their ops.
func silent(d *dataset.Data) []Stall {
	byInstance := map[string][]*dataset.Curve{}
	for _, c := range d.Curves() {
		if !d.IsObjectWorkload(c.Instance) {
			byInstance[c.Instance] = append(byInstance[c.Instance], c)
		}
	}
	var list []Stall
	for _, curves := range byInstance {
		list = append(list, silences(curves, d.Unreported(curves[0].Instance, curves...))...)
	}
	slices.SortFunc(list, func(a, b Stall) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Instance, b.Instance))
	})
	return list
}

// silences are the gaps between the slices of an instance's curves that have operations. A tool that runs tests in turn
// has operations of one or another. A gap ends where a process began that has left nothing.
func silences(curves []*dataset.Curve, unreported dataset.Union) (list []Stall) {
	var busy dataset.Union
	step, until, rate := op.Time(0), op.Never, 0.0
	for _, c := range curves {
		step, until = max(step, c.Step), max(until, c.Until)
		sum, of := 0.0, dataset.Progress{}
		for _, p := range c.Points {
			if p.At >= c.From && p.Value > 0 {
				of.Add(dataset.Span{From: p.At, To: c.End(p)})
				sum += p.Value * seconds(c.End(p)-p.At)
			}
		}
		if observed := seconds(c.Until - c.From); observed > 0 {
			rate = max(rate, sum/observed)
		}
		busy = append(busy, of.Union()...)
	}
	spans := dataset.Join(busy)
	for i, s := range spans {
		z := Stall{Instance: curves[0].Instance, Source: Operations, From: s.To, To: op.Never, ErrorNs: int64(step)}
		end := until - step // a tool may not report its last slice
		if i+1 < len(spans) {
			z.To = spans[i+1].From
			end = z.To
		}
		in := func(u dataset.Span) bool { return u.From >= z.From && u.From < end }
		if i := slices.IndexFunc(unreported, in); i >= 0 {
			end = unreported[i].From
			z.To = end
		}
		z.LengthNs = int64(end - z.From)
		if end-z.From > step/2 && rate*seconds(end-z.From) >= fewestDue {
			list = append(list, z)
		}
	}
	return list
}

func seconds(t op.Time) float64 { return float64(t) / 1e9 }
