package html

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/html"
)

// svg writes a figure. Colours and fonts come from the page's style by class. All text is
// escaped.
type svg struct{ strings.Builder }

// open begins a figure; attrs are pairs of names and values. Its role is img if they have none: a figure with links in
// it has to be a group.
func (s *svg) open(width, height float64, label string, attrs ...string) {
	if !slices.Contains(attrs, "role") {
		attrs = append(attrs, "role", "img")
	}
	fmt.Fprintf(s, `<svg viewBox="0 0 %s %s" aria-label="%s" preserveAspectRatio="xMidYMid meet"`,
		num(width), num(height), html.EscapeString(label))
	s.attributes(attrs)
	s.WriteString(">")
}

func (s *svg) attributes(pairs []string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		fmt.Fprintf(s, ` %s="%s"`, pairs[i], html.EscapeString(pairs[i+1]))
	}
}

// element opens an element, which the caller closes; attrs are pairs of names and values.
func (s *svg) element(name string, attrs ...string) {
	s.WriteString("<" + name)
	s.attributes(attrs)
	s.WriteString(">")
}

func (s *svg) close() template.HTML {
	s.WriteString("</svg>")
	return template.HTML(s.String()) //nolint:gosec // every text in it went through EscapeString
}

func (s *svg) line(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(s, `<line x1="%s" y1="%s" x2="%s" y2="%s" class="%s"/>`, num(x1), num(y1), num(x2), num(y2), class)
}

// rect draws a rectangle; the title is its tooltip, attrs are pairs of names and values.
func (s *svg) rect(x, y, w, h float64, class, title string, attrs ...string) {
	fmt.Fprintf(s, `<rect x="%s" y="%s" width="%s" height="%s" class="%s"`, num(x), num(y), num(w), num(h), class)
	s.attributes(attrs)
	if title == "" {
		s.WriteString("/>")
		return
	}
	fmt.Fprintf(s, `><title>%s</title></rect>`, html.EscapeString(title))
}

func (s *svg) text(x, y float64, class, text string) {
	fmt.Fprintf(s, `<text x="%s" y="%s" class="%s">%s</text>`, num(x), num(y), class, html.EscapeString(text))
}

// path is a polyline; a NaN point breaks it.
func (s *svg) path(points [][2]float64, class, title string) {
	if len(points) == 0 {
		return
	}
	s.WriteString(`<path d="`)
	pen := "M"
	for _, p := range points {
		if math.IsNaN(p[1]) {
			pen = "M"
			continue
		}
		fmt.Fprintf(s, "%s%s %s", pen, num(p[0]), num(p[1]))
		pen = "L"
	}
	fmt.Fprintf(s, `" class="line %s"><title>%s</title></path>`, class, html.EscapeString(title))
}

// num writes a coordinate to a tenth of a pixel.
func num(v float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0")
}

// scale maps values to pixels, linearly or by a logarithm.
type scale struct {
	min, max float64 // values
	lo, hi   float64 // pixels
	log      bool
	// tail: the values are shares, and drawn by the logarithm of what is left, −log10(1−v); max is in its units.
	tail   bool
	binary bool // ticks are round in powers of 1024
}

func (s scale) at(v float64) float64 {
	lo, hi := s.min, s.max
	if s.tail {
		v = math.Min(hi, -math.Log10(math.Max(1-v, 1e-15)))
	}
	if s.log {
		lo, hi, v = math.Log(lo), math.Log(hi), math.Log(math.Max(v, s.min))
	}
	if hi == lo {
		return s.lo
	}
	return s.lo + (v-lo)/(hi-lo)*(s.hi-s.lo)
}

// ticks returns about n round values within the scale.
func (s scale) ticks(n int) []float64 {
	if s.log {
		return s.logTicks(n)
	}
	var ts []float64
	unit := 1.0
	for s.binary && s.max >= unit*1024*2 {
		unit *= 1024
	}
	step := roundUp((s.max-s.min)/float64(n)/unit) * unit
	if step <= 0 {
		return []float64{s.min}
	}
	for v := math.Ceil(s.min/step) * step; v <= s.max*(1+1e-9); v += step {
		ts = append(ts, v)
	}
	return ts
}

// logTicks returns powers of ten, with 2 and 5 where there is room.
func (s scale) logTicks(n int) []float64 {
	decades := math.Log10(s.max / s.min)
	mantissas := []float64{1}
	switch {
	case decades*3 <= float64(n):
		mantissas = []float64{1, 2, 5}
	case decades*2 <= float64(n):
		mantissas = []float64{1, 3}
	}
	var ts []float64
	for e := math.Floor(math.Log10(s.min)); e <= math.Ceil(math.Log10(s.max)); e++ {
		for _, m := range mantissas {
			if v := m * math.Pow(10, e); v >= s.min*(1-1e-9) && v <= s.max*(1+1e-9) {
				ts = append(ts, v)
			}
		}
	}
	return ts
}

// roundUp returns the next 1, 2 or 5 times a power of ten.
func roundUp(v float64) float64 {
	if v <= 0 {
		return 0
	}
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*p >= v*(1-1e-9) {
			return m * p
		}
	}
	return 10 * p
}
