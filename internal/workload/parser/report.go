package parser

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/imported"
	"github.com/cnsbench/cnsbench/internal/observation"
)

// report collects what one file of a tool says.
type report struct{ imported.Report }

// figure adds a figure with the options that the tool ran with.
func (r *report) figure(name, unit string, v float64, options map[string]string) {
	r.Figures = append(r.Figures, imported.Figure{Metric: observation.Metric{Name: name, Unit: unit}, Value: v,
		Options: options})
}

// flag adds a flag; each once.
func (r *report) flag(severity, name, format string, args ...any) {
	f := imported.Flag{Name: name, Severity: severity, Evidence: fmt.Sprintf(format, args...)}
	for _, before := range r.Flags {
		if before == f {
			return
		}
	}
	r.Flags = append(r.Flags, f)
}

// linePattern is a kind of line of a tool's text. Lines without read are known and left out.
type linePattern struct {
	of   *regexp.Regexp
	read func(m []string) error
}

// maxUnread is how many lines that no pattern matches are quoted.
const maxUnread = 3

// lines reads text by a table: each line by the first pattern that matches it. Lines that none matches are a flag with
// their number and text. A text that ends within a line is one too: its last line may be cut off.
func (r *report) lines(text string, from int, patterns []linePattern) error {
	var unread []string
	n, i := 0, -1
	for line := range strings.SplitSeq(text, "\n") {
		i++
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		known := false
		for _, p := range patterns {
			m := p.of.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			known = true
			if p.read != nil {
				if err := p.read(m); err != nil {
					return fmt.Errorf("line %d: %w", from+i, err)
				}
			}
			break
		}
		if !known {
			if n++; n <= maxUnread {
				unread = append(unread, fmt.Sprintf("line %d: %s", from+i, bounded.Text(line, 100)))
			}
		}
	}
	if n > maxUnread {
		unread = append(unread, fmt.Sprintf("and %d more", n-maxUnread))
	}
	if n > 0 {
		r.flag(imported.Warning, "linesUnread", "not understood and left out: %s", strings.Join(unread, "; "))
	}
	r.endOfText(text)
	return nil
}

// endOfText flags a text whose last line has no end.
func (r *report) endOfText(text string) {
	if text != "" && !strings.HasSuffix(text, "\n") {
		last := text[strings.LastIndexByte(text, '\n')+1:]
		if strings.TrimSpace(last) != "" {
			r.flag(imported.Info, "lastLineOpen", "the text ends without a line break: its last line may be cut off: %s",
				bounded.Text(strings.TrimSpace(last), 100))
		}
	}
}
