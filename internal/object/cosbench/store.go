package cosbench

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/hints"
	"github.com/cnsbench/cnsbench/internal/object/backend"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/spread"
)

// declined has the types of storage that are not supported, with the reason; authKinds has the kinds of auth.
var (
	declined = map[string]string{
		"gcs": ofService("Google Cloud Storage"), "aliyun": ofService("Alibaba OSS"), "ecs": ofService("Dell ECS"),
		"ehualu": ofService("eHualu"), "gdas": ofService("GDAS"), "sio": ofService("SIO"), "siov2": ofService("SIO"),
		"openio": "use s3 or swift, which OpenIO's gateways have", "sproxyd": "use s3 with Scality's S3 connector",
		"librados": "use s3 with a RADOS gateway of the same pool: an adaptor would need Ceph's C library",
		"cdmi":     noCDMI, "cdmi_base": noCDMI, "cdmi_swift": noCDMI,
		"ampli": "use s3, which ActiveScale, the successor of these servers, has",
		"azure": "Azure has no S3: use s3 with a gateway before it",
	}
	authKinds = map[string]string{"": "none", "none": "none", "mock": "none", "noop": "none", "swauth": "tempauth",
		"tempauth": "tempauth",
		"keystone": "keystone", "keystonev2": "keystonev2", "keystonev3": "keystonev3"}
)

const noCDMI = "CDMI has no server without S3 or Swift, see docs/reference/object.md: use s3 or swift"

// ofService is what to do where a service has an endpoint for S3.
func ofService(name string) string { return "use s3 with the S3 endpoint of " + name }

// The keys of storages and auths. Values of secretKeys are stored separately.
var (
	authKeys = []string{"username", "password", "auth_url", "tenant_name", "tenant", "project_name", "domain",
		"user_domain", "project_domain",
		"region", "credentials", "interface"}
	// aliases are COSBench's other names for keys of an auth or a storage. If both are given, the key itself
	// is used.
	aliases = map[string]map[string]string{
		"auth":    {"url": "auth_url", "tenname": "tenant_name"},
		"storage": {"aws_region": "region"},
	}
	// elsewhere are keys of COSBench's auths and storages that have no effect in CNSBench, with their
	// replacement.
	elsewhere = map[string]map[string]string{
		"auth": {"service": "the service of type object-store is taken", "userid": "username says who it is",
			"timeout": "that of the storage holds for it too", "token": "give it to the storage, with storage_url"},
		"storage": {"max_connections": "each worker has a connection of its own",
			"part_size": "partsize of an operation multipart"},
	}
	// unsupported are keys of storages that change the measurement, with the only accepted value.
	unsupported = map[string]string{"storage_class": "STANDARD"}
	// switches are keys whose value is true or false, in upper or lower case.
	switches   = []string{"path_style_access", "no_verify_ssl"}
	secretKeys = backend.SecretKeys()
)

func (p *parser) store(work *node, name string, l level) model.Store {
	s := model.Store{Settings: map[string]string{}, Auth: map[string]string{}, Secrets: model.Secrets{}}
	if l.storage == nil {
		p.Warn(work.line, `if that is not meant write one, such as <storage type="s3" config="endpoint=…"/>`,
			"work %q has no storage: storage none is used, as in COSBench, which sends nothing", clip(name))
		l.storage = &node{name: "storage", line: work.line}
	}
	s.Line = l.storage.line
	p.only(l.storage, "type config", "")
	kind := strings.ToLower(l.storage.attrs["type"].value)
	d := backend.OfType(kind)
	if d == nil {
		hint := "there are " + strings.Join(backend.Types(), ", ")
		if why := declined[kind]; why != "" {
			hint = why + "; " + hint
		}
		p.failOnce(l.storage.line, hint, "there is no storage %q", kind)
		return s
	}
	s.Kind = d.Kind
	p.settings(l.storage, d.Keys, s.Settings, s.Secrets)
	if l.auth != nil {
		p.only(l.auth, "type config", "")
		kind := strings.ToLower(l.auth.attrs["type"].value)
		authKind, ok := authKinds[kind]
		if s.AuthKind = authKind; !ok {
			p.failOnce(l.auth.line, "there are none, tempauth (also swauth), keystone, keystonev2, keystonev3",
				"auth %q is not supported", kind)
			return s
		}
		switch {
		case s.AuthKind == "none":
			p.settings(l.auth, nil, nil, nil)
		case !d.Auth:
			p.warnOnce(l.auth.line, "", "auth %s is ignored: storage %s needs none", kind, s.Kind)
			s.AuthKind = "none"
		default:
			p.settings(l.auth, authKeys, s.Auth, s.Secrets)
		}
	}
	p.complete(d, &s, l)
	return s
}

