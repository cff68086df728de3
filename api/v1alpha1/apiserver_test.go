package v1alpha1_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	structuralcel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	structuraldefaulting "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	structurallisttype "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	structuralpruning "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// crdFile is what `make generate` writes and the chart installs.
const crdFile = "../../charts/tasuki/crds/noderotation.io_rotationpolicies.yaml"

// apiServer admits RotationPolicies the way the API server does, with the API server's
// own packages and without a cluster.
type apiServer struct {
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *structuralcel.Validator
}

// readCRD returns the generated CRD as the API server holds it.
func readCRD(t testing.TB) *apiextensions.CustomResourceDefinition {
	t.Helper()
	raw, err := os.ReadFile(crdFile)
	if err != nil {
		t.Fatal(err)
	}
	var v1 apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(raw, &v1); err != nil {
		t.Fatalf("%s: %v", crdFile, err)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(&v1)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&v1.Spec)
	v1.Status.StoredVersions = []string{"v1alpha1"} // the API server writes it on creation
	var crd apiextensions.CustomResourceDefinition
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&v1, &crd, nil); err != nil {
		t.Fatalf("%s: %v", crdFile, err)
	}
	return &crd
}

func newAPIServer(t testing.TB) *apiServer {
	t.Helper()
	version, err := apiextensions.GetSchemaForVersion(readCRD(t), "v1alpha1")
	if err != nil || version == nil {
		t.Fatalf("%s has no schema for v1alpha1: %v", crdFile, err)
	}
	structural, err := structuralschema.NewStructural(version.OpenAPIV3Schema)
	if err != nil {
		t.Fatalf("%s is not structural: %v", crdFile, err)
	}
	schema, _, err := validation.NewSchemaValidator(version.OpenAPIV3Schema)
	if err != nil {
		t.Fatalf("%s: %v", crdFile, err)
	}
	return &apiServer{
		structural: structural,
		schema:     schema,
		rules:      structuralcel.NewValidator(structural, true, celconfig.PerCallLimit),
	}
}

// create returns the object as it would be stored, or what kubectl would print. Unknown
// fields are refused, as kubectl asks for.
func (s *apiServer) create(manifest string) (stored map[string]any, err error) {
	raw, err := yaml.YAMLToJSONStrict([]byte(manifest))
	if err != nil {
		return nil, err
	}
	if err := utiljson.Unmarshal(raw, &stored); err != nil { // integers stay integers
		return nil, err
	}
	unknown := structuralpruning.PruneWithOptions(stored, s.structural, true,
		structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	if len(unknown) > 0 {
		return nil, fmt.Errorf("unknown field %s", strings.Join(unknown, ", "))
	}
	structuraldefaulting.PruneNonNullableNullsWithoutDefaults(stored, s.structural)
	structuraldefaulting.Default(stored, s.structural)

	errs := validation.ValidateCustomResource(nil, stored, s.schema)
	errs = append(errs, structurallisttype.ValidateListSetsAndMaps(nil, s.structural, stored)...)
	if blocksRules(errs) {
		return nil, errors.New(errs.ToAggregate().Error() + "; some validation rules were not checked")
	}
	byRule, left := s.rules.Validate(context.Background(), nil, s.structural, stored, nil, celconfig.RuntimeCELCostBudget)
	errs = append(errs, byRule...)
	if left < 0 || left > math.MaxInt64/2 {
		return nil, fmt.Errorf("the rules cost more than the API server grants: %v", errs.ToAggregate())
	}
	if len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	return stored, nil
}

// blocksRules says whether the API server leaves the CEL rules out after these errors.
func blocksRules(errs field.ErrorList) bool {
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}

// A CRD whose schema is not structural, whose defaults do not pass its own validation or
// whose rules could be too expensive is refused when it is installed.
func TestAPIServerTakesTheCRD(t *testing.T) {
	if errs := crdvalidation.ValidateCustomResourceDefinition(context.Background(), readCRD(t)); len(errs) > 0 {
		for _, err := range errs {
			t.Error(err)
		}
	}
}
