package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/objectstore/cosbench"
	"github.com/cnsbench/cnsbench/internal/objectstore/model"
	"github.com/cnsbench/cnsbench/internal/objectstore/part"
	"github.com/cnsbench/cnsbench/internal/objectstore/pick"
	"github.com/cnsbench/cnsbench/internal/plan/workload"
)

// objectGrace is how long after a work's end its operations in flight are
// awaited; it is less than what an instance has that is told to end.
const objectGrace = 3 * time.Second

// Where an object workload's program finds things.
const (
	objectVolume      = "/data"
	objectCredentials = "/credentials"
	objectHost        = "/host" // what of this machine it is given, by its path
)

// objects resolves an inline object workload to what its template is given; nil
// if something is wrong with it.
func (l *loader) objects(path string, c *v1alpha1.CreateObjSpec) (map[string]string, *model.Workload) {
	before := len(l.problems)
	if len(c.Phases) > 0 {
		l.fail(path+".phases", "stages follow one another", "an object workload has no phases")
	}
	o := objectReader{loader: l}
	w := o.workload(path+".objectSpec", c.ObjectSpec)
	for _, p := range model.Check(w, objectWords) {
		where := o.place(path+".objectSpec", p)
		if p.Warning {
			l.warn(where, p.Hint, "%s", p.Message)
		} else {
			l.fail(where, p.Hint, "%s", p.Message)
		}
	}
	o.shared(path, c, w)
	if len(l.problems) > before {
		return nil, nil
	}
	for i := range w.Stages { // they meant places in the file
		w.Stages[i].Line = 0
		for j := range w.Stages[i].Works {
			work := &w.Stages[i].Works[j]
			work.Line = 0
			for k := range work.Ops {
				work.Ops[k].Line = 0
			}
		}
	}
	return o.variables(w), w
}

// objectReader turns an ObjectSpec into the model.
type objectReader struct {
	*loader
	paths  []string // of the lines that the model has
	volume *v1alpha1.ObjectFileSpec
	secret string
	pass   []string // variables of the environment
	host   []hostMount
}

// hostMount is a file or a directory of this machine that the program is given.
type hostMount struct{ path, kind string }

// given is where the program finds what the Benchmark names by its path: on the
// cluster's nodes it is the program's own; here the program sees nothing of the
// machine that it is not given.
func (o *objectReader) given(path, kind string) string {
	if path == "" || o.in.Capabilities.Engine == workload.Kubernetes {
		return path
	}
	if m := (hostMount{path, kind}); !slices.Contains(o.host, m) {
		o.host = append(o.host, m)
	}
	return objectHost + path
}

// line is a number by which the model's problems find their place.
func (o *objectReader) line(path string) int {
	o.paths = append(o.paths, path)
	return len(o.paths)
}

// objectKeys are the fields that have other names than COSBench's settings.
var objectKeys = map[string]string{"closuredelay": "closureDelay", "rampup": "rampUp", "rampdown": "rampDown", "partsize": "partSize", "cprefix": "containerPrefix", "oprefix": "objectPrefix"}

// objectWords are those of an ObjectSpec.
var objectWords = model.Words{
	Stage: "stage",
	Key:   objectKey,
	Set:   func(key, value string) string { return objectKey(key) + ": " + value },
}

func objectKey(key string) string { return cmp.Or(objectKeys[key], key) }

// place is where in the file a problem is: at its field, of the operation or,
// where it says nothing of it, of its work.
func (o *objectReader) place(path string, p model.Problem) string {
	if p.Line == 0 {
		return path
	}
	at := o.paths[p.Line-1]
	if p.Key == "" {
		return at
	}
	work, _, _ := strings.Cut(at, ".operations[")
	for _, of := range []string{at, work} {
		field := of + "." + objectKey(p.Key)
		if _, given := o.doc.places[normal(field)]; given {
			return field
		}
	}
	return at
}

func (o *objectReader) workload(path string, s *v1alpha1.ObjectSpec) *model.Workload {
	w := &model.Workload{Name: "objects"}
	for i := range s.Stages {
		at := fmt.Sprintf("%s.stages[%d]", path, i)
		spec := &s.Stages[i]
		stage := model.Stage{Name: string(spec.Name), Line: o.line(at), Closure: o.duration(at+".closureDelay", spec.ClosureDelay)}
		if len(spec.Works) == 0 {
			stage.Works = []model.Work{{Name: "delay", Kind: model.Delay, Line: o.line(at)}}
		}
		for j := range spec.Works {
			stage.Works = append(stage.Works, o.work(fmt.Sprintf("%s.works[%d]", at, j), &spec.Works[j], path, s))
		}
		w.Stages = append(w.Stages, stage)
	}
	w.MarkParts()
	return w
}

