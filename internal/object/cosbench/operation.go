package cosbench

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/hints"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/option"
	"github.com/cnsbench/cnsbench/internal/object/payload"
	"github.com/cnsbench/cnsbench/internal/object/selector"
)

// operationKeys are the keys of config strings, those of COSBench in its spelling and those of CNSBench.
var operationKeys = []string{
	"containers", "objects", "sizes", "cprefix", "csuffix", "oprefix", "osuffix", "chunked", "content", "hashCheck",
	"createContainer",
	"deleteContainer", "files", "fileselection", "name",
	"length", "within", "partsize", "partconcurrency", "maxkeys", "copyprefix", "rate", "autoterm", "check", "checkwithin",
	"storageclass", "encryption", "checksum", "ifnonematch", "versioning", "objectlock", "ranges", "batch", "retention",
	"delimiter", "allpages", "container", "keysfile", "keysprefix", "keyselection",
	"compressible", "dedupable", "hashprefix",
}

// containerMakers are the keys by which COSBench's prepare creates containers and cleanup removes them, with
// the kind of work that does so in CNSBench.
var containerMakers = map[string]model.WorkKind{"createcontainer": model.Init, "deletecontainer": model.Dispose}

// Defaults of COSBench and of CNSBench.
const (
	defaultContainer  = "mycontainers"
	defaultObject     = "myobjects"
	defaultMaxKeys    = 1000
	defaultCopyPrefix = "copy-"
)

// configure sets the fields of o from the config strings that apply to it. special: of a work that is not normal.
func (p *parser) configure(o *model.Op, n *node, l level, special bool) {
	c := l.config
	p.known(n, c)
	o.ContainerName = model.Name{Prefix: orDefault(c, "cprefix", defaultContainer), Suffix: c["csuffix"].value}
	o.ObjectName = model.Name{Prefix: orDefault(c, "oprefix", defaultObject), Suffix: c["osuffix"].value}
	o.ObjectName.Hash = p.small(c, "hashprefix", model.MaxHash)
	p.existing(o, c)
	if e := c["container"]; e.value != "" && !special {
		o.ContainerName = model.Name{Prefix: e.value}
	} else {
		o.Containers = p.selector(n, c, "containers")
	}
	switch {
	case o.Type == model.MakeContainer, o.Type == model.RemoveContainer:
	case o.Type.Prefix():
		if own, _ := config(nil).with(n.attrs["config"]); own["objects"].key != "" {
			p.Warn(own["objects"].line, "oprefix says of which names", "objects is ignored: a list is of a container")
		}
		o.MaxKeys = int(p.number(c, "maxkeys", defaultMaxKeys))
		if e, ok := c["oprefix"]; !ok {
			o.ObjectName.Prefix = "" // all objects of the container
		} else {
			o.ObjectName.Prefix = e.value
		}
	case o.Keys.Given():
	case o.Type == model.FileWrite:
		p.files(o, n, c)
	default:
		o.Objects = p.selector(n, c, "objects")
	}
	if o.Type.Sized() {
		p.sized(o, n, c)
	}
	if _, parts := c["partsize"]; o.InParts() || parts && (o.Type == model.Copy || o.Type == model.Write && special) {
		o.SetParts(p.bytes(c, "partsize"), int(p.number(c, "partconcurrency", 1)))
		if o.PartSize%payload.Block != 0 {
			p.Fail(c["partsize"].line, "such as 5MiB", "partsize of %d bytes is not a multiple of %d", o.PartSize,
				payload.Block)
		}
	}
	o.Chunked, o.Verify = p.boolean(c, "chunked"), p.boolean(c, "hashcheck")
	o.Shape = payload.Shape{Compressible: uint8(p.small(c, "compressible", 100)),
		Dedupable: uint8(p.small(c, "dedupable", 100))}
	o.CopyPrefix = orDefault(c, "copyprefix", defaultCopyPrefix)
	p.checks(o, n, c)
	p.ranges(o, n, c)
	p.options(o, c)
	switch content := c["content"]; strings.ToLower(content.value) {
	case "", "random":
	case "zero":
		o.Zero = true
	default:
		p.Fail(content.line, "there are random and zero", "invalid content %q", clip(content.value))
	}
}

