package cosbench

import (
	"bytes"
	"cmp"
	"html"
	"regexp"
	"slices"
	"strings"
)

// secretKey matches the keys of credentials, as they stand in config strings.
var secretKey = regexp.MustCompile(`(?i)(?:access_?key|secret_?key|session_?token|password|passwd|token|api_?key)[\s\p{Z}]*=\s*`)

// tellingSecret is the least length of a secret that is looked for outside of
// its key too: shorter ones would be found in half of all words.
const tellingSecret = 4

// Redact removes credentials from the text of a workload, so that it can be
// kept: the whole value of each key of a secret, in comments too, and what was
// found so (of 4 bytes or more) wherever else it stands.
func Redact(text []byte) []byte {
	b := &blotter{}
	for len(text) > 0 {
		n := bytes.IndexByte(text, '<')
		switch {
		case n < 0:
			n = len(text)
		case n == 0:
			if n = skipped(text); n == 0 {
				n = tag(text)
			}
		}
		b.section(text[:n])
		text = text[n:]
	}
	return b.elsewhere()
}

// tag is the length of the tag that b begins with.
func tag(b []byte) int {
	quote := byte(0)
	for i, c := range b {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
		case c == '"' || c == '\'':
			quote = c
		case c == '>':
			return i + 1
		}
	}
	return len(b)
}

// blotter gathers a text without its secrets, and those.
type blotter struct {
	out     []byte
	secrets []string // as they stood
}

// section takes a tag, a comment, or the text between.
func (b *blotter) section(text []byte) {
	quote := byte(0)
	for {
		at := secretKey.FindIndex(text)
		if at == nil {
			b.out = append(b.out, text...)
			return
		}
		quote = within(quote, text[:at[1]])
		end := at[1] + valueEnd(text[at[1]:], quote)
		b.out = append(b.out, text[:at[1]]...)
		if value := text[at[1]:end]; len(value) > 0 {
			b.out = append(b.out, "***"...)
			b.secrets = append(b.secrets, string(value))
		}
		text = text[end:]
	}
}

// within is the quote of the attribute's value that a text ends in, 0 if in
// none; it begins in one of quote. Only after "=" a quote opens anything, for
// comments have apostrophes.
func within(quote byte, text []byte) byte {
	equals := false
	for _, c := range text {
		switch {
		case quote != 0 && c == quote:
			quote, equals = 0, false
		case quote == 0 && equals && (c == '"' || c == '\''):
			quote, equals = c, false
		case c != ' ' && c != '\t' && c != '\n' && c != '\r':
			equals = c == '='
		}
	}
	return quote
}

// valueEnd is the length of the value that text begins with: up to a ";" that
// is no entity's, or to the quote; else to the end of what may be a comment.
func valueEnd(text []byte, quote byte) int {
	end, entity := 0, false // entity: such as &amp
	for ; end < len(text); end++ {
		c := text[end]
		if quote != 0 && c == quote || c == ';' && !entity {
			break
		}
		entity = c == '&' || entity && (c == '#' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z')
	}
	value := text[:end]
	for _, closing := range []string{"-->", "]]>", "?>"} {
		if rest, ok := bytes.CutSuffix(value, []byte(closing)); ok && end == len(text) {
			value = rest
			break
		}
	}
	return len(bytes.TrimRight(value, " \t\r\n"))
}

// elsewhere removes the secrets that were found from the rest of the text, as
// they stood, as they are, and as XML may write them; the longest first.
func (b *blotter) elsewhere() []byte {
	var forms []string
	for _, raw := range b.secrets {
		plain := html.UnescapeString(raw)
		if len(plain) < tellingSecret {
			continue
		}
		escaped := html.EscapeString(plain)
		forms = append(forms, raw, plain, escaped, strings.NewReplacer("&#34;", "&quot;", "&#39;", "&apos;").Replace(escaped))
	}
	slices.SortFunc(forms, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var pairs []string
	for _, f := range slices.Compact(forms) {
		pairs = append(pairs, f, "***")
	}
	return []byte(strings.NewReplacer(pairs...).Replace(string(b.out)))
}
