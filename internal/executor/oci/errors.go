package oci

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/oracle/oci-go-sdk/v65/common"

	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/executor/cloud"
)

// class says how the last call ended, in our word and in the provider's own. OutcomeUnknown is
// one that may have been carried out, whatever was answered.
func (s *session) class(err error) (executor.Outcome, string) {
	if err == nil {
		return executor.OutcomeDone, ""
	}
	var said common.ServiceError
	if !errors.As(err, &said) {
		return s.Wire.Unanswered(), ""
	}
	code := said.GetCode()
	switch status := said.GetHTTPStatusCode(); {
	case status == http.StatusTooManyRequests:
		return executor.OutcomeThrottled, code
	case status == http.StatusRequestTimeout, status >= 500:
		return executor.OutcomeUnknown, code
	case status == http.StatusConflict, status == http.StatusPreconditionFailed:
		return executor.OutcomeRetry, code // IncorrectState, NoEtagMatch: it ends, or a read tells more
	}
	return executor.OutcomePermanent, code
}

// unread is the result of a request that ends with a failed read, before any change.
func (s *session) unread(err error) executor.Result {
	outcome, code := s.class(err)
	return cloud.Unread(outcome, code, "%s: %s", s.Subject(), s.advice(err))
}

// brief is what OCI has said, without the page that the SDK makes of it.
func brief(err error) string {
	var said common.ServiceError
	if !errors.As(err, &said) {
		return err.Error()
	}
	return fmt.Sprintf("%s (%d, opc-request-id %s): %s", said.GetCode(), said.GetHTTPStatusCode(), said.GetOpcRequestID(), said.GetMessage())
}

// advice is what a person can do about an error of OCI.
func (s *session) advice(err error) string {
	var said common.ServiceErrorRichInfo
	if !errors.As(err, &said) {
		return err.Error()
	}
	operation := said.GetOperationName()
	switch said.GetCode() {
	case "NotAuthenticated":
		return "OCI does not accept the identity of this host for " + operation + ": check that its clock is right, and the region of the profile: " + brief(err)
	case "InvalidatedRetryToken":
		return "OCI remembers for a day that this very request was carried out, and that what it created was deleted since: a new epoch asks anew: " + brief(err)
	case "QuotaExceeded":
		return "the compartment is at its quota: raise it, or release addresses: " + brief(err)
	}
	if status := said.GetHTTPStatusCode(); status == http.StatusNotFound || status == http.StatusForbidden || strings.HasPrefix(said.GetCode(), "RelatedResource") {
		return fmt.Sprintf("OCI does not tell which: there is no %s or not what it names (correct nicRef, or the region of the profile), or this host may not %s: %s: %s",
			s.NIC, operation, s.policy(operation), brief(err))
	}
	return brief(err)
}

// policies are the resource types that a policy has to name, with its verbs, by operation.
var policies = map[string][]string{
	"GetVnic":             {"inspect vnics"},
	"UpdateVnic":          {"use vnics"},
	"ListPrivateIps":      {"inspect private-ips", "inspect vnics", "inspect subnets"},
	"GetPrivateIp":        {"inspect private-ips"},
	"CreatePrivateIp":     {"use private-ips", "use vnics", "use subnets"},
	"UpdatePrivateIp":     {"use private-ips", "use vnics"},
	"DeletePrivateIp":     {"use private-ips", "use vnics", "use subnets"},
	"PrivateIpVnicDetach": {"use private-ips", "use vnics"},
	"ListIpv6s":           {"inspect ipv6s", "inspect vnics", "inspect subnets"},
	"GetIpv6":             {"inspect ipv6s"},
	"CreateIpv6":          {"manage ipv6s", "use vnics", "use subnets"},
	"UpdateIpv6":          {"manage ipv6s", "use vnics"},
	"DeleteIpv6":          {"manage ipv6s", "use vnics", "use subnets"},
	"Ipv6VnicDetach":      {"manage ipv6s", "use vnics"},
}

// policy is what a policy has to say for an operation. The group is one of the instances that
// the agents run on.
func (s *session) policy(operation string) string {
	where := "compartment id " + s.Profile.Compartment
	if s.Profile.Compartment == "" {
		where = "compartment COMPARTMENT"
	}
	statements := slices.Clone(policies[operation])
	for i, what := range statements {
		statements[i] = fmt.Sprintf(`"Allow dynamic-group GROUP to %s in %s"`, what, where)
	}
	return "its policy needs " + strings.Join(statements, " and ")
}
