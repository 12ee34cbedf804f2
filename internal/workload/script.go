package workload

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// script is a parser that an entry brings: it is called with the name of an
// output file and prints what it found.
type script struct{ text, image string }

// isParser says whether a ConfigMap of an entry is a parser, as the prototype
// wrote them.
func isParser(cm *corev1.ConfigMap) bool {
	return cm.Annotations["container"] != "" || cm.Labels["type"] == "parser"
}

// scriptOf takes the only key of a ConfigMap, or the first that begins with
// "parse"; the annotation container names the image.
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

// parser resolves a pod's annotation parser for what its container writes: one
// of the entry's own, else a name for the caller to judge.
func (r *renderer) parser(t *template, c *corev1.Container) (Output, error) {
	out := Output{Container: c.Name, Parser: annotation(t.annotations, "parser")}
	if out.Parser == "null-parser" {
		out.Parser = "" // the prototype's word for keeping it raw
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
		return out, &Error{Part: t.part, Message: fmt.Sprintf("parser %q does not say what runs it", out.Parser),
			Hint: "its first line is such as #!/bin/sh"}
	}
	return out, nil
}
