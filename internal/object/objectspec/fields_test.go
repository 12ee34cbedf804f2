package objectspec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/object/backend"
	"github.com/cnsbench/cnsbench/internal/object/model"
)

// problems is a workload.SpecFile that keeps what is reported.
type problems []string

func (p *problems) Has(string) bool { return false }

func (p *problems) Fail(path, hint, format string, args ...any) {
	*p = append(*p, fmt.Sprintf("%s: %s (%s)", path, fmt.Sprintf(format, args...), hint))
}

func (p *problems) Warn(path, hint, format string, args ...any) { p.Fail(path, hint, format, args...) }

// otherSpec is for kinds without a field of their own, and takes no credentials.
func TestOtherSpecRefuses(t *testing.T) {
	for _, tt := range []struct {
		kind, want string
	}{
		{"memory", `storage.otherSpec.type: there is no storage "memory"`},
		{"swift", `storage.otherSpec.type: storage swift has a field of its own`},
		{"s3", "storage s3 has a field of its own (write s3Spec)"},
	} {
		var said problems
		o := reader{file: &said, engine: "local"}
		o.storage("storage", &v1alpha1.ObjectStorage{OtherSpec: &v1alpha1.ObjectOtherSpec{Type: tt.kind}})
		if len(said) != 1 || !strings.Contains(said[0], tt.want) {
			t.Errorf("%s: %q, want %q", tt.kind, []string(said), tt.want)
		}
	}
}

// Every kind of storage has a field that is read as it was written.
func TestFieldsAreInverse(t *testing.T) {
	settings := map[string]model.Store{
		"s3": {Settings: map[string]string{"endpoint": "http://h:1", "region": "r", "path_style_access": "false",
			"signature": "v2",
			"payload":   "signed", "timeout": "2000", "cafile": "/ca.pem", "no_verify_ssl": "true", "proxyhost": "p", "proxyport": "1"}},
		"swift": {AuthKind: "keystonev3", Settings: map[string]string{"policy": "gold",
			"endpoints": "http://h:2,http://h:3", "spread": "request", "addresses": "all",
			"on_endpoint_failure": "leaveOut"},
			Auth: map[string]string{"auth_url": "http://h:1/v3", "username": "u", "project_name": "p"}},
		"file": {Settings: map[string]string{"root": volumeDir, "sync": "data"}},
		"null": {Settings: map[string]string{"size": "4096"}},
	}
	for _, d := range backend.All() {
		want, known := settings[d.Kind]
		if !known && hasField(d.Kind) {
			t.Errorf("storage %s is not tested", d.Kind)
			continue
		}
		if want.Kind = d.Kind; want.Settings == nil {
			want.Settings = map[string]string{}
		}
		if want.Auth == nil {
			want.Auth = map[string]string{}
		}
		spec, err := (&converted{}).storage(&want)
		if err != nil {
			t.Fatal(err)
		}
		var said problems
		o := reader{file: &said, engine: "kubernetes", cluster: true}
		if d.Credential != nil {
			spec.Credentials = &v1alpha1.ObjectCredentials{SecretName: "keys"}
			want.Settings["credentials"] = credentialsDir
		}
		got := o.storage("storage", spec)
		if diff := cmp.Diff(want, got); diff != "" || len(said) > 0 {
			t.Errorf("%s: %v\n%s", d.Kind, said, diff)
		}
	}
}

// An operation of an unknown type, which the schema reports, is left out.
func TestUnknownOperation(t *testing.T) {
	var said problems
	o, ratio := reader{file: &said}, int32(20)
	o.operations("work", &model.Work{}, &v1alpha1.ObjectWork{Operations: []v1alpha1.ObjectOperation{
		{Type: "raed", Ratio: &ratio}}})
	if !o.incomplete || len(said) > 0 {
		t.Errorf("incomplete %v: %q", o.incomplete, []string(said))
	}
}
