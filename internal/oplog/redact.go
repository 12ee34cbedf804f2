package oplog

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// Redacted replaces a secret.
const Redacted = "***redacted***"

// shortestSecret is the shortest known value that is replaced: shorter ones occur by chance.
const shortestSecret = 6

// Redactor removes secrets from log lines: values that it knows, and what has the form of a secret. The forms are
// those of CSI requests, Kubernetes' components, HTTP headers, URLs, S3 and mount options; a secret in a form of its
// own that is not known stays. It is safe for concurrent use.
type Redactor struct{ known *strings.Replacer }

// NewRedactor returns a Redactor that knows values.
func NewRedactor(values ...string) *Redactor {
	values = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return len(v) < shortestSecret })
	slices.SortFunc(values, func(a, b string) int { // a value may contain another
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	var pairs []string
	for _, v := range slices.Compact(values) {
		pairs = append(pairs, v, Redacted)
	}
	return &Redactor{known: strings.NewReplacer(pairs...)}
}

// keyWords are parts of the names of secrets.
const keyWords = `(?:pass(?:word|wd|phrase)|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|user[_-]?key|` +
	`admin[_-]?key|encryption[_-]?key|credential|authorization|signature)`

// secretName matches the name of a variable or field whose value is a secret.
var secretName = regexp.MustCompile(`(?i)` + keyWords)

// IsSecretName reports whether the value of a variable of that name is a secret.
func IsSecretName(name string) bool { return secretName.MatchString(name) }

// signs are in every secret with a name, in lower case: a line without one need not be searched.
var signs = []string{"pass", "secret", "token", "key", "credential", "authorization", "signature"}

// form is a form of secrets. A line has none without one of its signs, in lower case.
type form struct {
	signs []string
	found *regexp.Regexp
	by    string
}

// forms are the forms of secrets, in the order in which they are replaced.
var forms = []form{
	// The secrets of a CSI request as protobuf text, Go syntax or JSON, quoted or not.
	{[]string{"secrets"}, regexp.MustCompile(`(?i)(secrets\\?"?\s*[:=]\s*)` +
		`(?:map\[[^\]]*\]|<(?:"(?:[^"\\]|\\.)*"|[^>"])*>|\{(?:"(?:[^"\\]|\\.)*"|[^}"])*\}|<[^>]*>|\{[^}]*\})`),
		"${1}" + Redacted},
	{[]string{"bearer", "basic", "digest"},
		regexp.MustCompile(`(?i)\b((?:bearer|basic|digest)\s+)[A-Za-z0-9._~+/=-]{6,}`), "${1}" + Redacted},
	{[]string{"://"}, regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^/\s:@"']*:[^/\s@"']+@`),
		"${1}" + Redacted + "@"},
	{[]string{"akia", "asia"}, regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`), Redacted},
	{[]string{"eyj"}, regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?`), Redacted},
	{[]string{"sig="}, regexp.MustCompile(`([?&]sig=)[^&\s"']+`), "${1}" + Redacted},
	// name=value, name: value, name: [values], "name":"value", \"name\":\"value\". A scheme such as Bearer stays.
	{signs, regexp.MustCompile(`(?i)(` + keyWords +
		`[A-Za-z0-9_.-]*\\?["']?\s*[:=]\s*(?:(?:bearer|basic|digest)\s+)?)(?:\[[^\]]*(?:\]|$)|` +
		`\\"(?:[^"\\]|\\[^"])*(?:\\"|$)|"(?:[^"\\]|\\.)*(?:"|$)|'[^']*(?:'|$)|[^\s,;&"'}\])>]+)`),
		"${1}" + Redacted},
	{signs, regexp.MustCompile(`(?i)(\s--?[a-z0-9-]*` + keyWords + `[a-z0-9-]*\s+)[^\s-]\S*`), "${1}" + Redacted},
}

// keyText is the state of a source that may print a key over several lines.
type keyText struct {
	inside bool
	lines  int // since its begin
}

// longestKey is the most lines of a key, so that a begin without an end does not hide a log.
const longestKey = 200

var (
	keyBegins = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----`)
	keyEnds   = regexp.MustCompile(`-----END [A-Z0-9 ]*PRIVATE KEY-----`)
	// base64Line is a line of a key whose begin was not in the window.
	base64Line = regexp.MustCompile(`^\s*[A-Za-z0-9+/]{40,}={0,2}\s*$`)
)

// line removes the secrets of one line.
func (r *Redactor) line(k *keyText, s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if k.lines++; k.inside && k.lines <= longestKey {
		end := keyEnds.FindStringIndex(s)
		if end == nil {
			return Redacted
		}
		s = Redacted + s[end[1]:]
	}
	k.inside = false
	for strings.Contains(s, "PRIVATE KEY") {
		begin := keyBegins.FindStringIndex(s)
		if begin == nil {
			break
		}
		end := keyEnds.FindStringIndex(s[begin[1]:])
		if end == nil {
			k.inside, k.lines, s = true, 0, s[:begin[0]]+Redacted
			break
		}
		s = s[:begin[0]] + Redacted + s[begin[1]+end[1]:]
	}
	if base64Line.MatchString(s) {
		return Redacted
	}
	s = r.known.Replace(s)
	lower := strings.ToLower(s)
	for _, f := range forms {
		if slices.ContainsFunc(f.signs, func(sign string) bool { return strings.Contains(lower, sign) }) {
			s = f.found.ReplaceAllString(s, f.by)
		}
	}
	return s
}
