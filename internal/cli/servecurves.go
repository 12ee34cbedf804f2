package cli

import (
	"context"
	"slices"

	distributions "github.com/cnsbench/cnsbench/internal/analysis/figure"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/report/html"
	"github.com/cnsbench/cnsbench/internal/web"
)

// fewOps is the number of ops below which a distribution is not drawn.
const fewOps = 3

// drawResponses draws the distributions of the response of each action of which several runs have enough ops.
func drawResponses(ctx context.Context, runs []web.Labelled) ([]web.Overlay, error) {
	curves := map[string][]html.Curve{}
	var actions []string
	for _, r := range runs {
		b, err := bundle.Open(r.Dir)
		if err != nil {
			return nil, err
		}
		list, err := distributions.Responses(ctx, b)
		if err != nil {
			return nil, err
		}
		for _, d := range list {
			if d.N < fewOps {
				continue
			}
			if !slices.Contains(actions, d.Action) {
				actions = append(actions, d.Action)
			}
			curves[d.Action] = append(curves[d.Action], html.Curve{Label: r.Label, N: d.N, Steps: d.Steps})
		}
	}
	overlays := []web.Overlay{}
	for _, name := range actions {
		of := curves[name]
		if len(of) < 2 {
			continue
		}
		o := web.Overlay{Action: name, SVG: string(html.Overlay("Distributions of the response of "+name, of))}
		for i, c := range of {
			o.Curves = append(o.Curves, web.Curve{Label: c.Label, N: c.N, Class: html.Class(i)})
		}
		overlays = append(overlays, o)
	}
	return overlays, nil
}