// complete reports missing settings of a store.
func (p *parser) complete(d *backend.Descriptor, s *model.Store, l level) {
	if d.Check == nil {
		return
	}
	given := func(n *node) func(key string) bool { // invalid settings count as given, since they are reported already
		return func(key string) bool {
			c, _ := settingsOf(n)
			return c[key].value != ""
		}
	}
	for _, f := range d.Check(s, given(l.storage), given(l.auth)) {
		line, report := l.storage.line, p.failOnce
		if f.Auth {
			line = l.auth.line
		}
		if f.Warning {
			report = p.warnOnce
		}
		report(line, f.Hint, "%s", f.Message)
	}
}

// settingsOf parses the config string of a storage or an auth. Aliases of keys are replaced with the keys.
func settingsOf(n *node) (c config, odd []string) {
	c, odd = config(nil).with(n.attrs["config"])
	for alias, key := range aliases[n.name] {
		if e, ok := c[alias]; ok {
			if c[key].value == "" {
				c[key] = e
			}
			delete(c, alias)
		}
	}
	return c, odd
}

// settings checks the config of a storage or an auth, and stores its values in into and secrets.
func (p *parser) settings(n *node, known []string, into map[string]string, secrets model.Secrets) {
	c, odd := settingsOf(n)
	if len(odd) > 0 { // the text is not shown, since it may be the rest of a password
		p.warnOnce(n.line, `write key=value; a ";" ends a value`,
			"there is something without a value in the config of <%s>: it is ignored, as in COSBench", n.name)
	}
	for _, k := range c.keys() {
		e := c[k]
		if !slices.Contains(known, k) {
			if plain, ok := unsupported[k]; ok && n.name == "storage" && !strings.EqualFold(e.value, plain) {
				p.failOnce(e.line, "leave it out, if the store's default will do", "%s=%s is not supported", e.key,
					clip(e.value))
				continue
			}
			hint := cmp.Or(elsewhere[n.name][k], hints.Nearest(e.key, known))
			p.warnOnce(e.line, hint, "the key %q of <%s> has no meaning here and is ignored", clip(e.key), n.name)
			continue
		}
		if e.value == hidden && slices.Contains(secretKeys, k) {
			p.warnOnce(e.line, "write it, or ${NAME} to take it from the environment, or leave it out: "+
				"credentials are looked for elsewhere then, see docs/reference/object.md",
				"%s is %s, which a bundle has in the place of a credential: it is taken for absent", e.key, hidden)
			continue
		}
		value, ok := p.expand(e)
		if !ok {
			continue
		}
		if k == spread.Endpoints {
			for part := range strings.SplitSeq(value, ",") {
				if _, valid := p.address(e, strings.TrimSpace(part)); !valid {
					ok = false
				}
			}
			if !ok {
				continue
			}
		}
		if strings.HasSuffix(k, "_url") || k == "endpoint" {
			value, ok = p.address(e, value)
			if !ok {
				continue
			}
		}
		if b, err := parseBool(value); err == nil && value != "" && slices.Contains(switches, k) {
			value = strconv.FormatBool(b)
		}
		if slices.Contains(secretKeys, k) {
			secrets[k] = value
		} else {
			into[k] = value
		}
	}
}

var (
	variable    = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)
	placeholder = regexp.MustCompile(`^(<.*>|\{\{.*\}\}|\[.*\]|\.\.\.|…|MODIFY_?ME|CHANGE_?ME|YOUR_.*|HOSTNAME)$`)
)

// expand replaces environment variables and rejects placeholders.
func (p *parser) expand(e entry) (string, bool) {
	ok := true
	value := variable.ReplaceAllStringFunc(e.value, func(m string) string {
		name := m[2 : len(m)-1]
		if p.getenv != nil {
			if v, found := p.getenv(name); found {
				return v
			}
		}
		p.failOnce(e.line, "export it", "%s is taken from %s, which is not in the environment", e.key, name)
		ok = false
		return ""
	})
	if ok && placeholder.MatchString(strings.TrimSpace(e.value)) {
		p.failOnce(e.line, "write it, or ${NAME} to take it from the environment; credentials may be left out, "+
			"see docs/reference/object.md",
			"%s is still the placeholder %s", e.key, clip(e.value))
		return "", false
	}
	return value, ok
}

// address checks a URL. A URL without a scheme is an error: COSBench's S3 library would use TLS, its other
// libraries would not.
func (p *parser) address(e entry, value string) (string, bool) {
	bare := !strings.Contains(value, "://")
	text := value
	if bare {
		text = "http://" + value
	}
	u, err := url.Parse(text)
	_, host, _ := strings.Cut(text, "://")
	host, _, _ = strings.Cut(host, "/")
	switch {
	case strings.Contains(host, "@"): // checked first, so that an invalid URL with credentials is not shown
		p.failOnce(e.line, "set them separately", "%s has credentials in its address", e.key)
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || strings.HasSuffix(host, ":"):
		p.failOnce(e.line, "such as http://HOST:PORT", "%s=%s is not an address", e.key, clip(e.value))
	case bare:
		hint := fmt.Sprintf("write %[1]s=http://%[2]s, or %[1]s=https://%[2]s for TLS", e.key, clip(e.value))
		p.failOnce(e.line, hint, "%s=%s has no scheme", e.key, clip(e.value))
	default:
		return value, true
	}
	return "", false
}