// existing sets the existing objects that an operation reads.
func (p *parser) existing(o *model.Op, c config) {
	prefix, listed := c["keysprefix"]
	if o.Type.Writes() || o.Type.Prefix() {
		return
	}
	o.Keys = model.Keys{File: c["keysfile"].value, Prefix: prefix.value}
	o.Keys.All = listed && o.Keys == model.Keys{}
	if o.Keys.File != "" && listed {
		p.Fail(prefix.line, "leave one of them out", "keysfile and keysprefix exclude each other")
	}
	switch choice := c["keyselection"]; strings.ToLower(choice.value) {
	case "", "random":
	case "inorder":
		o.InOrder = true
	default:
		p.Fail(choice.line, "there are random and inorder", "invalid keyselection %q", clip(choice.value))
	}
}

// options sets the options that operations of the type have.
func (p *parser) options(o *model.Op, c config) {
	for i := range option.All {
		one := &option.All[i]
		if e, ok := c[one.Key()]; ok && one.For(string(o.Type)) {
			if err := one.Put(&o.Options, e.value); err != nil {
				p.Fail(e.line, "", "%v", err)
			}
		}
	}
}

// unused warns of options in the config of a work and its operations that no operation of the work has. Operations may
// share a config string, so that one that has the option is enough.
func (p *parser) unused(nodes []*node, w *model.Work) {
	var types []string
	for i := range w.Ops {
		if t := string(w.Ops[i].Type); !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	if types == nil { // reported already
		return
	}
	for _, n := range nodes {
		own, _ := config(nil).with(n.attrs["config"])
		for i := range option.All {
			one := &option.All[i]
			if e, ok := own[one.Key()]; ok && !slices.ContainsFunc(types, one.For) {
				p.warnOnce(e.line, "it is for "+strings.Join(one.Types, ", "),
					"%s is ignored: no operation of the work has it (%s)", one.Key(), strings.Join(types, ", "))
			}
		}
	}
}

// checks sets the inherited checks that apply to o. A check in o's own config that does not apply is an
// error.
func (p *parser) checks(o *model.Op, n *node, c config) {
	e, ok := c["check"]
	if !ok {
		return
	}
	list, err := model.ParseChecks(e.value)
	if err != nil {
		p.Fail(e.line, "", "%v", err)
	}
	own, _ := config(nil).with(n.attrs["config"])
	for _, check := range list {
		switch _, asked := own["check"]; {
		case check.Fits(o.Type):
			o.Checks = append(o.Checks, check)
		case asked && n.name == "operation":
			p.Fail(e.line, "", "%s cannot be checked after %s", check, o.Type)
		}
	}
	if len(o.Checks) == 0 {
		return
	}
	o.CheckWithin = model.CheckWithin
	if e, ok := c["checkwithin"]; ok {
		if o.CheckWithin, err = parseSeconds(e.value); err != nil {
			p.Fail(e.line, "", "checkwithin: %v", err)
		}
	}
}

func (p *parser) sized(o *model.Op, n *node, c config) {
	e, ok := c["sizes"]
	if !ok {
		p.Fail(n.line, "such as sizes=c(64)KB", "%s needs sizes", o.Type)
		return
	}
	var err error
	if o.Sizes, err = selector.ParseSizes(p.constant(e)); err != nil {
		p.Fail(e.line, "", "%v", err)
	}
}

func (p *parser) files(o *model.Op, n *node, c config) {
	e, ok := c["files"]
	if !ok || e.value == "" {
		p.Fail(n.line, "such as files=/srv/samples", "filewrite needs a directory of files")
		return
	}
	o.Files = e.value
	switch choice := c["fileselection"]; strings.ToLower(choice.value) {
	case "", "u", "random":
	case "s", "r", "sequential": // the selectors s and r are sequential
		o.InOrder = true
	default:
		p.Fail(choice.line, "there are u, at random, and s or r, in order", "invalid fileselection %q",
			clip(choice.value))
	}
}

// ranges sets the range of reads. A range in the own config of another operation is an error.
func (p *parser) ranges(o *model.Op, n *node, c config) {
	if o.Type == model.Read {
		o.Length, o.Within = p.bytes(c, "length"), p.bytes(c, "within")
		return
	}
	own, _ := config(nil).with(n.attrs["config"])
	for _, key := range []string{"length", "within"} {
		if e, ok := own[key]; ok {
			p.Fail(e.line, "leave it out", "%s is for reads, not for %s", key, o.Type)
		}
	}
}

// ranged makes a read a range read, by the keys of CNSBench or by those that COSBench's S3 adaptor reads from
// the storage's config.
func (p *parser) ranged(o *model.Op, l level) {
	if o.Type != model.Read {
		return
	}
	line := o.Line
	if l.storage != nil && o.Length == 0 {
		c, _ := config(nil).with(l.storage.attrs["config"])
		if on, _ := parseBool(c["is_range_request"].value); on {
			line = l.storage.line
			if o.Length, o.Within = p.bytes(c, "chunk_length"), p.bytes(c, "file_length"); o.Length == 0 {
				p.failOnce(line, "give chunk_length and file_length",
					"is_range_request does not say how long a range is")
			}
			if rounded := o.Length / payload.Block * payload.Block; rounded > 0 && rounded != o.Length {
				p.Warn(line, "", "a range begins at a multiple of %d bytes, so that it can be checked", payload.Block)
			}
		}
	}
	switch {
	case o.Length == 0:
		if o.Within > 0 {
			p.warnOnce(l.config["within"].line, "give length",
				"within has no meaning without length: objects are read whole")
		}
		o.Within = 0
	case o.Within == 0:
		p.Fail(line, "give within, the size of the objects that are read",
			"a range read of %d bytes does not give the size of the objects", o.Length)
	case o.Length > o.Within:
		p.Fail(line, "", "a range of %d bytes is longer than the object of %d bytes", o.Length, o.Within)
	}
}

// known warns of keys that have no effect, once for each.
func (p *parser) known(n *node, c config) {
	if p.seen == nil {
		p.seen = map[entry]bool{}
	}
	for _, k := range c.keys() {
		e := c[k]
		if p.seen[e] {
			continue
		}
		p.seen[e] = true
		i := slices.IndexFunc(operationKeys, func(known string) bool { return strings.EqualFold(known, k) })
		own, _ := config(nil).with(n.attrs["config"])
		switch {
		case i < 0 || k == "name" && (n.name != "operation" || own[k] != e):
			p.Warn(e.line, hints.Nearest(e.key, operationKeys),
				"the key %q in the config of <%s> has no meaning and is ignored", clip(e.key), n.name)
		case operationKeys[i] != e.key:
			p.Warn(e.line, "write "+operationKeys[i], "the key %q is taken for %s, which COSBench ignored", e.key,
				operationKeys[i])
		}
		if kind := containerMakers[k]; kind != "" && p.boolean(c, k) {
			p.Warn(e.line, "add one if there is none", "%s is ignored: only a work of type %s does that", e.key, kind)
		}
	}
}

func orDefault(c config, key, otherwise string) string {
	if e, ok := c[key]; ok && e.value != "" {
		return e.value
	}
	return otherwise
}

func (p *parser) selector(n *node, c config, key string) selector.Spec {
	e, ok := c[key]
	if !ok {
		p.Fail(n.line, "such as "+key+"=r(1,32)", "<%s> does not say which %s", n.name, key)
		return selector.Spec{}
	}
	s, err := selector.Parse(p.constant(e))
	if err != nil {
		p.Fail(e.line, "", "%s: %v", key, err)
	}
	return s
}

// severalNumbers is a constant of more than one number.
var severalNumbers = regexp.MustCompile(`^(c\(\s*[0-9]+)\s*(?:,\s*[0-9]+\s*)+(\).*)$`)

// constant returns the text of a selector. Of a constant of several numbers COSBench takes the first.
func (p *parser) constant(e entry) string {
	m := severalNumbers.FindStringSubmatch(e.value)
	if m == nil {
		return e.value
	}
	p.warnOnce(e.line, "u(a,b) draws numbers between two", "%s is taken for %s, as in COSBench", clip(e.value),
		clip(m[1]+m[2]))
	return m[1] + m[2]
}

func (p *parser) boolean(c config, key string) bool {
	v, err := parseBool(c[key].value)
	if err != nil {
		p.Fail(c[key].line, "", "%s: %v", key, err)
	}
	return v
}

func (p *parser) bytes(c config, key string) int64 {
	e, ok := c[key]
	if !ok || e.value == "" {
		return 0
	}
	v, err := selector.ParseBytes(e.value)
	if err == nil && v == 0 {
		err = errors.New("size must not be empty")
	}
	if err != nil {
		p.Fail(e.line, "", "%s: %v", key, err)
	}
	return v
}

// small is a number from 0 to highest; a "%" behind it is accepted.
func (p *parser) small(c config, key string, highest int) int {
	e, ok := c[key]
	if !ok || e.value == "" {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(e.value, "%")))
	if err != nil || n < 0 || n > highest {
		p.failOnce(e.line, fmt.Sprintf("a whole number from 0 to %d", highest), "invalid %s=%s", e.key, clip(e.value))
		return 0
	}
	return n
}

func (p *parser) number(c config, key string, otherwise int64) int64 {
	if _, ok := c[key]; !ok {
		return otherwise
	}
	return p.bytes(c, key)
}
