// Package redact removes secrets from what a bundle records of other programs: log lines, command lines, and fields of
// objects. It works by names, by forms of secrets and by values that it is given, so a secret in another form under an
// innocent name is not found.
package redact

import (
	"regexp"
	"strings"
)

// Hidden stands in the place of a secret.
const Hidden = "***"

const (
	// nameWords are parts of the names of secrets, with letters in either case.
	nameWords = `passw|passphrase|secret|token|credential|` +
		`(?:api|access|private|account|auth|user|admin|encryption)[_-]?key`
	// textWords are parts of them in texts, where a name is followed by its value. Flags and fields with the further ones,
	// such as --authorization-mode, have no secrets.
	textWords = `(?:` + nameWords + `|authorization|signature)`
)

var (
	// secret matches names of secrets.
	secret = regexp.MustCompile(`(?i)` + nameWords)
	// reference matches names of things that say where a secret is.
	reference = regexp.MustCompile(
		`(?i)(name|namespace|ref|reference|file|path|dir|type|ttl|expiry|seconds|audience|required)$`)
	// userinfo matches the credentials of a URL, also a name alone.
	userinfo = regexp.MustCompile(`://[^/@\s]+@`)
)

// Names reports whether a field, flag or variable of this name has a secret, as opposed to the place of one.
func Names(name string) bool { return secret.MatchString(name) && !reference.MatchString(name) }

// Value returns the value of a field or flag: Hidden if the name is that of a secret, otherwise without what has the
// form of one; see Text.
func Value(name, value string) string {
	if value != "" && Names(name) {
		return Hidden
	}
	return userinfo.ReplaceAllString(Text(value), "://"+Hidden+"@")
}

// Args returns a command line without secrets. It knows the forms --name=value, --name value and NAME=value; an
// argument with blanks before "=" is a text, such as the command of a shell.
func Args(args []string) []string {
	list := make([]string, len(args))
	hide := false
	for i, a := range args {
		name, value, given := strings.Cut(a, "=")
		flag := strings.HasPrefix(name, "-")
		switch {
		case hide && !flag:
			list[i] = Hidden
		case given && !strings.ContainsAny(name, " \t\n"):
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
		if words, ok := texts(v); ok {
			for i, w := range Args(words) {
				v[i] = w
			}
			break
		}
		for i := range v {
			v[i] = Object(v[i])
		}
	case string:
		return Value("", v)
	}
	return v
}

// texts returns a list of strings; false if it has other values.
func texts(list []any) (words []string, ok bool) {
	for _, v := range list {
		text, ok := v.(string)
		if !ok {
			return nil, false
		}
		words = append(words, text)
	}
	return words, true
}
