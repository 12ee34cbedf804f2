package terminal

import (
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/reproduction"
)

// TestWriteReproduction checks that names and values are shortened where they are equal, and that bundles cannot
// control the terminal.
func TestWriteReproduction(t *testing.T) {
	s := func(text string) *string { return &text }
	long := strings.Repeat("a", 40)
	r := &reproduction.Result{Sentences: []string{"2 of 9 compared facts differ."}, Facts: reproduction.Comparison{Compared: 7,
		Volatile: 3, OneSided: []string{"x"}, Differences: []reproduction.Difference{
			{Fact: "engine.storageClasses." + strings.Repeat("verylongname", 6) + ".parameters.fstype", Group: reproduction.Storage,
				Then: s("xfs"), Now: s("ext4")},
			{Fact: "inject", Group: reproduction.Request, Then: s(long + "1"), Now: s(long + "2")},
			{Fact: "new\x1b[2J", Group: reproduction.Place, Now: s("v\x1b[0m")}}}}
	var out strings.Builder
	if err := WriteReproduction(&out, r, Options{Width: 80}); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, want := range []string{".parameters.fstype", "…aaaaaaaa1", "…aaaaaaaa2", "–", "7 facts are on both sides",
		"1 that are known on one side only"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for line := range strings.Lines(text) {
		if length(strings.TrimRight(line, "\n")) > 80 {
			t.Errorf("too long: %q", line)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Errorf("control characters in %q", text)
	}
}
