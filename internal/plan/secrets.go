package plan

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/sidecar"
	"github.com/cnsbench/cnsbench/internal/hints"
	"github.com/cnsbench/cnsbench/internal/plan/parse"
	"github.com/cnsbench/cnsbench/internal/plan/validate"
)

const secretKind = "Secret"

// secretFile is a Secret in a document of a file.
type secretFile struct {
	file   string
	of     sidecar.Reference
	values map[string]string
}

// decodeSecret decodes a Secret.
func decodeSecret(d *parse.Document) (secretFile, []Problem) {
	var s corev1.Secret
	if wrong := validate.Strict(d, &s); len(wrong) > 0 {
		return secretFile{}, wrong
	}
	f := secretFile{file: d.File, of: sidecar.Reference{Namespace: s.Namespace, Name: s.Name},
		values: map[string]string{}}
	for k, v := range s.Data {
		f.values[k] = string(v)
	}
	maps.Copy(f.values, s.StringData) // as the API server does
	if s.Name == "" {
		return f, []Problem{d.Problem("metadata", "", "metadata.name is missing")}
	}
	return f, nil
}

func secretsOf(files []secretFile) engine.Secrets {
	all := engine.Secrets{}
	for _, f := range files {
		all[f.of] = f.values
	}
	return all
}

// filesOf lists the files that have Secrets.
func filesOf(files []secretFile) (list []string) {
	for _, f := range files {
		if !slices.Contains(list, f.file) {
			list = append(list, f.file)
		}
	}
	return list
}

// Secrets returns the Secrets among the documents of files.
func Secrets(files []File) (engine.Secrets, []Problem) {
	report := &parse.Report{}
	all := &documents{configs: map[string]*corev1.ConfigMap{}, part: parse.StudyBenchmark}
	all.read(report, &Input{Files: files})
	return secretsOf(all.secrets), parse.Sorted(report.Problems)
}

var (
	documentMarks = regexp.MustCompile(`(?m)^---(?:[ \t\r].*)?\n?`)
	notInNames    = regexp.MustCompile(`[^-./A-Za-z0-9]`)
	secretWords   = regexp.MustCompile(`\bkind["']?\s*:\s*["']?Secret\b`)
)

// WithoutSecrets returns the text of a file without its documents of kind Secret, for records. A comment is in the
// place of each.
func WithoutSecrets(text []byte) []byte {
	marks := documentMarks.FindAllIndex(text, -1)
	var out []byte
	from := 0
	for _, mark := range append(marks, []int{len(text), len(text)}) {
		out = append(out, withoutSecret(text[from:mark[0]])...)
		out = append(out, text[mark[0]:mark[1]]...)
		from = mark[1]
	}
	return out
}

// withoutSecret returns the text of a document, or a comment in the place of a Secret.
func withoutSecret(text []byte) []byte {
	var d struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
	}
	err := yaml.Unmarshal(text, &d)
	if d.Kind != secretKind && (err == nil || !secretWords.Match(text)) {
		return text
	}
	name := strings.TrimPrefix(d.Metadata.Namespace+"/"+d.Metadata.Name, "/")
	return fmt.Appendf(nil, "# Secret %s is not recorded.\n", notInNames.ReplaceAllString(name, "?"))
}

// endpointsOf returns the sockets of CSI drivers by provisioner: those of the Benchmark and, before them, of in.
func endpointsOf(report *parse.Report, in *Input, b *v1alpha1.Benchmark) map[string]string {
	all := map[string]string{}
	for _, e := range b.Spec.CSIEndpoints {
		all[e.Provisioner] = e.Socket
	}
	if in.Capabilities.Cluster && len(all) > 0 {
		report.Warn("spec.csiEndpoints", "", "not used on a cluster, where the StorageClass names the driver")
		return nil
	}
	maps.Copy(all, in.Endpoints)
	return all
}

// checkParameters reports the parameters of a class that no sidecar knows, and the secrets that it names and that are
// not in the files. Those whose names depend on a volume or snapshot are looked up when it is made.
func (c *classes) checkParameters(path, kind, name string, parameters map[string]string) bool {
	secrets := sidecar.VolumeSecrets
	if kind != storageKind {
		secrets = sidecar.SnapshotSecrets
	}
	ok := true
	fail := func(hint, format string, args ...any) {
		c.report.Fail(path, hint, "%s %q: %s", kind, name, fmt.Sprintf(format, args...))
		ok = false
	}
	for _, p := range sidecar.Unknown(parameters, secrets) {
		fail(hints.Suggest(p, sidecar.Known(secrets)), "unknown parameter %s: the sidecars refuse it", p)
	}
	for _, s := range secrets {
		value := parameters[s.Parameter()]
		of := sidecar.Object{Snapshot: kind != storageKind, ID: "x", Namespace: engine.Namespace, Name: "x"}
		if strings.Contains(value, "${pvc.annotations[") {
			continue
		}
		r, err := s.Of(parameters, of)
		switch {
		case err != nil:
			fail("", "%v", err)
		case value == "" || strings.Contains(value, "${"):
		default:
			if _, here := c.secrets.Of(r); !here {
				fail("put its document of kind: Secret beside the Benchmark, or in a further FILE",
					"%s names Secret %s, which is not here", s.Parameter(), r)
			}
		}
	}
	return ok
}