func (o *objectReader) duration(path string, d *v1alpha1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	if d.Duration.Duration < 0 {
		o.fail(path, "", "must not be negative")
	}
	return d.Duration.Duration
}

// bytes of a quantity; 0 if there is none.
func (o *objectReader) bytes(path string, q *resource.Quantity) int64 {
	if q == nil {
		return 0
	}
	if q.Value() <= 0 {
		o.fail(path, "such as 64Ki or 5Mi", "a size of %s is not more than 0", q)
	}
	return q.Value()
}

// specialOps are what works do that are not normal, and how they are divided.
var specialOps = map[model.WorkKind]struct {
	op       model.OpType
	division model.Division
}{
	model.Init: {model.MakeContainer, model.ByContainer}, model.Dispose: {model.RemoveContainer, model.ByContainer},
	model.Prepare: {model.Write, model.ByObject}, model.Cleanup: {model.Delete, model.ByObject},
}

func (o *objectReader) work(path string, s *v1alpha1.ObjectWork, top string, spec *v1alpha1.ObjectSpec) model.Work {
	w := model.Work{Kind: model.WorkKind(s.Type), Name: string(s.Name), Workers: int(s.Workers), Line: o.line(path), RateText: s.Rate,
		Interval: o.positive(path+".interval", s.Interval), RampUp: o.duration(path+".rampUp", s.RampUp), Runtime: o.duration(path+".runtime", s.Runtime),
		RampDown: o.duration(path+".rampDown", s.RampDown), TotalBytes: o.bytes(path+".totalBytes", s.TotalBytes), MaxFailures: 200_000}
	if w.Name == "" {
		w.Name = s.Type
	}
	if s.Type != string(model.Normal) && specialOps[w.Kind].op == "" {
		w.Kind = model.Delay // the schema has said that there is no such type
		return w
	}
	if w.Interval < time.Second {
		o.fail(path+".interval", "at least 1s", "the interval %v is too short", w.Interval)
	}
	special, isSpecial := specialOps[w.Kind]
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
		for field, given := range map[string]bool{"operations": len(s.Operations) > 0, "rate": s.Rate != "", "runtime": s.Runtime != nil,
			"rampUp": s.RampUp != nil, "rampDown": s.RampDown != nil, "totalOps": s.TotalOps != nil, "totalBytes": s.TotalBytes != nil} {
			if given {
				o.fail(path+"."+field, "it goes once through all that its selectors cover", "a work of type %s has no %s", s.Type, field)
			}
		}
		op := model.Op{Type: special.op, Name: string(special.op), Weight: 100, Division: special.division, Line: o.line(path)}
		o.target(path, &op, &s.ObjectTarget)
		w.Ops = []model.Op{op}
		return w
	}
	o.operations(path, &w, s)
	return w
}

// operations of a normal work. What stands beside them holds for all that do
// not say otherwise.
func (o *objectReader) operations(path string, w *model.Work, s *v1alpha1.ObjectWork) {
	counts := map[model.OpType]int{}
	for i := range s.Operations {
		at := fmt.Sprintf("%s.operations[%d]", path, i)
		x := &s.Operations[i]
		if !slices.Contains(model.Types, model.OpType(x.Type)) {
			continue // the schema has said it
		}
		op := model.Op{Type: model.OpType(x.Type), Weight: int(*x.Ratio), Division: model.ByNone, Line: o.line(at)}
		if counts[op.Type]++; counts[op.Type] > 1 {
			op.Name = fmt.Sprintf("%s-%d", op.Type, counts[op.Type])
		} else {
			op.Name = string(op.Type)
		}
		target := inherit(x.ObjectTarget, s.ObjectTarget, o.doc, at)
		op.Verify = x.Verify
		o.read(at, &op, x)
		if op.Files, op.InOrder = o.given(x.Files, "Directory"), x.FileSelection == "inOrder"; op.Type == model.FileWrite && op.Files == "" {
			o.fail(at, "files: /DIRECTORY", "a filewrite needs a directory of files")
		}
		if op.Type == model.List {
			op.MaxKeys = 1000
		}
		if x.MaxKeys != nil {
			op.MaxKeys = int(*x.MaxKeys)
		}
		if op.CopyPrefix = x.CopyPrefix; op.CopyPrefix == "" {
			op.CopyPrefix = "copy-"
		}
		o.target(at, &op, &target)
		w.Ops = append(w.Ops, op)
	}
}

