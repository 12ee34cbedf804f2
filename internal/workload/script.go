package workload

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// isParser reports whether a ConfigMap of an entry is a parser in the prototype's form.
func isParser(cm *corev1.ConfigMap) bool {
	return cm.Annotations["container"] != "" || cm.Labels["type"] == "parser"
}

// scriptOf returns the script in the only key of a ConfigMap, or in the first that begins
// with "parse"; the annotation container names the image.
func scriptOf(cm *corev1.ConfigMap) script {
	s := script{image: cm.Annotations["container"]}
	keys := sortedKeys(cm.Data)
	for _, k := range keys {
		if len(keys) == 1 || strings.HasPrefix(k, "parse") {
			s.text = cm.Data[k]
			break
		}
	}
	return s
}

// parser resolves a pod's annotation parser: a script of the entry, else a name that the
// caller checks.
func (r *renderer) parser(t *template, c *corev1.Container) (Output, error) {
	out := Output{Container: c.Name, Parser: annotation(t.annotations, "parser")}
	if out.Parser == "null-parser" {
		out.Parser = "" // the prototype's name for raw output
	}
	s, own := r.scripts[out.Parser]
	if !own {
		return out, nil
	}
	out.Script, out.Image = s.text, cmp.Or(s.image, annotation(t.annotations, "parserImage"), c.Image)
	if strings.TrimSpace(s.text) == "" {
		return out, &Error{Part: t.part, Message: fmt.Sprintf("parser %q has no script", out.Parser),
			Hint: "it is the only key of its ConfigMap, or one that begins with parse"}
	}
	if !strings.HasPrefix(s.text, "#!") {
		return out, &Error{Part: t.part, Message: fmt.Sprintf("parser %q has no interpreter", out.Parser),
			Hint: "its first line is such as #!/bin/sh"}
	}
	return out, nil
}
