package redact

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// shortestSecret is the shortest known value that is replaced: shorter ones occur by chance.
const shortestSecret = 6

// Lines removes secrets from log lines: values that it knows, and what has the form of a secret; see Text. It is safe
// for concurrent use.
type Lines struct{ known *strings.Replacer }

// NewLines returns Lines that know values.
func NewLines(values ...string) *Lines {
	values = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return len(v) < shortestSecret })
	slices.SortFunc(values, func(a, b string) int { // a value may contain another
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	var pairs []string
	for _, v := range slices.Compact(values) {
		pairs = append(pairs, v, Hidden)
	}
	return &Lines{known: strings.NewReplacer(pairs...)}
}

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
		"${1}" + Hidden},
	{[]string{"bearer", "basic", "digest"},
		regexp.MustCompile(`(?i)\b((?:bearer|basic|digest)\s+)[A-Za-z0-9._~+/=-]{6,}`), "${1}" + Hidden},
	{[]string{"://"}, regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^/\s:@"']*:[^/\s@"']+@`),
		"${1}" + Hidden + "@"},
	{[]string{"akia", "asia"}, regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`), Hidden},
	{[]string{"eyj"}, regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?`), Hidden},
	{[]string{"sig="}, regexp.MustCompile(`([?&]sig=)[^&\s"']+`), "${1}" + Hidden},
	// name=value, name: value, name: [values], "name":"value", \"name\":\"value\". A scheme such as Bearer stays.
	{signs, regexp.MustCompile(`(?i)(` + textWords +
		`[A-Za-z0-9_.-]*\\?["']?\s*[:=]\s*(?:(?:bearer|basic|digest)\s+)?)(?:\[[^\]]*(?:\]|$)|` +
		`\\"(?:[^"\\]|\\[^"])*(?:\\"|$)|"(?:[^"\\]|\\.)*(?:"|$)|'[^']*(?:'|$)|[^\s,;&"'}\])>]+)`),
		"${1}" + Hidden},
	{signs, regexp.MustCompile(`(?i)((?:^|\s)--?[a-z0-9-]*` + textWords + `[a-z0-9-]*\s+)[^\s-]\S*`), "${1}" + Hidden},
}

// Source is the state of one source of lines, which may print a key over several of them. The zero value is its begin.
type Source struct {
	inside bool
	lines  int // since the begin of the key
}

// longestKey is the most lines of a key, so that a begin without an end does not hide a log.
const longestKey = 200

var (
	keyBegins = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----`)
	keyEnds   = regexp.MustCompile(`-----END [A-Z0-9 ]*PRIVATE KEY-----`)
	// base64Line is a line of a key whose begin is not in the log.
	base64Line = regexp.MustCompile(`^\s*[A-Za-z0-9+/]{40,}={0,2}\s*$`)
)

// Line removes the secrets of the next line of a source. It returns valid UTF-8.
func (l *Lines) Line(from *Source, s string) string {
	s = from.hideKeys(strings.ToValidUTF8(s, "\uFFFD"))
	if base64Line.MatchString(s) {
		return Hidden
	}
	return hideForms(l.known.Replace(s))
}

// Text removes the known values from a text, and what the function Text does.
func (l *Lines) Text(s string) string { return Text(l.known.Replace(s)) }

// Text removes from a text what has the form of a secret. The forms are those of CSI requests, Kubernetes' components,
// HTTP headers, URLs, S3, mount options and private keys; a secret in another form stays.
func Text(s string) string { return hideForms(new(Source).hideKeys(s)) }

// hideKeys removes private keys.
func (k *Source) hideKeys(s string) string {
	if k.lines++; k.inside && k.lines <= longestKey {
		end := keyEnds.FindStringIndex(s)
		if end == nil {
			return Hidden
		}
		s = Hidden + s[end[1]:]
	}
	k.inside = false
	for strings.Contains(s, "PRIVATE KEY") {
		begin := keyBegins.FindStringIndex(s)
		if begin == nil {
			break
		}
		end := keyEnds.FindStringIndex(s[begin[1]:])
		if end == nil {
			k.inside, k.lines, s = true, 0, s[:begin[0]]+Hidden
			break
		}
		s = s[:begin[0]] + Hidden + s[begin[1]+end[1]:]
	}
	return s
}

func hideForms(s string) string {
	lower := strings.ToLower(s)
	for _, f := range forms {
		if slices.ContainsFunc(f.signs, func(sign string) bool { return strings.Contains(lower, sign) }) {
			s = f.found.ReplaceAllString(s, f.by)
		}
	}
	return s
}
