package objectspec

import (
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/spread"
)

// Convert makes a Benchmark with one object workload. The notes list what the Benchmark expresses differently; what
// it cannot express is an error.
func Convert(w *model.Workload) (*v1alpha1.Benchmark, []string, error) {
	c := converted{}
	spec := &v1alpha1.ObjectSpec{}
	var first *model.Store
	for i := range w.Stages {
		s := &w.Stages[i]
		stage := v1alpha1.ObjectStage{Name: c.name(s.Name, &c.stages), ClosureDelay: durationOf(s.Closure)}
		c.works = nil
		if len(s.Scale) > 0 {
			c.note("stage %q is carried out once, with its work's own number of workers: a Study goes through "+
				"several", s.Name)
		}
		for j := range s.Works {
			work := &s.Works[j]
			if work.Kind == model.Delay {
				continue
			}
			out, err := c.work(work)
			if err != nil {
				return nil, nil, fmt.Errorf("line %d: %w", work.Line, err)
			}
			if first == nil {
				first = &work.Store
				spec.Storage = *out.Storage
			}
			if sameStore(first, &work.Store) {
				out.Storage = nil
			}
			stage.Works = append(stage.Works, *out)
		}
		spec.Stages = append(spec.Stages, stage)
	}
	b := &v1alpha1.Benchmark{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Benchmark"}}
	b.Name = nameOf(w.Name)
	b.Spec.Actions = []v1alpha1.Action{{Name: "objects",
		CreateObjSpec: &v1alpha1.CreateObjSpec{Workload: "object", ObjectSpec: spec}}}
	return b, c.notes, nil
}

// nameOf makes a name for an object of a text.
func nameOf(text string) string {
	name := strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, text), "-")
	if name = strings.TrimRight(name[:min(len(name), 63)], "-"); name == "" {
		return "objects"
	}
	return name
}

// name makes one of our names of a stage's or a work's, which may be any text;
// none of those that are used.
func (c *converted) name(text string, used *[]string) v1alpha1.Name {
	name := strings.Trim(strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, text), "-_")
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = strings.TrimRight("s"+name, "-_")
	}
	name = strings.TrimRight(name[:min(len(name), 50)], "-_")
	for first, n := name, 2; slices.Contains(*used, name); n++ {
		name = fmt.Sprintf("%s-%d", first, n)
	}
	if name != text {
		c.note("the stage or work %q is renamed %s", text, name)
	}
	*used = append(*used, name)
	return v1alpha1.Name(name)
}

func sameStore(a, b *model.Store) bool { return fmt.Sprint(*a) == fmt.Sprint(*b) }

func durationOf(d time.Duration) *v1alpha1.Duration {
	if d == 0 {
		return nil
	}
	return &v1alpha1.Duration{Duration: metav1.Duration{Duration: d}}
}

func bytesOf(n int64) *resource.Quantity {
	if n == 0 {
		return nil
	}
	if n%1024 == 0 {
		return resource.NewQuantity(n, resource.BinarySI)
	}
	return resource.NewQuantity(n, resource.DecimalSI)
}

func (c *converted) work(w *model.Work) (*v1alpha1.ObjectWork, error) {
	out := &v1alpha1.ObjectWork{Type: string(w.Kind), Workers: int32(w.Workers), RampUp: durationOf(w.RampUp),
		Runtime: durationOf(w.Runtime), RampDown: durationOf(w.RampDown),
		TotalBytes: bytesOf(w.TotalBytes), Rate: w.RateText, UntilSteady: w.UntilSteady}
	if w.Name != string(w.Kind) {
		out.Name = c.name(w.Name, &c.works)
	} else {
		c.works = append(c.works, w.Name)
	}
	if w.Interval != 5*time.Second {
		out.Interval = durationOf(w.Interval)
	}
	if w.TotalOps > 0 {
		out.TotalOps = &w.TotalOps
	}
	if standard := map[bool]int{true: 0, false: 200_000}[w.Special()]; w.MaxFailures != standard {
		n := int32(w.MaxFailures)
		out.MaxFailuresPerMillion = &n
	}
	if w.Driver != "" {
		c.note("work %s was for the driver %q: all instances share it", w.Name, w.Driver)
	}
	storage, err := c.storage(&w.Store)
	if err != nil {
		return nil, err
	}
	out.Storage = storage
	if w.Special() {
		out.ObjectTarget = target(&w.Ops[0], model.Specials[w.Kind].Division)
		return out, writeOptions(&w.Ops[0], &out.ObjectTarget)
	}
	for i := range w.Ops {
		op := operation(&w.Ops[i])
		if err := writeOptions(&w.Ops[i], &op); err != nil {
			return nil, err
		}
		out.Operations = append(out.Operations, op)
	}
	return out, nil
}

// writeOptions is the inverse of optionsOf.
func writeOptions(o *model.Op, to any) error {
	b, err := json.Marshal(o.Options)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, to)
}

