// Package docs has the pages of the documentation that the program shows too.
package docs

import _ "embed"

// Glossary is the text of glossary.md.
//
//go:embed glossary.md
var Glossary string
