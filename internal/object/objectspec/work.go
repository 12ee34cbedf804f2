package objectspec

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/object/cosbench"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/option"
	"github.com/cnsbench/cnsbench/internal/object/payload"
	"github.com/cnsbench/cnsbench/internal/object/selector"
)

func (o *reader) work(path string, s *v1alpha1.ObjectWork, top string, spec *v1alpha1.ObjectSpec) model.Work {
	w := model.Work{Kind: model.WorkKind(s.Type), Name: string(s.Name), Workers: int(s.Workers), Line: o.line(path),
		UntilSteady: s.UntilSteady,
		Interval:    o.positive(path+".interval", s.Interval), RateText: s.Rate, MaxFailures: 200_000,
		RampUp: o.duration(path+".rampUp", s.RampUp), Runtime: o.duration(path+".runtime", s.Runtime),
		RampDown: o.duration(path+".rampDown", s.RampDown), TotalBytes: o.bytes(path+".totalBytes", s.TotalBytes)}
	if w.Name == "" {
		w.Name = s.Type
	}
	if s.Type != string(model.Normal) && model.Specials[w.Kind].Op == "" {
		w.Kind = model.Delay // reported by the schema
		return w
	}
	if w.Interval < time.Second {
		o.fail(path+".interval", "at least 1s", "the interval %v is too short", w.Interval)
	}
	_, isSpecial := model.Specials[w.Kind]
	if isSpecial {
		w.MaxFailures = 0
	}
	if s.MaxFailuresPerMillion != nil {
		w.MaxFailures = int(*s.MaxFailuresPerMillion)
	}
	if s.TotalOps != nil {
		w.TotalOps = *s.TotalOps
	}
	if s.Rate != "" {
		var err error
		if w.Rate, err = cosbench.ParseRate(s.Rate); err != nil {
			o.fail(path+".rate", "", "%v", err)
		}
	}
	w.Store = o.storage(top+".storage", &spec.Storage)
	if s.Storage != nil {
		w.Store = o.storage(path+".storage", s.Storage)
	}
	if isSpecial {
		o.special(path, &w, s)
	} else {
		o.operations(path, &w, s)
	}
	return w
}

// special reads the one operation of a work that is not normal.
func (o *reader) special(path string, w *model.Work, s *v1alpha1.ObjectWork) {
	for field, given := range map[string]bool{"operations": len(s.Operations) > 0, "rate": s.Rate != "",
		"untilSteady": s.UntilSteady,
		"runtime":     s.Runtime != nil, "rampUp": s.RampUp != nil, "rampDown": s.RampDown != nil,
		"totalOps": s.TotalOps != nil, "totalBytes": s.TotalBytes != nil} {
		if given {
			o.fail(path+"."+field, "it goes once through all that its selectors cover",
				"a work of type %s has no %s", s.Type, field)
		}
	}
	if s.Division == string(model.ByNone) {
		o.fail(path+".division", "leave it out",
			"without a division each worker of a work of type %s does all of it", s.Type)
	}
	special := model.Specials[w.Kind]
	op := model.Op{Type: special.Op, Name: string(special.Op), Weight: 100, Division: special.Division,
		Line: o.line(path)}
	if o.target(path, &op, &s.ObjectTarget, true, ""); op.Division == model.ByNone {
		op.Division = special.Division // the problem was reported
	}
	o.options(path, &op, &s.ObjectTarget, nil)
	w.Ops = []model.Op{op}
}

