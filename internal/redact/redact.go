// Package redact removes secrets from facts that a bundle records about other programs: their command lines, and
// fields of objects. It works by names, so a secret under an innocent name is not found.
package redact

import (
	"regexp"
	"strings"
)

// Hidden stands in the place of a secret.
const Hidden = "***"

var (
	// secret matches names of secrets.
	secret = regexp.MustCompile(`(?i)(secret|passw|passphrase|token|credential|(api|access|private|account|auth)[-_]?key)`)
	// reference matches names of things that say where a secret is.
	reference = regexp.MustCompile(
		`(?i)(name|namespace|ref|reference|file|path|dir|type|ttl|expiry|seconds|audience|required)$`)
	// userinfo matches the credentials of a URL.
	userinfo = regexp.MustCompile(`://[^/@\s]+@`)
)

// Names reports whether a field or flag of this name has a secret, as opposed to the place of one.
func Names(name string) bool { return secret.MatchString(name) && !reference.MatchString(name) }

// Value returns the value of a field or flag: Hidden if the name is that of a secret, otherwise without the credentials
// of URLs.
func Value(name, value string) string {
	if value != "" && Names(name) {
		return Hidden
	}
	return userinfo.ReplaceAllString(value, "://"+Hidden+"@")
}

// Args returns a command line without secrets. It knows the forms --name=value, --name value and NAME=value.
func Args(args []string) []string {
	list := make([]string, len(args))
	hide := false
	for i, a := range args {
		name, value, given := strings.Cut(a, "=")
		flag := strings.HasPrefix(name, "-")
		switch {
		case hide && !flag:
			list[i] = Hidden
		case given:
			list[i] = name + "=" + Value(strings.TrimLeft(name, "-"), value)
		default:
			list[i] = Value("", a)
		}
		hide = flag && !given && Names(name)
	}
	return list
}

// Object replaces the secrets in decoded JSON, in place, and returns it.
func Object(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			if text, ok := inner.(string); ok {
				v[k] = Value(k, text)
			} else {
				v[k] = Object(inner)
			}
		}
		// A list of {name, value} pairs, as of environment variables.
		if name, ok := v["name"].(string); ok {
			if value, ok := v["value"].(string); ok {
				v["value"] = Value(name, value)
			}
		}
	case []any:
		for i := range v {
			if text, ok := v[i].(string); ok {
				v[i] = Value("", text)
			} else {
				v[i] = Object(v[i])
			}
		}
	}
	return v
}
