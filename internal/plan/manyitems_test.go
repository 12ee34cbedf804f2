package plan

import (
	"fmt"
	"strings"
	"testing"
)

// TestManyItems: a list that is far too long is refused by its length, before its items are checked.
func TestManyItems(t *testing.T) {
	var text strings.Builder
	text.WriteString("apiVersion: cnsbench.dev/v1alpha1\nkind: Benchmark\nmetadata: {name: many}\nspec:\n  actions:\n")
	for i := range 5000 {
		fmt.Fprintf(&text, "    - {name: v%d, createObjSpec: {volume: {storageClass: \"null\", size: 1Gi}}}\n", i)
	}
	_, problems := load(t, Input{Files: []File{{Name: "many.yaml", Data: []byte(text.String())}}})
	if len(problems) != 1 || !strings.Contains(problems[0].Message, "5000 items: at most 64 are allowed") ||
		problems[0].Line != 5 && problems[0].Line != 6 {
		t.Errorf("%v", problems)
	}
}

// TestAmbiguousNames: names that are another action's and a number are found, those that only look so are not.
func TestAmbiguousNames(t *testing.T) {
	for _, tt := range []struct {
		names []string
		want  int
	}{
		{[]string{"a", "a-1"}, 1},
		{[]string{"a", "a-1-b"}, 1},
		{[]string{"a", "a-b"}, 0},
		{[]string{"a", "a-1b"}, 0},
		{[]string{"a", "b-1"}, 0},
		{[]string{"a-b", "a-b-2", "a"}, 1},
		{[]string{"a", "a-1", "a-1-2"}, 3},
	} {
		text := "apiVersion: cnsbench.dev/v1alpha1\nkind: Benchmark\nmetadata: {name: many}\nspec:\n  actions:\n"
		for _, n := range tt.names {
			text += fmt.Sprintf("    - {name: %s, createObjSpec: {volume: {storageClass: \"null\", size: 1Gi}}}\n", n)
		}
		_, problems := load(t, Input{Files: []File{{Name: "names.yaml", Data: []byte(text)}}})
		found := 0
		for _, p := range problems {
			if strings.Contains(p.Message, "could not be told from those of") {
				found++
			}
		}
		if found != tt.want || len(problems) != found {
			t.Errorf("%v: %v, want %d", tt.names, problems, tt.want)
		}
	}
}
