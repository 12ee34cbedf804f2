package objectspec

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/object/backend"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/selector"
)

// field of an ObjectStorage.
type field struct {
	kind string // of the storage; empty: for all kinds without a field of their own
	// read fills m in; false: s does not have the field.
	read func(o *reader, path string, s *v1alpha1.ObjectStorage, m *model.Store) bool
	// write is the inverse of read.
	write func(c *converted, m *model.Store, out *v1alpha1.ObjectStorage) error
}

// fields by the kind of their storage; the last is for all others.
func fields() []field {
	return []field{
		{"s3", readS3, writeS3},
		{"swift", readSwift, writeSwift},
		{"file", readFile, writeFile},
		{"null", readNull, writeNull},
		{"", readOther, writeOther},
	}
}

// hasField reports whether a kind of storage has a field of its own.
func hasField(kind string) bool {
	return slices.ContainsFunc(fields(), func(f field) bool { return f.kind == kind })
}

// virtualHost is the addressing with buckets in the name of the host.
const virtualHost = "virtualHost"

func readS3(o *reader, path string, s *v1alpha1.ObjectStorage, m *model.Store) bool {
	x := s.S3Spec
	if x == nil {
		return false
	}
	path += ".s3Spec"
	o.address(path+".endpoint", x.Endpoint)
	for key, value := range map[string]string{"endpoint": x.Endpoint, "region": x.Region, "signature": x.Signature,
		"payload": x.Payload} {
		set(m.Settings, key, value)
	}
	if x.Addressing == virtualHost {
		m.Settings["path_style_access"] = "false"
	}
	o.http(path, &x.HTTPEndpoint, m)
	return true
}

func writeS3(_ *converted, m *model.Store, out *v1alpha1.ObjectStorage) (err error) {
	x := &v1alpha1.S3Spec{Endpoint: m.Settings["endpoint"], Region: m.Settings["region"],
		Signature: m.Settings["signature"],
		Payload:   m.Settings["payload"]}
	if m.Settings["path_style_access"] == "false" {
		x.Addressing = virtualHost
	}
	x.HTTPEndpoint, err = httpEndpoint(m.Settings)
	out.S3Spec = x
	return err
}

func readSwift(o *reader, path string, s *v1alpha1.ObjectStorage, m *model.Store) bool {
	x := s.SwiftSpec
	if x == nil {
		return false
	}
	path += ".swiftSpec"
	if m.AuthKind = x.Auth; x.AuthURL == "" { // the credentials have the token
		m.AuthKind = "none"
	}
	o.address(path+".authURL", x.AuthURL)
	o.address(path+".storageURL", x.StorageURL)
	set(m.Settings, "storage_url", x.StorageURL)
	set(m.Settings, "policy", x.Policy)
	for key, value := range map[string]string{"auth_url": x.AuthURL, "username": x.Username, "project_name": x.Project,
		"user_domain": x.UserDomain, "project_domain": x.ProjectDomain, "region": x.Region, "interface": x.Interface} {
		set(m.Auth, key, value)
	}
	o.http(path, &x.HTTPEndpoint, m)
	return true
}

func writeSwift(_ *converted, m *model.Store, out *v1alpha1.ObjectStorage) (err error) {
	x := &v1alpha1.SwiftSpec{AuthURL: m.Auth["auth_url"], StorageURL: m.Settings["storage_url"],
		Username:   m.Auth["username"],
		Project:    first(m.Auth, "project_name", "tenant_name", "tenant"),
		UserDomain: first(m.Auth, "user_domain", "domain"), ProjectDomain: first(m.Auth, "project_domain", "domain"),
		Region: m.Auth["region"], Interface: m.Auth["interface"], Policy: m.Settings["policy"]}
	if x.AuthURL != "" {
		x.Auth = m.AuthKind
	}
	x.HTTPEndpoint, err = httpEndpoint(m.Settings)
	out.SwiftSpec = x
	return err
}

