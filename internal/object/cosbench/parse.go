package cosbench

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/hints"
	"github.com/cnsbench/cnsbench/internal/object/backend"
	"github.com/cnsbench/cnsbench/internal/object/model"
)

// Options are the external values that a file can refer to.
type Options struct {
	// Getenv returns the value of ${NAME}; nil: no variable is set.
	Getenv func(name string) (string, bool)
	// Hosts are the hosts that a work can name as its driver; nil: there is a single host, which executes all
	// works.
	Hosts []string
	// Secrets returns the credentials of a store from any source; nil: those in the file.
	Secrets func(*model.Store) (model.Secrets, error)
}

// Parse parses a workload and reports all its problems, at most 100. If they are Fatal, the workload must not
// be run.
func Parse(data []byte, o Options) (*model.Workload, model.Problems) {
	root, problems := parseXML(data)
	p := &parser{Problems: problems, getenv: o.Getenv, hosts: o.Hosts}
	w := &model.Workload{}
	if root != nil && !problems.Fatal() {
		w = p.workload(root)
		w.MarkParts()
		if !p.Fatal() {
			p.Problems = append(p.Problems, model.Check(w, model.COSBench, backend.Traits)...)
			p.exposed(root, Secrets(w, o.Secrets))
			p.empty(w)
		}
	}
	p.Sort()
	if n := len(p.Problems); n > maxProblems {
		p.Problems = p.Problems.First(maxProblems)
		p.Problems = append(p.Problems, model.Problem{Warning: !p.Fatal(),
			Message: fmt.Sprintf("and %d more problems", n-maxProblems)})
	}
	return w, p.Problems
}

// empty warns of objects of 0 bytes if any reads are verified.
func (p *parser) empty(w *model.Workload) {
	verified, lines := false, []int(nil)
	for i := range w.Stages {
		for j := range w.Stages[i].Works {
			for _, o := range w.Stages[i].Works[j].Ops {
				if verified = verified || o.Verify; o.Sizes.Unit > 0 && o.Sizes.Low == 0 && len(lines) < maxProblems {
					lines = append(lines, o.Line)
				}
			}
		}
	}
	for _, line := range lines {
		if verified {
			p.warnOnce(line, "let sizes begin at 1", "hashCheck reports objects of 0 bytes as truncated")
		}
	}
}

func (p *parser) workload(n *node) *model.Workload {
	w := &model.Workload{Name: n.attrs["name"].value, Description: n.attrs["description"].value}
	if n.name != "workload" {
		p.Fail(n.line, "a file begins with <workload>", "<%s> is not a COSBench workload", n.name)
		return w
	}
	p.only(n, "name description trigger config", "auth storage workflow")
	p.trigger(n)
	if w.Name == "" {
		p.Fail(n.line, "", "the workload has no name")
	}
	top, flows := p.down(level{}, n), 0
	for _, flow := range n.children {
		if flow.name != "workflow" {
			continue
		}
		if flows++; flows > 1 {
			p.Fail(flow.line, "", "there is a second workflow")
		}
		p.only(flow, "config", "workstage auth storage")
		l := p.down(top, flow)
		for _, s := range flow.children {
			if s.name == "workstage" {
				w.Stages = append(w.Stages, p.stage(s, l))
			}
		}
		var names []nameOf
		for i := range w.Stages {
			names = append(names, nameOf{&w.Stages[i].Name, w.Stages[i].Line})
		}
		p.distinct("workstage", names)
	}
	if flows == 0 {
		p.Fail(n.line, "put the workstages into <workflow>", "there is no workflow")
	}
	return w
}

// nameOf is a name and its line.
type nameOf struct {
	name *string
	line int
}

// distinct makes names unique, since results are stored by name. COSBench uses numbers instead.
func (p *parser) distinct(what string, list []nameOf) {
	taken, last := map[string]bool{}, map[string]int{}
	for _, x := range list {
		taken[*x.name] = true
	}
	for _, x := range list {
		name, n := *x.name, last[*x.name]+1
		if n > 1 {
			for *x.name = fmt.Sprintf("%s-%d", name, n); taken[*x.name]; *x.name = fmt.Sprintf("%s-%d", name, n) {
				n++
			}
			taken[*x.name] = true
			p.Warn(x.line, "", "there is a %s %q before: this one is called %q", what, clip(name), clip(*x.name))
		}
		last[name] = n
	}
}

func (p *parser) trigger(n *node) {
	if a, ok := n.attrs["trigger"]; ok && a.value != "" {
		p.Warn(a.line, "run it yourself", "the trigger %q is not executed: a file does not start programs",
			clip(a.value))
	}
}

// maxChecked is the maximum number of works with checks in a stage.
const maxChecked = 1000

