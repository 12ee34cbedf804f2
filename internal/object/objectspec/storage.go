package objectspec

import (
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/object/model"
)

// hostMount is a file or a directory of this machine that the program is given.
type hostMount struct{ path, kind string }

// given is where the program finds what the Benchmark names by its path: on the
// cluster's nodes it is the program's own; here the program sees nothing of the
// machine that it is not given.
func (o *reader) given(path, kind string) string {
	if path == "" || o.cluster {
		return path
	}
	if m := (hostMount{path, kind}); !slices.Contains(o.host, m) {
		o.host = append(o.host, m)
	}
	return hostDir + path
}

// virtualHost is the addressing with buckets in the name of the host.
const virtualHost = "virtualHost"

// storage is where a work goes.
func (o *reader) storage(path string, s *v1alpha1.ObjectStorage) model.Store {
	m := model.Store{Settings: map[string]string{}, Auth: map[string]string{}}
	set := func(key, value string) {
		if value != "" {
			m.Settings[key] = value
		}
	}
	http := func(path string, e *v1alpha1.HTTPEndpoint) {
		set("cafile", o.given(e.CAFile, "File"))
		if e.Proxy != "" { // the schema has its form
			host, port, err := net.SplitHostPort(strings.TrimPrefix(e.Proxy, "http://"))
			if err != nil {
				o.fail(path+".proxy", "such as http://HOST:PORT", "%q is no address", e.Proxy)
			}
			set("proxyhost", host)
			set("proxyport", port)
		}
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
		set("root", volumeDir)
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
func (o *reader) address(path, text string) {
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

func (o *reader) credentials(path string, s *v1alpha1.ObjectStorage, m *model.Store) {
	c, cluster := s.Credentials, o.cluster
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
		o.fail(path+".credentials.secretName", "file, or the environment", "there are no Secrets on engine %s", o.engine)
	case c.File != "" && cluster:
		o.fail(path+".credentials.file", "kubectl create secret generic NAME --from-literal=accesskey=… --from-literal=secretkey=…, and secretName", "a file of this machine is not on the cluster's nodes")
	case c.File != "":
		m.Settings["credentials"] = o.given(c.File, "File")
	case o.secret != "" && o.secret != c.SecretName:
		o.fail(path+".credentials.secretName", "", "a second Secret beside %q cannot be", o.secret)
	default:
		o.secret = c.SecretName
		m.Settings["credentials"] = credentialsDir
	}
}

// places are the containers that an object workload makes, as this machine
// reaches their stores: what the program finds below hostDir is here, and of
// what a Secret has the environment must tell.
func places(w *model.Workload) []model.Place {
	made := model.Places(w)
	for i := range made {
		s := &made[i].Store
		s.Settings = maps.Clone(s.Settings)
		for _, key := range []string{"cafile", "credentials"} {
			if here, ok := strings.CutPrefix(s.Settings[key], hostDir+"/"); ok {
				s.Settings[key] = "/" + here
			}
		}
		if s.Settings["credentials"] == credentialsDir {
			delete(s.Settings, "credentials")
		}
	}
	return made
}
