package cosbench

import (
	"bytes"
	"cmp"
	"html"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/cnsbench/cnsbench/internal/object/backend"
)

// secretKey matches the keys of credentials in config strings.
var secretKey = regexp.MustCompile(`(?i)(?:access_?key|secret_?key|session_?token|password|passwd|token|api_?key)[\s\p{Z}]*=`)

// attributes are the names in a file other than the keys of its configs.
var attributes = strings.Fields("name description config type workers interval division runtime rampup rampdown " +
	"totalOps totalBytes afr driver rate ratio scale repetitions closuredelay id")

// keyName matches a known key name or the key name of a secret.
var keyName = sync.OnceValue(func() *regexp.Regexp {
	names := slices.Concat(authKeys, operationKeys, attributes)
	for _, d := range backend.All() {
		names = append(names, d.Keys...)
	}
	for _, of := range aliases {
		names = slices.AppendSeq(names, maps.Keys(of))
	}
	for i, n := range names {
		names[i] = regexp.QuoteMeta(n)
	}
	slices.Sort(names)
	return regexp.MustCompile(`(?i)^(?:(?:aws_|os_|auth_)?(?:secret_)?(?:access_?key|secret_?key|session_?token|password|passwd|token|api_?key)|` + strings.Join(slices.Compact(names), "|") + `)$`)
})

// hidden replaces a secret.
const hidden = "***"

// tellingSecret is the minimum length of a secret that is also searched for elsewhere than after its key:
// shorter ones occur in many words.
const tellingSecret = 4

// Redact removes credentials from the text of a workload, so that it can be stored. It removes the values of
// secret keys, also in comments, and all other occurrences of these and of the given secrets (of 4 bytes or
// more), except in names of keys. It handles the decoded text of the XML and its encoding.
func Redact(text []byte, secrets ...string) []byte {
	secrets = slices.Clone(secrets)
	for part := range sections(text) {
		p := meaning(part)
		for _, v := range p.values() {
			secrets = append(secrets, strings.TrimSpace(string(p.text[v[0]:v[1]])))
		}
	}
	elsewhere, out := eraser(secrets), []byte(nil)
	for part := range sections(text) {
		out = append(out, meaning(part).without(elsewhere)...)
	}
	return out
}

// sections yields the tags, the comments and the text between them.
func sections(text []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for rest := text; len(rest) > 0; {
			n := bytes.IndexByte(rest, '<')
			switch {
			case n < 0:
				n = len(rest)
			case n == 0:
				if n = skipped(rest); n == 0 {
					n = tag(rest)
				}
			}
			if !yield(rest[:n]) {
				return
			}
			rest = rest[n:]
		}
	}
}

// tag returns the length of the tag at the start of b.
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

// eraser replaces each byte of the secrets with NUL, which XML does not contain, so that offsets stay the
// same. The longest secret is replaced first.
func eraser(secrets []string) *strings.Replacer {
	secrets = slices.DeleteFunc(secrets, func(s string) bool { return len(s) < tellingSecret })
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var pairs []string
	for _, s := range slices.Compact(secrets) {
		pairs = append(pairs, s, strings.Repeat("\x00", len(s)))
	}
	return strings.NewReplacer(pairs...)
}

// erase replaces secrets in a text with NUL, except where they are part of a key's name.
func erase(text string, secrets *strings.Replacer) []byte {
	out := []byte(secrets.Replace(text))
	for to := 0; ; {
		n := bytes.IndexByte(out[to:], 0)
		if n < 0 {
			return out
		}
		from := to + n
		for to = from; to < len(out) && out[to] == 0; {
			to++
		}
		if inKey(text, from, to) {
			copy(out[from:to], text[from:to])
		}
	}
}

