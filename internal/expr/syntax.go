package expr

import (
	"fmt"
	"regexp"
	"strings"
)

// syntaxMessage says what CEL's parser could not read, at a place of the source,
// and what may have been meant. Its own words are used only where they say
// more than where it stopped.
func syntaxMessage(src string, line, column int, message string) string {
	before, after := around(src, line, column)
	where := fmt.Sprintf("column %d", column)
	if line > 1 {
		where = fmt.Sprintf("line %d, %s", line, where)
	}
	says := func(format string, args ...any) string {
		return fmt.Sprintf("cannot be read at "+where+": "+format, args...)
	}
	if m := units.FindStringSubmatch(after); m != nil {
		if n := endNumber.FindString(before); n != "" {
			return says(`a duration is written duration("%s%s")`, strings.TrimSpace(n), m[0])
		}
	}
	for _, w := range otherLanguages {
		if strings.HasPrefix(after, w.written) {
			return says("write %s", w.meant)
		}
	}
	switch {
	case after == "" && strings.Contains(message, "missing ')'"):
		return says("a ) is missing")
	case after == "":
		return says("it ends where a value is wanted")
	case after[0] == '"' || after[0] == '\'':
		return says("a text ends without its quote, or stands where an operator is wanted")
	case strings.HasPrefix(message, "token recognition error"):
		return says("%q is no part of the language", string([]rune(after)[:1]))
	case strings.Contains(message, "expecting <EOF>"):
		return says("%q is not expected: the expression could end here", word.FindString(after))
	}
	if found, _, ok := strings.Cut(message, " expecting {"); ok { // a list of all tokens
		message = strings.TrimPrefix(strings.TrimPrefix(found, "mismatched input "), "extraneous input ") + " is not expected"
	}
	return says("%s", strings.ReplaceAll(message, "'<EOF>'", "the end"))
}

var (
	units     = regexp.MustCompile(`^(ns|us|µs|ms|s|m|h)\b`)
	endNumber = regexp.MustCompile(`[0-9]+(\.[0-9]+)?\s*$`)
	word      = regexp.MustCompile(`^(\w+|.)`)
)

// otherLanguages are operators of other languages; the longer ones go first.
var otherLanguages = []struct{ written, meant string }{
	{"=<", "<="}, {"=>", ">="}, {"===", "=="}, {"<>", "!="}, {"= ", "=="}, {"and ", "&&"}, {"or ", "||"}, {"not ", "!"},
}

// around cuts the source at a place, as far as the line goes.
func around(src string, line, column int) (before, after string) {
	lines := strings.Split(src, "\n")
	if line > len(lines) {
		return src, ""
	}
	text := []rune(lines[line-1])
	at := min(max(column-1, 0), len(text))
	return string(text[:at]), string(text[at:])
}