func operation(o *model.Op) v1alpha1.ObjectOperation {
	ratio := int32(o.Weight)
	out := v1alpha1.ObjectOperation{Type: string(o.Type), Name: v1alpha1.Name(o.GivenName()), Ratio: &ratio,
		ObjectTarget: target(o, model.ByNone), Verify: o.Verify,
		Length: bytesOf(o.Length), Within: bytesOf(o.Within), Files: o.Files}
	if o.Containers.Kind == 0 {
		out.Container, out.Containers, out.ContainerPrefix = o.ContainerName.Prefix, "", ""
	}
	if o.Keys.Given() {
		out.Keys = &v1alpha1.ObjectKeys{File: o.Keys.File}
		if o.Keys.File == "" {
			out.Keys.Prefix = &o.Keys.Prefix
		}
	}
	if o.InOrder {
		out.FileSelection = "inOrder"
	}
	if o.Type.Prefix() && o.MaxKeys != 1000 {
		n := int32(o.MaxKeys)
		out.MaxKeys = &n
	}
	if o.Type == model.Copy {
		out.CopyPrefix = o.CopyPrefix
	}
	return out
}

func target(o *model.Op, division model.Division) v1alpha1.ObjectTarget {
	t := v1alpha1.ObjectTarget{Containers: o.Containers.String(), ContainerPrefix: o.ContainerName.Prefix,
		ContainerSuffix: o.ContainerName.Suffix,
		ObjectSuffix:    o.ObjectName.Suffix, Chunked: o.Chunked, PartSize: bytesOf(o.PartSize),
		CheckWithin: durationOf(o.CheckWithin)}
	if o.PartConcurrency > 1 {
		n := int32(o.PartConcurrency)
		t.PartConcurrency = &n
	}
	if o.Objects.Kind != 0 {
		t.Objects = o.Objects.String()
	}
	if o.Sizes.Kind != 0 {
		t.Sizes = o.Sizes.String()
	}
	if o.Division != division {
		t.Division = string(o.Division)
	}
	standard := "myobjects"
	if o.Type.Prefix() {
		standard = ""
	}
	if o.ObjectName.Prefix != standard && (o.Objects.Kind != 0 || o.Type.Prefix()) {
		t.ObjectPrefix = &o.ObjectName.Prefix
	}
	if o.Zero {
		t.Content = "zero"
	}
	for _, f := range []struct {
		n     int
		to    **int32
		means bool
	}{{int(o.Shape.Compressible), &t.Compressible, o.Sizes.Kind != 0},
		{int(o.Shape.Dedupable), &t.Dedupable, o.Sizes.Kind != 0},
		{o.ObjectName.Hash, &t.HashPrefix, o.Objects.Kind != 0}} {
		if f.n > 0 && f.means {
			n := int32(f.n)
			*f.to = &n
		}
	}
	for _, check := range o.Checks {
		t.Checks = append(t.Checks, string(check))
	}
	return t
}

// storage of a work; credentials are left out, whatever stood in the file.
func (c *converted) storage(s *model.Store) (*v1alpha1.ObjectStorage, error) {
	out := &v1alpha1.ObjectStorage{}
	if len(s.Secrets) > 0 {
		c.note("credentials of the file are left out: storage.credentials names a Secret or a file; without it " +
			"the environment has them")
	}
	for _, m := range []map[string]string{s.Settings, s.Auth} {
		if v := m["credentials"]; v != "" {
			out.Credentials = &v1alpha1.ObjectCredentials{File: v}
		}
	}
	for _, f := range fields() {
		if f.kind == s.Kind || f.kind == "" {
			return out, f.write(c, s, out)
		}
	}
	return out, nil
}

// httpEndpoint is the inverse of (*reader).http.
func httpEndpoint(settings map[string]string) (v1alpha1.HTTPEndpoint, error) {
	e := v1alpha1.HTTPEndpoint{CAFile: settings["cafile"], Addresses: settings[spread.Addresses],
		Spread: settings[spread.By], OnEndpointFailure: settings[spread.OnFailure],
		AddressFamily:   strings.ToLower(settings["family"]),
		SourceAddresses: strings.FieldsFunc(settings["source"], func(r rune) bool { return r == ',' || r == ' ' }),
		HTTPVersion:     settings["http"]}
	if settings[spread.Endpoints] != "" {
		list, err := spread.List(map[string]string{spread.Endpoints: settings[spread.Endpoints]}, "")
		if err != nil {
			return e, err
		}
		e.Endpoints = list
	}
	if host := settings["proxyhost"]; host != "" {
		e.Proxy = "http://" + net.JoinHostPort(strings.Trim(host, "[]"), settings["proxyport"])
	}
	var err error
	if v := settings["no_verify_ssl"]; v != "" {
		e.InsecureSkipVerify, err = strconv.ParseBool(v)
	}
	if v := settings["timeout"]; v != "" && err == nil {
		var ms int64
		if ms, err = strconv.ParseInt(v, 10, 64); err == nil {
			e.Timeout = durationOf(time.Duration(ms) * time.Millisecond)
		}
	}
	return e, err
}

// first of the keys that has a value.
func first(m map[string]string, keys ...string) string {
	for _, k := range keys {
		if m[k] != "" {
			return m[k]
		}
	}
	return ""
}