func (p *parser) stage(n *node, l level) model.Stage {
	p.only(n, "name closuredelay trigger config scale repetitions", "auth storage work")
	p.trigger(n)
	s := model.Stage{Name: n.attrs["name"].value, Line: n.line, Closure: p.seconds(n, "closuredelay", 0)}
	if s.Name == "" {
		p.Fail(n.line, "", "the workstage has no name")
	}
	s.Scale = p.scale(n)
	s.Repetitions = int(p.integer(n, "repetitions", 1, 1000))
	if len(s.Scale) == 0 && s.Repetitions > 1 {
		p.Warn(n.line, `add a scale, such as scale="4,8,16"`, "workstage %q is not repeated without a scale", s.Name)
	}
	l = p.down(l, n)
	for _, c := range n.children {
		if c.name == "work" {
			s.Works = append(s.Works, p.work(c, l))
		}
	}
	var names []nameOf
	checked := 0
	for i := range s.Works {
		names = append(names, nameOf{&s.Works[i].Name, s.Works[i].Line})
		if s.Works[i].Owned() {
			checked++
		}
	}
	p.distinct("work", names)
	if checked > maxChecked {
		p.Fail(n.line, "use more workers in fewer works", "workstage %q has more than %d works with checks",
			clip(s.Name), maxChecked)
	}
	return s
}

// scale parses numbers of workers separated by commas.
func (p *parser) scale(n *node) (list []int) {
	a, ok := n.attrs["scale"]
	if !ok || strings.TrimSpace(a.value) == "" {
		return nil
	}
	for text := range strings.SplitSeq(a.value, ",") {
		v, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || v < 1 || slices.Contains(list, v) {
			p.Fail(a.line, `different numbers of workers: scale="4,8,16"`, "invalid scale=%q of <%s>", clip(a.value),
				n.name)
			return nil
		}
		list = append(list, v)
	}
	return list
}

// newer are types of works and operations of later versions of COSBench, with their replacement in CNSBench.
var newer = map[string]string{
	"mprepare": "prepare writes objects whole; in parts a work of type normal does, by an operation multipart " +
		"with objects=r(a,b) and totalOps",
	"mwrite":     "multipart writes objects in parts",
	"mfilewrite": "filewrite sends files whole, multipart writes in parts",
	"localwrite": "write to a storage of type file",
	"restore":    "nothing is fetched from an archive here; read what is there",
}

const normalFailures = 200_000 // per million operations

// kinds are the types of works.
var kinds = []string{string(model.Normal), string(model.Init), string(model.Prepare), string(model.Cleanup),
	string(model.Dispose), string(model.Delay)}

// kind returns the kind of a work. As in COSBench, a type that it does not know is that of a normal work.
func (p *parser) kind(n *node) model.WorkKind {
	a := n.attrs["type"]
	kind := strings.ToLower(a.value)
	switch {
	case kind == "":
		return model.Normal
	case slices.Contains(kinds, kind):
		return model.WorkKind(kind)
	case newer[kind] != "":
		p.Fail(a.line, newer[kind], "the type of work %q of later versions of COSBench is not supported", kind)
		p.column(a.at)
	default:
		p.warnAt(a.at, cmp.Or(hints.Nearest(kind, kinds), "there are "+strings.Join(kinds, ", ")),
			"the type %q of <work> is unknown: the work is a normal one, as in COSBench", clip(a.value))
	}
	return model.Normal
}

func (p *parser) work(n *node, l level) model.Work {
	p.only(n, "name type workers interval division runtime rampup rampdown totalOps totalBytes afr driver config "+
		"rate autoterm", "auth storage operation")
	w := model.Work{Name: n.attrs["name"].value, Kind: p.kind(n), Line: n.line}
	special, isSpecial := model.Specials[w.Kind]
	if w.Name == "" {
		w.Name = string(w.Kind)
	}
	failures := int64(normalFailures)
	if isSpecial {
		failures = 0
	}
	w.Workers = int(p.integer(n, "workers", 0, math.MaxInt32))
	w.MaxFailures = int(p.integer(n, "afr", failures, 1_000_000))
	w.Interval = p.seconds(n, "interval", 5*time.Second)
	w.RampUp, w.Runtime, w.RampDown = p.seconds(n, "rampup", 0), p.seconds(n, "runtime", 0), p.seconds(n, "rampdown", 0)
	w.TotalOps, w.TotalBytes = p.integer(n, "totalOps", 0, math.MaxInt64), p.size(n, "totalBytes")
	if w.Interval < time.Second {
		p.Fail(n.attrs["interval"].line, "at least 1", "the interval %v is too short", w.Interval)
		w.Interval = time.Second
	}
	if a, ok := n.attrs["driver"]; ok && a.value != "" {
		p.driver(&w, a)
	}
	if w.Kind == model.Delay {
		return w
	}
	l = p.down(l, n)
	w.Store = p.store(n, w.Name, l)
	if isSpecial {
		p.once(n, &w, special.Division)
		w.Ops = []model.Op{p.specialOp(n, l, special.Op, special.Division)}
		p.unused([]*node{n}, &w)
		return w
	}
	p.pace(n, l, &w)
	p.operations(n, l, &w)
	p.unused(append([]*node{n}, n.children...), &w)
	return w
}

