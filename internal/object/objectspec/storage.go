package objectspec

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/object/backend"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/spread"
)

// proxyVariables name a proxy in the environment.
var proxyVariables = []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"}

// http reads the settings of a store that speaks HTTP.
func (o *reader) http(path string, e *v1alpha1.HTTPEndpoint, m *model.Store) {
	for i, address := range e.Endpoints {
		o.address(fmt.Sprintf("%s.endpoints[%d]", path, i), address)
	}
	for key, value := range map[string]string{spread.Endpoints: strings.Join(e.Endpoints, ","),
		spread.Addresses: e.Addresses, spread.By: e.Spread, spread.OnFailure: e.OnEndpointFailure} {
		set(m.Settings, key, value)
	}
	set(m.Settings, "cafile", o.given(e.CAFile, "File"))
	if e.Proxy != "" { // the schema has its form
		host, port, err := net.SplitHostPort(strings.TrimPrefix(e.Proxy, "http://"))
		if err != nil {
			o.fail(path+".proxy", "such as http://HOST:PORT", "%q is no address", e.Proxy)
		}
		set(m.Settings, "proxyhost", host)
		set(m.Settings, "proxyport", port)
	}
	if e.Proxy == "" && !o.cluster {
		for _, name := range proxyVariables {
			if !slices.Contains(o.pass, name) {
				o.pass = append(o.pass, name)
			}
		}
	}
	set(m.Settings, "family", e.AddressFamily)
	set(m.Settings, "source", strings.Join(e.SourceAddresses, ","))
	set(m.Settings, "http", e.HTTPVersion)
	if e.InsecureSkipVerify {
		m.Settings["no_verify_ssl"] = "true"
	}
	if d := o.positive(path+".timeout", e.Timeout); d > 0 {
		m.Settings["timeout"] = strconv.FormatInt(max(1, d.Milliseconds()), 10)
	}
}

// set leaves out what is empty.
func set(settings map[string]string, key, value string) {
	if value != "" {
		settings[key] = value
	}
}

// address refuses invalid addresses, and credentials in one. The schema requires addresses.
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

func (o *reader) credentials(path string, s *v1alpha1.ObjectStorage, m *model.Store) {
	c, cluster, d := s.Credentials, o.cluster, backend.Find(m.Kind)
	switch {
	case d == nil: // reported by the schema or the field
	case c != nil && len(d.Variables) == 0:
		o.fail(path+".credentials", "leave them out", "storage %s needs no credentials", m.Kind)
	case c == nil && !cluster:
		for _, v := range d.Variables {
			if !slices.Contains(o.pass, v.Name) {
				o.pass = append(o.pass, v.Name)
			}
		}
	case c == nil && d.Credential != nil:
		needed := d.Credential(m)
		o.fail(path, "credentials: {secretName: NAME}, with the key "+needed.Key, "%s", needed.Why)
	case c == nil:
	case c.SecretName != "" && !cluster:
		o.fail(path+".credentials.secretName", "file, or the environment", "there are no Secrets on engine %s",
			o.engine)
	case c.File != "" && cluster:
		o.fail(path+".credentials.file",
			"kubectl create secret generic NAME --from-literal=accesskey=… --from-literal=secretkey=…, and secretName",
			"a file of this machine is not on the cluster's nodes")
	case c.File != "":
		m.Settings["credentials"] = o.given(c.File, "File")
	case o.secret != "" && o.secret != c.SecretName:
		o.fail(path+".credentials.secretName", "", "only one Secret is supported, and %q is another", o.secret)
	default:
		o.secret = c.SecretName
		m.Settings["credentials"] = credentialsDir
	}
}

// places are the containers that an object workload makes, with the stores as this machine reaches them: paths below
// hostDir become this machine's, and credentials of a Secret must come from the environment.
func places(w *model.Workload) []model.Place {
	made := model.Places(w, backend.Traits)
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
