package manifest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	structuralcel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	structuraldefaulting "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	structurallisttype "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	structuralpruning "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// admission takes objects of one custom kind as the API server does.
type admission struct {
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *structuralcel.Validator

	apart []string // top-level fields of which the verdict on the others does not depend
	known sync.Map // JSON of the others -> verdict
}

// verdict is what is wrong with an object, and what it is with its defaults.
type verdict struct {
	problems []problem
	object   map[string]any
	whole    bool // there were no defaults to fill in
}

// newAdmission reads the schema of a version from a CustomResourceDefinition.
func newAdmission(definition []byte, version string) (*admission, error) {
	var v1 apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(definition, &v1); err != nil {
		return nil, fmt.Errorf("read a CustomResourceDefinition: %w", err)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(&v1)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&v1.Spec)
	var crd apiextensions.CustomResourceDefinition
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&v1, &crd, nil); err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %s: %w", v1.Name, err)
	}
	served, err := apiextensions.GetSchemaForVersion(&crd, version)
	if err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %s: schema of %s: %w", v1.Name, version, err)
	}
	if served == nil {
		return nil, fmt.Errorf("CustomResourceDefinition %s has no schema for %s", v1.Name, version)
	}
	a := &admission{}
	if a.structural, err = structuralschema.NewStructural(served.OpenAPIV3Schema); err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %s is not structural: %w", v1.Name, err)
	}
	if a.schema, _, err = validation.NewSchemaValidator(served.OpenAPIV3Schema); err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %s: %w", v1.Name, err)
	}
	a.rules = structuralcel.NewValidator(a.structural, true, celconfig.PerCallLimit)
	if sub, _ := apiextensions.GetSubresourcesForVersion(&crd, version); sub != nil && sub.Status != nil && len(a.structural.XValidations) == 0 {
		a.apart = append(a.apart, "status") // what creates an object has no say in it
	}
	if len(a.structural.XValidations) == 0 && len(a.structural.Properties["metadata"].Properties) == 0 {
		a.apart = append(a.apart, "metadata")
	}
	return a, nil
}

// admit fills the defaults of an object in, and returns what is wrong with it. Nodes mostly
// differ in what its verdict does not depend on, and one verdict then does for all of them.
func (a *admission) admit(object map[string]any) []problem {
	judged := judgedOf(a, object)
	key, err := json.Marshal(judged)
	if err != nil {
		return []problem{{"", err.Error()}}
	}
	known, ok := a.known.Load(string(key))
	if !ok {
		v := verdict{problems: a.judge(judged), object: judged}
		filled, err := json.Marshal(judged)
		v.whole = err == nil && bytes.Equal(filled, key)
		known, _ = a.known.LoadOrStore(string(key), v)
	}
	v := known.(verdict)
	maps.Copy(object, v.object)
	return v.problems
}

// passes reports an object, by the JSON of its fields, that is known to be good as it is from
// one before.
func (a *admission) passes(fields map[string]json.RawMessage) bool {
	key, err := json.Marshal(judgedOf(a, fields))
	if err != nil {
		return false
	}
	known, ok := a.known.Load(string(key))
	return ok && known.(verdict).whole && len(known.(verdict).problems) == 0
}

// judgedOf is that part of an object on which the verdict depends.
func judgedOf[V any](a *admission, object map[string]V) map[string]V {
	judged := maps.Clone(object)
	for _, field := range a.apart {
		delete(judged, field)
	}
	return judged
}

// judge fills the defaults of an object in, and returns what is wrong with it.
func (a *admission) judge(object map[string]any) []problem {
	var problems []problem
	for _, path := range structuralpruning.PruneWithOptions(object, a.structural, true,
		structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		problems = append(problems, problem{path, "unknown field"})
	}
	structuraldefaulting.PruneNonNullableNullsWithoutDefaults(object, a.structural)
	structuraldefaulting.Default(object, a.structural)

	errs := validation.ValidateCustomResource(nil, object, a.schema)
	errs = append(errs, structurallisttype.ValidateListSetsAndMaps(nil, a.structural, object)...)
	if !blocksRules(errs) {
		byRule, left := a.rules.Validate(context.Background(), nil, a.structural, object, nil, celconfig.RuntimeCELCostBudget)
		errs = append(errs, byRule...)
		if left < 0 || left > math.MaxInt64/2 {
			problems = append(problems, problem{"", "its rules cost more than the API server grants"})
		}
	}
	for _, err := range errs {
		problems = append(problems, problem{err.Field, worded(err.ErrorBody(), valueAt(object, err.Field))})
	}
	return problems
}

// blocksRules says whether the API server leaves the rules out after these errors.
func blocksRules(errs field.ErrorList) bool {
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}