// pace reads the rate of a normal work, and whether it ends when it is steady.
func (p *parser) pace(n *node, l level, w *model.Work) {
	w.RateText = l.config["rate"].value
	line := l.config["rate"].line
	if a, ok := n.attrs["rate"]; ok {
		w.RateText, line = a.value, a.line
	}
	var err error
	if text := cmp.Or(n.attrs["autoterm"].value, l.config["autoterm"].value); text != "" {
		if w.UntilSteady, err = parseBool(text); err != nil {
			p.Fail(n.line, "", "autoterm: %v", err)
		}
	}
	if w.RateText != "" {
		if w.Rate, err = ParseRate(w.RateText); err != nil {
			p.Fail(line, "", "%v", err)
		}
	}
}

// once removes the settings of a special work that COSBench overrides: the work ends only with its last item,
// has no rate, and has a fixed division.
func (p *parser) once(n *node, w *model.Work, division model.Division) {
	own, _ := config(nil).with(n.attrs["config"])
	var ignored []string
	line := 0
	for _, a := range []struct {
		name  string
		means bool
	}{{"runtime", w.Runtime > 0}, {"rampup", w.RampUp > 0}, {"rampdown", w.RampDown > 0},
		{"totalOps", w.TotalOps > 0}, {"totalBytes", w.TotalBytes > 0},
		{"autoterm", n.attrs["autoterm"].value+own["autoterm"].value != ""},
		{"rate", n.attrs["rate"].value+own["rate"].value != ""}, {"division", p.division(n, division) != division}} {
		if !a.means {
			continue
		}
		if ignored = append(ignored, a.name); line == 0 {
			line = cmp.Or(n.attrs[a.name].line, own[a.name].line)
		}
	}
	if ignored != nil {
		p.Warn(line, "", "a work of type %s ignores %s: it goes once through all that its selectors cover, "+
			"divided by %s", w.Kind, strings.Join(ignored, ", "), division)
	}
	w.RampUp, w.Runtime, w.RampDown, w.TotalOps, w.TotalBytes = 0, 0, 0, 0, 0
}

// driver assigns a work to a host.
func (p *parser) driver(w *model.Work, a attr) {
	switch {
	case p.hosts == nil:
		p.Warn(a.line, "--hosts of cnsbench object run gives hosts",
			"driver %q is ignored: this machine does all of the work", clip(a.value))
	case !slices.Contains(p.hosts, a.value):
		p.Fail(a.line, "there are "+strings.Join(p.hosts, ", "), "unknown host %q", clip(a.value))
	default:
		w.Driver = a.value
	}
}

func (p *parser) operations(n *node, l level, w *model.Work) {
	division := p.division(n, model.ByNone)
	named := map[string]bool{}
	for _, c := range n.children {
		if c.name != "operation" {
			continue
		}
		o, ok := p.operation(c, p.down(l, c), division)
		if !ok {
			continue
		}
		o.Name = p.opName(c, o.Type, named)
		w.Ops = append(w.Ops, o)
	}
	model.NameOps(w.Ops)
}

// opName returns the name in an operation's own config, which COSBench shows in its tables, or "".
func (p *parser) opName(n *node, t model.OpType, named map[string]bool) string {
	own, _ := config(nil).with(n.attrs["config"])
	e := own["name"]
	if e.value == "" || strings.EqualFold(e.value, string(t)) {
		return ""
	}
	err := model.CheckOpName(e.value)
	if named[e.value] {
		err = fmt.Errorf("there is a %q before in the work", clip(e.value))
	}
	if err != nil {
		p.Warn(e.line, "", "the operation is called by its type: %v", err)
		return ""
	}
	named[e.value] = true
	return e.value
}

func (p *parser) specialOp(n *node, l level, t model.OpType, division model.Division) model.Op {
	for _, c := range n.children {
		if c.name == "operation" {
			p.Warn(c.line, "", "the operation has no meaning in a work of type %s", n.attrs["type"].value)
		}
	}
	o := model.Op{Type: t, Name: string(t), Weight: 100, Division: division, Line: n.line}
	p.configure(&o, n, l, true)
	return o
}

func (p *parser) operation(n *node, l level, division model.Division) (model.Op, bool) {
	p.only(n, "id type ratio division config", "") // COSBench's own files number operations by id, which is ignored
	o := model.Op{Type: model.OpType(strings.ToLower(n.attrs["type"].value)), Line: n.line}
	if !slices.Contains(model.Types, o.Type) {
		var names []string
		for _, t := range model.Types {
			names = append(names, string(t))
		}
		p.Fail(n.line, cmp.Or(newer[string(o.Type)], "there are "+strings.Join(names, ", ")),
			"invalid type of operation %q", o.Type)
		return o, false
	}
	o.Weight = int(p.integer(n, "ratio", 100, 100))
	o.Division = p.division(n, division)
	p.configure(&o, n, l, false)
	p.ranged(&o, l)
	return o, true
}

func (p *parser) division(n *node, inherited model.Division) model.Division {
	a, ok := n.attrs["division"]
	switch d := model.Division(strings.ToLower(a.value)); {
	case !ok:
		return inherited
	case d == model.ByNone, d == model.ByContainer, d == model.ByObject:
		return d
	}
	p.Fail(a.line, "there are none, container, object", "invalid division %q", a.value)
	return inherited
}
