package decode

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// WithoutPrefixes removes what log collectors put before every line of a program's output: the time (kubectl logs
// --timestamps), the time, stream and tag of a container runtime's file (CRI), the pod and container (kubectl logs
// --prefix), and the JSON of Docker's file. note says what was removed; "" if nothing. A text of which some lines have
// no prefix is left as it is. Lines of several pods are an error: their order means nothing.
func WithoutPrefixes(text string) (plain, note string, err error) {
	for range 3 { // a prefix of a pod may precede a time
		what := ""
		for _, k := range prefixes {
			rest, ok, err := k.cut(text)
			if err != nil {
				return "", "", err
			}
			if ok {
				what, text = k.what, rest
				break
			}
		}
		if what == "" {
			break
		}
		if note != "" {
			note += ", "
		}
		note += what
	}
	return text, note, nil
}

// prefix is what one kind of collector writes.
type prefix struct {
	what string
	// of splits one line; ok is false if it has no such prefix. same must be equal in all lines.
	of func(line string) (rest, same string, ok bool)
}

var prefixes = []prefix{
	{"the time, stream and tag of the container runtime", cutCRI},
	{"the time of each line", cutTime},
	{"the pod and container of each line", cutPod},
	{"the JSON of each line of Docker's log", cutDocker},
}

// cut returns the text without the prefixes; false if one of its lines has none, or there is no line.
func (k prefix) cut(text string) (rest string, ok bool, err error) {
	if _, _, begins := k.of(firstLine(text)); !begins {
		return "", false, nil // before anything is copied
	}
	var b strings.Builder
	first, n := "", 0
	for line := range strings.Lines(text) {
		n++
		bare := strings.TrimRight(line, "\r\n")
		if bare == "" {
			b.WriteString(line)
			continue
		}
		after, same, has := k.of(bare)
		if !has {
			return "", false, nil
		}
		if ok && same != first {
			return "", false, fmt.Errorf("line %d is of %s, lines before it of %s: want the log of one container", n, same,
				first)
		}
		first, ok = same, true
		b.WriteString(after)
		if len(bare) < len(line) {
			b.WriteByte('\n')
		}
	}
	return b.String(), ok, nil
}

// firstLine is the first line that is not empty, without its end.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimLeft(text, "\r\n"), "\n")
	return strings.TrimRight(line, "\r")
}

func cutTime(line string) (rest, same string, ok bool) {
	word, rest, _ := strings.Cut(line, " ")
	if len(word) < len("2006-01-02T15:04:05Z") || word[4] != '-' {
		return "", "", false
	}
	_, err := time.Parse(time.RFC3339Nano, word)
	return rest, "", err == nil
}

func cutCRI(line string) (rest, same string, ok bool) {
	rest, _, ok = cutTime(line)
	if !ok {
		return "", "", false
	}
	for _, tag := range []string{"stdout F ", "stderr F ", "stdout P ", "stderr P "} {
		if text, found := strings.CutPrefix(rest, tag); found {
			return text, "", true
		}
		if rest == strings.TrimSuffix(tag, " ") {
			return "", "", true
		}
	}
	return "", "", false
}

func cutPod(line string) (rest, same string, ok bool) {
	if !strings.HasPrefix(line, "[pod/") {
		return "", "", false
	}
	same, rest, ok = strings.Cut(line[1:], "]")
	return strings.TrimPrefix(rest, " "), same, ok
}

func cutDocker(line string) (rest, same string, ok bool) {
	if !strings.HasPrefix(line, `{"log":`) {
		return "", "", false
	}
	var entry struct {
		Log    *string `json:"log"`
		Stream string  `json:"stream"`
		Time   string  `json:"time"`
	}
	if json.Unmarshal([]byte(line), &entry) != nil || entry.Log == nil || entry.Time == "" {
		return "", "", false
	}
	return strings.TrimRight(*entry.Log, "\r\n"), "", true
}