// inKey reports whether text[from:to] is only part of a key's name, before its "=".
func inKey(text string, from, to int) bool {
	inName := func(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
	for i := from; i < to; i++ {
		if !inName(text[i]) {
			return false
		}
	}
	const longest = 64 // longer than any name
	for least := from - longest; from > max(0, least) && inName(text[from-1]); {
		from--
	}
	for most := to + longest; to < min(len(text), most) && inName(text[to]); {
		to++
	}
	after := strings.TrimLeftFunc(text[to:], func(r rune) bool {
		return unicode.IsSpace(r) ||
			unicode.Is(unicode.Z, r)
	})
	return strings.HasPrefix(after, "=") && keyName().MatchString(text[from:to])
}

// meant is the decoded text of a section: byte i is encoded at raw[at[i]]. All bytes of an entity have the
// same offset.
type meant struct {
	raw, text []byte
	at        []int
}

// entity matches an entity such as &amp; or &#x26; at the beginning.
var entity = regexp.MustCompile(`^&(?:[a-z]{2,6}|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});`)

func meaning(raw []byte) *meant {
	m := &meant{raw: raw, text: make([]byte, 0, len(raw)), at: make([]int, 0, len(raw)+1)}
	for i := 0; i < len(raw); {
		one, n := raw[i:i+1], 1
		if raw[i] == '&' {
			if e := entity.Find(raw[i:]); e != nil {
				one, n = []byte(html.UnescapeString(string(e))), len(e)
			}
		}
		for _, c := range one {
			m.text, m.at = append(m.text, c), append(m.at, i)
		}
		i += n
	}
	m.at = append(m.at, len(raw))
	return m
}

// literal reports whether byte i is not encoded as an entity, so that it can be a delimiter.
func (m *meant) literal(i int) bool { return m.at[i+1]-m.at[i] == 1 }

// blank reports whether byte i is white space that is not encoded as an entity.
func (m *meant) blank(i int) bool {
	return m.literal(i) && strings.IndexByte(" \t\r\n", m.text[i]) >= 0
}

// values returns the positions of the values of secret keys in the text.
func (m *meant) values() (spans [][2]int) {
	quote := byte(0)
	for from := 0; ; {
		key := secretKey.FindIndex(m.text[from:])
		if key == nil {
			return spans
		}
		begin := from + key[1]
		quote = m.within(quote, from, begin)
		for begin < len(m.text) && m.blank(begin) {
			begin++
		}
		end := m.valueEnd(begin, quote)
		if end > begin {
			spans = append(spans, [2]int{begin, end})
		}
		from = end
	}
}

// within returns the quote character of the attribute value that contains position to, or 0 if there is none.
// quote is that at position from. A quote character opens a value only after "=", since comments contain
// apostrophes.
func (m *meant) within(quote byte, from, to int) byte {
	equals := false
	for i := from; i < to; i++ {
		switch c := m.text[i]; {
		case !m.literal(i):
			equals = false
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

// valueEnd returns the end of the value that begins at from: a literal ";" or quote, or else the end of the
// section.
func (m *meant) valueEnd(from int, quote byte) int {
	end := from
	for end < len(m.text) && !(m.literal(end) && (m.text[end] == ';' || quote != 0 && m.text[end] == quote)) {
		end++
	}
	for _, closing := range []string{"-->", "]]>", "?>"} {
		if end == len(m.text) && bytes.HasSuffix(m.text[from:end], []byte(closing)) {
			end -= len(closing)
			break
		}
	}
	for end > from && m.blank(end-1) {
		end--
	}
	return end
}

// without returns the encoded section with *** instead of the values of secrets and of the text that
// elsewhere erases.
func (m *meant) without(elsewhere *strings.Replacer) []byte {
	gone := make([]bool, len(m.raw)+1)
	hide := func(i int) {
		next := i + 1
		for m.at[next] == m.at[i] {
			next++
		}
		for k := m.at[i]; k < m.at[next]; k++ {
			gone[k] = true
		}
	}
	for _, v := range m.values() {
		for i := v[0]; i < v[1]; i++ {
			hide(i)
		}
	}
	for i, c := range erase(string(m.text), elsewhere) {
		if c == 0 {
			hide(i)
		}
	}
	for k, c := range erase(string(m.raw), elsewhere) {
		gone[k] = gone[k] || c == 0
	}
	var out []byte
	for k, c := range m.raw {
		if !gone[k] {
			out = append(out, c)
		} else if !gone[k+1] {
			out = append(out, hidden...)
		}
	}
	return out
}
