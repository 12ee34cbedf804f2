package html

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"

	template "github.com/DataDog/datadog-agent/pkg/template/html"
)

// script is the only script of a page, built from web/src/report. The page has all figures and tables without it.
//
//go:embed report.js
var script string

// ScriptHash is the source expression of a Content-Security-Policy that allows the script of a report, and no other.
func ScriptHash() string {
	sum := sha256.Sum256([]byte(script))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// scriptElement is the last element of a page. The hash covers every byte between its tags.
func scriptElement() template.HTML {
	return template.HTML("<script>" + script + "</script>") //nolint:gosec // our own file
}

// policy is the Content-Security-Policy of a page: nothing from elsewhere, and only our own script.
func policy() string {
	return "default-src 'none'; style-src 'unsafe-inline'; script-src " + ScriptHash()
}
