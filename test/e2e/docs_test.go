package e2e

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// runnable matches the code blocks of a document that are marked with a test comment.
var runnable = regexp.MustCompile("(?s)<!-- test -->\\s*```sh\n(.*?)```")

// documents lists README.md and the documents below docs/.
func documents(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "examples/*/*.md"} {
		files, err := filepath.Glob(filepath.Join(module, pattern))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, files...)
	}
	return found
}

// TestDocumentedCommands checks that the commands of the documents print what the documents show.
// Each block runs in a copy of the repository's folders examples and ci with the programs in bin/. A line that
// starts with "$ " is a command and the other lines are its output. In a block without such lines
// each line is a command.
func TestDocumentedCommands(t *testing.T) {
	blocks := 0
	for _, file := range documents(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range runnable.FindAllStringSubmatch(string(text), -1) {
			blocks++
			t.Run(filepath.Base(file), func(t *testing.T) {
				t.Parallel()
				b := newBox(t)
				b.checkout()
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				r := b.finish(ctx, b.command(ctx, "/bin/sh", "-e", "-u", "-c", commands(m[1])))
				if r.code != 0 {
					t.Errorf("%s: exit %d\n%s\n%s%s", file, r.code, m[1], r.stdout, r.stderr)
				}
				b.clean()
			})
		}
	}
	if blocks == 0 {
		t.Error("no document has a block that is marked with <!-- test -->")
	}
}

func commands(block string) string {
	if !strings.HasPrefix(block, "$ ") && !strings.Contains(block, "\n$ ") {
		return block
	}
	var kept []string
	for line := range strings.Lines(block) {
		if c, ok := strings.CutPrefix(line, "$ "); ok {
			kept = append(kept, c)
		}
	}
	return strings.Join(kept, "")
}

// checkout makes the box look like the repository after make build.
func (b *box) checkout() {
	b.Helper()
	for _, dir := range []string{"examples", "ci"} {
		if err := os.CopyFS(b.in(dir), os.DirFS(filepath.Join(module, dir))); err != nil {
			b.Fatal(err)
		}
	}
}