func readFile(o *reader, path string, s *v1alpha1.ObjectStorage, m *model.Store) bool {
	if s.FileSpec == nil {
		return false
	}
	set(m.Settings, "root", volumeDir)
	set(m.Settings, "sync", s.FileSpec.Sync)
	if o.volume != nil && o.volume != s.FileSpec {
		o.fail(path+".fileSpec", "", "only one volume for objects is supported")
	}
	o.volume = s.FileSpec
	return true
}

func writeFile(c *converted, m *model.Store, out *v1alpha1.ObjectStorage) error {
	c.note("the files of storage file were in %s: here they are on a volume of the instance's own, in a directory "+
		"as there "+
		"(fileSpec.storageClass: hostdir); name another class to measure that", m.Settings["root"])
	out.FileSpec = &v1alpha1.ObjectFileSpec{StorageClass: "hostdir", Sync: m.Settings["sync"]}
	return nil
}

func readNull(o *reader, path string, s *v1alpha1.ObjectStorage, m *model.Store) bool {
	if s.NullSpec == nil {
		return false
	}
	m.Settings["size"] = strconv.FormatInt(o.bytes(path+".nullSpec.size", s.NullSpec.Size), 10)
	return true
}

func writeNull(_ *converted, m *model.Store, out *v1alpha1.ObjectStorage) error {
	out.NullSpec = &v1alpha1.ObjectNullSpec{}
	text := m.Settings["size"]
	if text == "" {
		return nil
	}
	n, err := selector.ParseBytes(text)
	out.NullSpec.Size = bytesOf(n)
	return err
}

func readOther(o *reader, path string, s *v1alpha1.ObjectStorage, m *model.Store) bool {
	x := s.OtherSpec
	if x == nil {
		return false
	}
	path += ".otherSpec"
	d := backend.Find(x.Type)
	switch {
	case d == nil || d.Auth && !hasField(d.Kind):
		o.fail(path+".type", otherKinds(), "there is no storage %q", x.Type)
		return false
	case hasField(d.Kind):
		o.fail(path+".type", fmt.Sprintf("write %sSpec", d.Kind), "storage %s has a field of its own", d.Kind)
		return false
	}
	for _, key := range slices.Sorted(maps.Keys(x.Settings)) {
		switch {
		case slices.Contains(backend.SecretKeys(), key) || key == "credentials":
			o.fail(path+".settings", "credentials: {secretName: …} or {file: …}",
				"credentials do not belong into the settings")
		case !slices.Contains(d.Keys, key):
			o.fail(path+".settings."+key, "there are "+strings.Join(d.Keys, ", "), "storage %s has no setting %q",
				d.Kind, key)
		}
		m.Settings[key] = x.Settings[key]
	}
	m.Kind = d.Kind
	return true
}

func writeOther(_ *converted, m *model.Store, out *v1alpha1.ObjectStorage) error {
	settings := maps.Clone(m.Settings)
	delete(settings, "credentials")
	out.OtherSpec = &v1alpha1.ObjectOtherSpec{Type: m.Kind, Settings: settings}
	return nil
}

// otherKinds names the kinds of storage that have no field of their own, or says what to do without any.
func otherKinds() string {
	var kinds []string
	for _, d := range backend.All() {
		if !d.Auth && !hasField(d.Kind) {
			kinds = append(kinds, d.Kind)
		}
	}
	if len(kinds) == 0 {
		return "every kind of storage has a field of its own, such as s3Spec"
	}
	return "there are " + strings.Join(kinds, ", ")
}

// storage reads the store of a work.
func (o *reader) storage(path string, s *v1alpha1.ObjectStorage) model.Store {
	m := model.Store{Settings: map[string]string{}, Auth: map[string]string{}}
	for _, f := range fields() {
		if f.read(o, path, s, &m) {
			m.Kind = cmp.Or(m.Kind, f.kind)
		}
	}
	o.credentials(path, s, &m)
	return m
}
