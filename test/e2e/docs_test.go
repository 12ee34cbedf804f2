package e2e

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/test/rotation"
)

// runnable matches the code blocks of a document that are marked with a test comment, which may say what they need.
var runnable = regexp.MustCompile("(?s)<!-- test(?:: ([a-z-]+))? -->\\s*```sh\n(.*?)```")

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

// block is a code block of a document that a test runs.
type block struct{ file, needs, text string }

func blocks(t *testing.T) (found []block) {
	t.Helper()
	for _, file := range documents(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range runnable.FindAllStringSubmatch(string(text), -1) {
			found = append(found, block{file, m[1], m[2]})
		}
	}
	return found
}

// run runs the block in a copy of the repository's folders examples and ci with the programs in bin/. A line that
// starts with "$ " is a command and the other lines are its output. In a block without such lines each line is a
// command.
func (k block) run(t *testing.T) {
	t.Helper()
	b := newBox(t)
	b.checkout()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r := b.finish(ctx, b.command(ctx, "/bin/sh", "-e", "-u", "-c", commands(k.text)))
	if r.code != 0 {
		t.Errorf("%s: exit %d\n%s\n%s%s", k.file, r.code, k.text, r.stdout, r.stderr)
	}
	b.clean()
}

// TestDocumentedCommands runs the blocks of the documents, apart from those that need what not every machine has.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	all := blocks(t)
	for _, k := range all {
		t.Run(filepath.Base(k.file), func(t *testing.T) {
			t.Parallel()
			switch {
			case k.needs == "":
			case k.needs == "root":
				needRoot(t)
			case k.needs == "long":
				t.Skip("takes long: TestLongDocuments runs it (make test-long)")
			case k.needs == "notebook":
				t.Skip("needs packages of PyPI: make notebook-test runs it")
			case slices.Contains(rotation.Applications, k.needs):
				t.Skipf("needs %s: TestEntryDocuments runs it (make test-entries)", k.needs)
			default:
				t.Fatalf("%s: a block needs %q: want root, long, notebook or one of %v", k.file, k.needs, rotation.Applications)
			}
			k.run(t)
		})
	}
	if len(all) == 0 {
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
