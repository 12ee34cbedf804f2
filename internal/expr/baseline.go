package expr

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
)

// baseline is the macro of baseline(iops(fio.write)). CEL has expanded the call in it: it is a variable already.
func (p *parser) baseline(eh cel.MacroExprFactory, _ ast.Expr, args []ast.Expr) (ast.Expr, *common.Error) {
	if !p.known.Baseline {
		return nil, eh.NewError(0, "baseline is for cnsbench run --find-max: other expressions have one run")
	}
	if len(args) == 1 && args[0].Kind() == ast.IdentKind {
		for i := range p.slots {
			if s := &p.slots[i]; slotName(i) == args[0].AsIdent() && s.query != nil && !s.query.Baseline {
				s.query.Baseline = true
				return eh.NewIdent(slotName(i)), nil
			}
		}
	}
	return nil, eh.NewError(0, "baseline takes one call: baseline(iops(fio.write))")
}