// operations of a normal work. The fields of the work are the defaults of its operations.
func (o *reader) operations(path string, w *model.Work, s *v1alpha1.ObjectWork) {
	named := map[string]bool{}
	for i := range s.Operations {
		at := fmt.Sprintf("%s.operations[%d]", path, i)
		x := &s.Operations[i]
		if !slices.Contains(model.Types, model.OpType(x.Type)) {
			o.incomplete = true // the schema reports it
			continue
		}
		op := model.Op{Type: model.OpType(x.Type), Name: string(x.Name), Weight: int(*x.Ratio),
			Division: model.ByNone, Line: o.line(at)}
		if x.Name != "" {
			if err := model.CheckOpName(op.Name); err != nil {
				o.fail(at+".name", "", "%v", err)
			}
			if named[op.Name] {
				o.fail(at+".name", "give each a name of its own, or none",
					"another operation of the work is called %q", op.Name)
			}
			named[op.Name] = true
		}
		target := inherit(x.ObjectTarget, s.ObjectTarget, o.file.Has(at+".containerPrefix"))
		op.Verify = x.Verify
		o.read(at, &op, x)
		if op.Files, op.InOrder = o.given(x.Files, "Directory"),
			x.FileSelection == "inOrder"; op.Type == model.FileWrite && op.Files == "" {
			o.fail(at, "files: /DIRECTORY", "a filewrite needs a directory of files")
		}
		if op.Type.Prefix() {
			op.MaxKeys = 1000
		}
		if x.MaxKeys != nil {
			op.MaxKeys = int(*x.MaxKeys)
		}
		if op.CopyPrefix = x.CopyPrefix; op.CopyPrefix == "" {
			op.CopyPrefix = "copy-"
		}
		o.keys(at, &op, x)
		o.target(at, &op, &target, false, x.Container)
		o.options(at, &op, x, &s.ObjectTarget)
		w.Ops = append(w.Ops, op)
	}
	model.NameOps(w.Ops)
}

// inherit completes an operation's target by that of its work. hasPrefix says that the operation has a
// containerPrefix, which is never empty because the schema has a default.
func inherit(own, work v1alpha1.ObjectTarget, hasPrefix bool) v1alpha1.ObjectTarget {
	for _, f := range []struct{ own, work *string }{{&own.Containers, &work.Containers},
		{&own.Objects, &work.Objects}, {&own.Sizes, &work.Sizes},
		{&own.Division, &work.Division}, {&own.ContainerSuffix, &work.ContainerSuffix},
		{&own.ObjectSuffix, &work.ObjectSuffix}, {&own.Content, &work.Content}} {
		if *f.own == "" {
			*f.own = *f.work
		}
	}
	if !hasPrefix {
		own.ContainerPrefix = work.ContainerPrefix
	}
	if own.ObjectPrefix == nil {
		own.ObjectPrefix = work.ObjectPrefix
	}
	own.Chunked = own.Chunked || work.Chunked
	if own.PartSize == nil {
		own.PartSize = work.PartSize
	}
	for _, f := range []struct{ own, work **int32 }{{&own.Compressible, &work.Compressible},
		{&own.Dedupable, &work.Dedupable}, {&own.HashPrefix, &work.HashPrefix},
		{&own.PartConcurrency, &work.PartConcurrency}} {
		if *f.own == nil {
			*f.own = *f.work
		}
	}
	if own.Checks == nil {
		own.Checks = work.Checks
	}
	if own.CheckWithin == nil {
		own.CheckWithin = work.CheckWithin
	}
	return own
}

// read takes what only reads have.
func (o *reader) read(path string, op *model.Op, x *v1alpha1.ObjectOperation) {
	op.Length, op.Within = o.bytes(path+".length", x.Length), o.bytes(path+".within", x.Within)
	switch {
	case op.Length == 0 && op.Within == 0:
	case op.Type != model.Read:
		o.fail(path, "length and within are for reads", "%s of a range is not supported", op.Type)
	case op.Within == 0 || op.Length == 0:
		o.fail(path, "give length and within, the size of the objects that are read", "a range read needs both")
	case op.Length > op.Within:
		o.fail(path+".length", "", "a range of %d bytes is longer than the object of %d bytes", op.Length, op.Within)
	}
}

// target reads the containers, the objects and the content. special: of a work that is not normal; whole, if not empty,
// is the whole name of the only container.
func (o *reader) target(path string, op *model.Op, t *v1alpha1.ObjectTarget, special bool,
	whole string) {
	op.ContainerName = model.Name{Prefix: t.ContainerPrefix, Suffix: t.ContainerSuffix}
	op.ObjectName = model.Name{Prefix: "myobjects", Suffix: t.ObjectSuffix, Hash: number(t.HashPrefix)}
	op.Shape = payload.Shape{Compressible: uint8(number(t.Compressible)),
		Dedupable: uint8(number(t.Dedupable))}
	if op.Type.Prefix() {
		op.ObjectName.Prefix = "" // all of the container's
	}
	if t.ObjectPrefix != nil {
		op.ObjectName.Prefix = *t.ObjectPrefix
	}
	if t.Division != "" {
		op.Division = model.Division(t.Division)
	}
	if whole == "" {
		op.Containers = o.selector(path, "containers", t.Containers)
	} else {
		op.ContainerName = model.Name{Prefix: whole}
	}
	switch {
	case op.Type.Prefix(), op.Keys.Given():
	case op.Type == model.MakeContainer, op.Type == model.RemoveContainer, op.Type == model.FileWrite:
	default:
		op.Objects = o.selector(path, "objects", t.Objects)
	}
	op.Zero, op.Chunked = t.Content == "zero", t.Chunked
	o.checks(path, op, t)
	if op.Type == model.Copy && t.PartSize != nil {
		o.parts(path, op, t)
	}
	if !op.Type.Sized() {
		return
	}
	if t.Sizes == "" {
		o.fail(path, "such as sizes: c(64)KB", "a %s needs sizes", op.Type)
		return
	}
	var err error
	if op.Sizes, err = selector.ParseSizes(t.Sizes); err != nil {
		o.fail(path+".sizes", "", "%v", err)
	}
	if op.Type != model.Write || special && t.PartSize != nil {
		o.parts(path, op, t)
	}
}

