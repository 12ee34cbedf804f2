package config

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
)

// podCreators lets some users create pods in namespace measure, and keeps what it was asked.
type podCreators struct {
	allowed map[string]bool
	asked   []authorizer.Attributes
}

func (p *podCreators) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	p.asked = append(p.asked, a)
	pods := a.IsResourceRequest() && a.GetVerb() == "create" && a.GetAPIGroup() == "" && a.GetResource() == "pods" &&
		a.GetSubresource() == "" && a.GetNamespace() == "measure"
	if pods && p.allowed[a.GetUser().GetName()] {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// The API server's own code evaluates the policy: a user who may not create pods may not create Benchmarks.
func TestAdmissionPolicy(t *testing.T) {
	objects, err := Objects(Options{})
	if err != nil {
		t.Fatal(err)
	}
	policies := typed[admissionregistrationv1.ValidatingAdmissionPolicy](t, objects, "ValidatingAdmissionPolicy")
	if len(policies) != 1 || *policies[0].Spec.FailurePolicy != admissionregistrationv1.Fail {
		t.Fatalf("policies: %+v", policies)
	}
	policy := policies[0]
	for _, b := range typed[admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, objects,
		"ValidatingAdmissionPolicyBinding") {
		if b.Spec.PolicyName != policy.Name || b.Spec.ValidationActions[0] != admissionregistrationv1.Deny ||
			b.Spec.MatchResources != nil {
			t.Errorf("binding %+v", b.Spec)
		}
	}
	for name, want := range map[string]bool{"pat": true, "eve": false} {
		creators := &podCreators{allowed: map[string]bool{"pat": true}}
		results := evaluate(t, policy, creators, &user.DefaultInfo{Name: name})
		if got := results[0].EvalResult.Value(); got != want || results[0].Error != nil {
			t.Errorf("%s may create a Benchmark: %v (%v), want %v", name, got, results[0].Error, want)
		}
		if text, _ := results[1].EvalResult.Value().(string); !strings.Contains(text, name+" may not create pods in "+
			"namespace measure") {
			t.Errorf("message %q", text)
		}
		if len(creators.asked) != 1 {
			t.Errorf("asked %d times", len(creators.asked))
		}
	}
}

// expression is a CEL expression and the type of its value.
type expression struct {
	text  string
	value *cel.Type
}

func (e expression) GetExpression() string    { return e.text }
func (e expression) ReturnTypes() []*cel.Type { return []*cel.Type{e.value} }

// evaluate evaluates the expression and the message of the only validation.
func evaluate(t *testing.T, p *admissionregistrationv1.ValidatingAdmissionPolicy, a authorizer.UnconditionalAuthorizer,
	who user.Info) []plugincel.EvaluationResult {
	t.Helper()
	v := p.Spec.Validations[0]
	expressions := []plugincel.ExpressionAccessor{expression{v.Expression, cel.BoolType},
		expression{v.MessageExpression, cel.StringType}}
	condition := plugincel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())).
		CompileCondition(expressions, plugincel.OptionalVariableDeclarations{HasAuthorizer: true},
			environment.NewExpressions)
	if err := errors.Join(condition.CompilationErrors()...); err != nil {
		t.Fatal(err)
	}
	benchmark := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cnsbench.dev/v1alpha1",
		"kind": "Benchmark", "metadata": map[string]any{"name": "b", "namespace": "measure"}}}
	gvk := benchmark.GroupVersionKind()
	gvr := schema.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: "benchmarks"}
	attributes := admission.NewAttributesRecord(benchmark, nil, gvk, "measure", "b", gvr, "", admission.Create, nil,
		false, who)
	versioned := &admission.VersionedAttributes{Attributes: attributes, VersionedObject: admission.NewLazyObject(benchmark),
		VersionedKind: gvk}
	request := plugincel.CreateAdmissionRequest(attributes, metav1.GroupVersionResource(gvr),
		metav1.GroupVersionKind(gvk))
	results, _, err := condition.ForInput(t.Context(), versioned, request,
		plugincel.OptionalVariableBindings{Authorizer: a}, nil, celconfig.RuntimeCELCostBudget)
	if err != nil {
		t.Fatal(err)
	}
	return results
}