// inherit completes an operation's target by that of its work.
func inherit(own, work v1alpha1.ObjectTarget, doc *document, path string) v1alpha1.ObjectTarget {
	for _, f := range []struct{ own, work *string }{{&own.Containers, &work.Containers}, {&own.Objects, &work.Objects}, {&own.Sizes, &work.Sizes},
		{&own.Division, &work.Division}, {&own.ContainerSuffix, &work.ContainerSuffix}, {&own.ObjectSuffix, &work.ObjectSuffix}, {&own.Content, &work.Content}} {
		if *f.own == "" {
			*f.own = *f.work
		}
	}
	if _, given := doc.places[normal(path+".containerPrefix")]; !given { // the schema has put its default there
		own.ContainerPrefix = work.ContainerPrefix
	}
	if own.ObjectPrefix == nil {
		own.ObjectPrefix = work.ObjectPrefix
	}
	own.Chunked = own.Chunked || work.Chunked
	if own.PartSize == nil {
		own.PartSize = work.PartSize
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
func (o *objectReader) read(path string, op *model.Op, x *v1alpha1.ObjectOperation) {
	op.Length, op.Within = o.bytes(path+".length", x.Length), o.bytes(path+".within", x.Within)
	switch {
	case op.Length == 0 && op.Within == 0:
	case op.Type != model.Read:
		o.fail(path, "length and within are for reads", "%s of a part of an object cannot be", op.Type)
	case op.Within == 0 || op.Length == 0:
		o.fail(path, "give length and within, the size of the objects that are read", "a read of a part says how much of how much")
	case op.Length > op.Within:
		o.fail(path+".length", "", "a part of %d bytes is longer than the %d bytes that it is of", op.Length, op.Within)
	}
}

// target takes which containers and objects are meant, and what is written.
func (o *objectReader) target(path string, op *model.Op, t *v1alpha1.ObjectTarget) {
	op.ContainerName = model.Name{Prefix: t.ContainerPrefix, Suffix: t.ContainerSuffix}
	op.ObjectName = model.Name{Prefix: "myobjects", Suffix: t.ObjectSuffix}
	if op.Type == model.List {
		op.ObjectName.Prefix = "" // all of the container's
	}
	if t.ObjectPrefix != nil {
		op.ObjectName.Prefix = *t.ObjectPrefix
	}
	if t.Division != "" {
		op.Division = model.Division(t.Division)
	}
	op.Containers = o.selector(path, "containers", t.Containers)
	switch op.Type {
	case model.MakeContainer, model.RemoveContainer, model.List, model.FileWrite:
	default:
		op.Objects = o.selector(path, "objects", t.Objects)
	}
	op.Zero, op.Chunked = t.Content == "zero", t.Chunked
	o.checks(path, op, t)
	if op.Type != model.Write && op.Type != model.MultipartWrite {
		return
	}
	if t.Sizes == "" {
		o.fail(path, "such as sizes: c(64)KB", "a %s needs sizes", op.Type)
		return
	}
	var err error
	if op.Sizes, err = pick.ParseSizes(t.Sizes); err != nil {
		o.fail(path+".sizes", "", "%v", err)
	}
	if op.Type == model.MultipartWrite {
		if op.PartSize = o.bytes(path+".partSize", t.PartSize); op.PartSize == 0 {
			op.PartSize = 5 << 20
		}
		if op.PartSize%4096 != 0 {
			o.fail(path+".partSize", "such as 5Mi", "a part of %d bytes is no multiple of 4Ki", op.PartSize)
		}
	}
}

// checks are those of the target that have a meaning after the operation.
func (o *objectReader) checks(path string, op *model.Op, t *v1alpha1.ObjectTarget) {
	for _, name := range t.Checks {
		if c := model.IntegrityCheck(name); c.Fits(op.Type) {
			op.Checks = append(op.Checks, c)
		} else if _, own := o.doc.places[normal(path+".checks")]; own {
			o.fail(path+".checks", "", "%s cannot be checked after %s", name, op.Type)
		}
	}
	if op.CheckWithin = o.duration(path+".checkWithin", t.CheckWithin); len(op.Checks) > 0 && op.CheckWithin == 0 {
		op.CheckWithin = model.CheckWithin
	}
}

func (o *objectReader) selector(path, field, text string) pick.Spec {
	if text == "" {
		o.fail(path, "such as "+field+": u(1,32)", "it does not say which %s", field)
		return pick.Spec{}
	}
	s, err := pick.Parse(text)
	if err != nil {
		hint := ""
		if strings.Contains(text, "(") && !strings.Contains(text, ")") {
			hint = `in {…} a comma ends it: put it in quotes, such as "u(1,32)"`
		}
		o.fail(path+"."+field, hint, "%v", err)
	}
	return s
}

// virtualHost is the addressing with buckets in the name of the host.
const virtualHost = "virtualHost"

// storage is where a work goes.
func (o *objectReader) storage(path string, s *v1alpha1.ObjectStorage) model.Store {
	m := model.Store{Settings: map[string]string{}, Auth: map[string]string{}}
	set := func(key, value string) {
		if value != "" {
			m.Settings[key] = value
		}
	}
	http := func(path string, e *v1alpha1.HTTPEndpoint) {
		set("cafile", o.given(e.CAFile, "File"))
		if e.InsecureSkipVerify {
			set("no_verify_ssl", "true")
		}
		if d := o.positive(path+".timeout", e.Timeout); d > 0 {
			set("timeout", strconv.FormatInt(max(1, d.Milliseconds()), 10))
		}
	}
	switch {
	case s.S3Spec != nil:
		m.Kind = "s3"
		o.address(path+".s3Spec.endpoint", s.S3Spec.Endpoint)
		set("endpoint", s.S3Spec.Endpoint)
		set("region", s.S3Spec.Region)
		if s.S3Spec.Addressing == virtualHost {
			set("path_style_access", "false")
		}
		set("signature", s.S3Spec.Signature)
		set("payload", s.S3Spec.Payload)
		http(path+".s3Spec", &s.S3Spec.HTTPEndpoint)
	case s.SwiftSpec != nil:
		m.Kind, m.AuthKind = "swift", s.SwiftSpec.Auth
		if s.SwiftSpec.AuthURL == "" { // the credentials have the token
			m.AuthKind = "none"
		}
		o.address(path+".swiftSpec.authURL", s.SwiftSpec.AuthURL)
		o.address(path+".swiftSpec.storageURL", s.SwiftSpec.StorageURL)
		set("storage_url", s.SwiftSpec.StorageURL)
		for key, value := range map[string]string{"auth_url": s.SwiftSpec.AuthURL, "username": s.SwiftSpec.Username, "project_name": s.SwiftSpec.Project,
			"user_domain": s.SwiftSpec.UserDomain, "project_domain": s.SwiftSpec.ProjectDomain, "region": s.SwiftSpec.Region, "interface": s.SwiftSpec.Interface} {
			if value != "" {
				m.Auth[key] = value
			}
		}
		set("policy", s.SwiftSpec.Policy)
		http(path+".swiftSpec", &s.SwiftSpec.HTTPEndpoint)
	case s.FileSpec != nil:
		m.Kind = "file"
		set("root", objectVolume)
		set("sync", s.FileSpec.Sync)
		if o.volume != nil && o.volume != s.FileSpec {
			o.fail(path+".fileSpec", "", "a second volume for objects cannot be")
		}
		o.volume = s.FileSpec
	case s.NullSpec != nil:
		m.Kind = "null"
		set("size", strconv.FormatInt(o.bytes(path+".nullSpec.size", s.NullSpec.Size), 10))
	}
	o.credentials(path, s, &m)
	return m
}

// address refuses what is none, and credentials in one. Whether there has to be
// one the schema says.
func (o *objectReader) address(path, text string) {
	if text == "" {
		return
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "":
		o.fail(path, "such as http://HOST:PORT", "%q is no address", text)
	case u.User != nil:
		o.fail(path, "credentials: {secretName: …} or {file: …}", "credentials do not belong into an address")
	}
}

// environment are the variables that have credentials, as other programs have
// them.
var environment = map[string][]string{
	"s3":    {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"},
	"swift": {"OS_PASSWORD", "OS_AUTH_TOKEN"},
}

func (o *objectReader) credentials(path string, s *v1alpha1.ObjectStorage, m *model.Store) {
	c, cluster := s.Credentials, o.in.Capabilities.Engine == workload.Kubernetes
	names := environment[m.Kind]
	switch {
	case c != nil && names == nil:
		o.fail(path+".credentials", "leave them out", "storage %s needs no credentials", m.Kind)
	case c == nil && !cluster:
		for _, n := range names {
			if !slices.Contains(o.pass, n) {
				o.pass = append(o.pass, n)
			}
		}
	case c == nil && m.Kind == "swift":
		key, why := "password", "nobody gives a token without a password"
		if s.SwiftSpec.AuthURL == "" {
			key, why = "token", "without an authURL the credentials have the token"
		}
		o.fail(path, "credentials: {secretName: NAME}, with the key "+key, "%s", why)
	case c == nil:
	case c.SecretName != "" && !cluster:
		o.fail(path+".credentials.secretName", "file, or the environment", "there are no Secrets on engine %s", o.in.Capabilities.Engine)
	case c.File != "" && cluster:
		o.fail(path+".credentials.file", "kubectl create secret generic NAME --from-literal=accesskey=… --from-literal=secretkey=…, and secretName", "a file of this machine is not on the cluster's nodes")
	case c.File != "":
		m.Settings["credentials"] = o.given(c.File, "File")
	case o.secret != "" && o.secret != c.SecretName:
		o.fail(path+".credentials.secretName", "", "a second Secret beside %q cannot be", o.secret)
	default:
		o.secret = c.SecretName
		m.Settings["credentials"] = objectCredentials
	}
}

// shared refuses what several instances cannot share.
func (o *objectReader) shared(path string, c *v1alpha1.CreateObjSpec, w *model.Workload) {
	if o.volume != nil && c.Count > 1 {
		o.fail(path+".count", "count: 1, or an action for each", "several instances share one object workload, but each would have files on a volume of its own")
	}
	least := 0
	for _, s := range w.Stages {
		for i := range s.Works {
			if s.Works[i].Kind == model.Normal {
				least = max(least, s.Works[i].Workers)
			}
		}
	}
	if least > 0 && int(c.Count) > least {
		o.warn(path+".count", "", "%d instances share %d workers: some have nothing to do", c.Count, least)
	}
}

// variables of the template that hold what was resolved.
func (o *objectReader) variables(w *model.Workload) map[string]string {
	inJSON := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			panic(fmt.Sprintf("an object workload that was resolved: %v", err)) // it is made of numbers and texts
		}
		return string(text)
	}
	mounts := []corev1.VolumeMount{{Name: "config", MountPath: "/config"}, {Name: "output", MountPath: "/output"}}
	volumes := []map[string]any{{"name": "config", "configMap": map[string]any{"name": "object"}}, {"name": "output", "emptyDir": map[string]any{}}}
	claim := ""
	if v := o.volume; v != nil {
		pvc := newClaim(v.StorageClass, *v.Size)
		pvc.Name, pvc.Annotations = "data", map[string]string{"role": "volume"}
		if v.StorageClass == "" {
			pvc.Spec.StorageClassName = nil
		}
		claim = inJSON(pvc)
		mounts = append(mounts, corev1.VolumeMount{Name: "data", MountPath: objectVolume})
		volumes = append(volumes, map[string]any{"name": "data", "persistentVolumeClaim": map[string]any{"claimName": "data"}})
	}
	if o.secret != "" {
		mounts = append(mounts, corev1.VolumeMount{Name: "credentials", MountPath: objectCredentials, ReadOnly: true})
		volumes = append(volumes, map[string]any{"name": "credentials", "secret": map[string]any{"secretName": o.secret, "defaultMode": 0o400}})
	}
	for i, m := range o.host {
		name := fmt.Sprintf("host-%d", i)
		mounts = append(mounts, corev1.VolumeMount{Name: name, MountPath: objectHost + m.path, ReadOnly: true})
		volumes = append(volumes, map[string]any{"name": name, "hostPath": map[string]any{"path": m.path, "type": m.kind}})
	}
	return map[string]string{
		"OBJECT_ORDER":   inJSON(part.Order{Workload: *w, Seed: o.plan.Seed, Grace: objectGrace}),
		"OBJECT_CLAIM":   claim,
		"OBJECT_MOUNTS":  inJSON(mounts),
		"OBJECT_VOLUMES": inJSON(volumes),
		"OBJECT_ENV":     strings.Join(o.pass, ","),
	}
}