// options reads the options of an operation: its own, and those of its work that operations of its type have.
func (o *reader) options(path string, op *model.Op, own, work any) {
	set, inherited := optionsOf(own), optionsOf(work)
	set.Take(&inherited, string(op.Type))
	for i := range option.All {
		p := &option.All[i]
		if !p.Of(&set) {
			continue
		}
		if !p.For(string(op.Type)) {
			o.fail(path+"."+p.Name, "it is for "+strings.Join(p.Types, ", "), "a %s has no %s", op.Type, p.Name)
		} else if err := p.Put(&op.Options, p.Text(&set)); err != nil {
			o.fail(path+"."+p.Name, "", "%v", err)
		}
	}
}

// number is that of a field; 0 without one.
func number(field *int32) int {
	if field == nil {
		return 0
	}
	return int(*field)
}

// optionsOf are the fields of x that are options, which have the same names.
func optionsOf(x any) (set option.Set) {
	b, err := json.Marshal(x)
	if err == nil {
		err = json.Unmarshal(b, &set)
	}
	if err != nil {
		panic(err) // fields of the API and of the set differ
	}
	return set
}

// keys reads which existing objects an operation is for.
func (o *reader) keys(path string, op *model.Op, x *v1alpha1.ObjectOperation) {
	if x.Keys == nil {
		return
	}
	if x.Objects != "" {
		o.fail(path+".objects", "leave objects or keys out", "an operation has objects by number or by keys")
	}
	op.Keys.File = o.given(x.Keys.File, "File")
	if x.Keys.Prefix != nil {
		op.Keys.Prefix, op.Keys.All = *x.Keys.Prefix, *x.Keys.Prefix == ""
	}
}

// parts reads how objects are divided into parts.
func (o *reader) parts(path string, op *model.Op, t *v1alpha1.ObjectTarget) {
	op.SetParts(o.bytes(path+".partSize", t.PartSize), number(t.PartConcurrency))
	if op.PartSize%4096 != 0 {
		o.fail(path+".partSize", "such as 5Mi", "a part of %d bytes is not a multiple of 4Ki", op.PartSize)
	}
}

// checks are those of the target that apply to the operation.
func (o *reader) checks(path string, op *model.Op, t *v1alpha1.ObjectTarget) {
	for _, name := range t.Checks {
		if c := model.IntegrityCheck(name); c.Fits(op.Type) {
			op.Checks = append(op.Checks, c)
		} else if o.file.Has(path + ".checks") {
			o.fail(path+".checks", "", "%s cannot be checked after %s", name, op.Type)
		}
	}
	if op.CheckWithin = o.duration(path+".checkWithin", t.CheckWithin); len(op.Checks) > 0 && op.CheckWithin == 0 {
		op.CheckWithin = model.CheckWithin
	}
}

func (o *reader) selector(path, field, text string) selector.Spec {
	if text == "" {
		o.fail(path, "such as "+field+": u(1,32)", "%s are missing", field)
		return selector.Spec{Kind: selector.Constant, Low: 1, High: 1} // so that nothing else is found wrong
	}
	s, err := selector.Parse(text)
	if err != nil {
		hint := ""
		if strings.Contains(text, "(") && !strings.Contains(text, ")") {
			hint = `in {…} a comma ends it: put it in quotes, such as "u(1,32)"`
		}
		o.fail(path+"."+field, hint, "%v", err)
	}
	return s
}
