package imported

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// errNoNumber says that a cell has no value: it is empty, NaN or NA.
var errNoNumber = errors.New("no number")

// decimalComma matches a number with a comma: "166,0", "1.234,5", "35,745".
var decimalComma = regexp.MustCompile(`^[+-]?[0-9][0-9.]*(,[0-9]+)+(\.[0-9]+)?$`)

// withUnit matches a number followed by a word: "12 ms", "5%".
var withUnit = regexp.MustCompile(`^[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?\s*([a-zA-Zµμ%][^0-9]*)$`)

// number parses a decimal number. Words for "no value" give errNoNumber.
func number(text string) (float64, error) {
	switch strings.ToLower(text) {
	case "", "nan", "na", "n/a", "null", "none", "-", "–":
		return 0, errNoNumber
	case "inf", "+inf", "-inf", "infinity", "+infinity", "-infinity", "∞":
		return 0, fmt.Errorf("infinite value %q: want a finite number, or NaN with --missing for a trial without a value",
			text)
	}
	if !strings.ContainsAny(text, "xX_pP") { // what ParseFloat takes beyond decimal numbers
		x, err := strconv.ParseFloat(text, 64)
		if err == nil && !math.IsInf(x, 0) && !math.IsNaN(x) {
			return x, nil
		}
	}
	if decimalComma.MatchString(text) {
		return 0, fmt.Errorf("invalid number %q: want a decimal point and no other separator, such as %s", text,
			withPoint(text))
	}
	if m := withUnit.FindStringSubmatch(text); m != nil {
		return 0, fmt.Errorf("invalid number %q: want the number alone; the unit %q belongs in a column of its own (--unit) "+
			"or in the name of the column, as in \"latency (ms)\"", text, strings.TrimSpace(m[1]))
	}
	return 0, fmt.Errorf("invalid number %q: want a decimal number such as 1234.5", text)
}

// withPoint suggests how to write a number that has commas: the last separator is taken as the decimal one, unless it
// is a comma that occurs several times. One comma before three digits can be either.
func withPoint(text string) string {
	last := strings.LastIndexAny(text, ".,")
	whole, rest := strings.NewReplacer(".", "", ",", "").Replace(text[:last]), text[last+1:]
	switch commas := strings.Count(text, ","); {
	case text[last] == ',' && commas > 1:
		return whole + rest
	case commas == 1 && len(rest) == 3 && !strings.Contains(text, "."):
		return whole + "." + rest + " or " + whole + rest
	}
	return whole + "." + rest
}
