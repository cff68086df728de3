package azure

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"

	"github.com/tasuki-io/tasuki/internal/executor"
)

type responseError = azcore.ResponseError

// class says how the last call ended, in our word and in ARM's own. OutcomeUnknown is one that
// may have been carried out, whatever was answered.
func (s *session) class(err error) (executor.Outcome, string) {
	if err == nil {
		return executor.OutcomeDone, ""
	}
	var answer *responseError
	if !errors.As(err, &answer) {
		return s.Wire.Unanswered(), ""
	}
	code, status := answer.ErrorCode, answer.StatusCode
	switch class, known := classes[code]; {
	case status == http.StatusTooManyRequests:
		return executor.OutcomeThrottled, code
	case known:
		return class, code
	case status == http.StatusRequestTimeout, status >= 500:
		return executor.OutcomeUnknown, code
	case status == http.StatusConflict, status == http.StatusPreconditionFailed, status < 300:
		return executor.OutcomeRetry, code // by another writer, or of an operation that was accepted
	}
	return executor.OutcomePermanent, code
}

// classes are those of codes that tell more than their status.
var classes = map[string]executor.Outcome{
	"AnotherOperationInProgress":                 executor.OutcomeThrottled,
	"RetryableErrorDueToAnotherOperation":        executor.OutcomeThrottled,
	"RetryableError":                             executor.OutcomeRetry,
	"CanceledAndSupersededDueToAnotherOperation": executor.OutcomeRetry,
	"ReferencedResourceNotProvisioned":           executor.OutcomeRetry,
	"ExpiredAuthenticationToken":                 executor.OutcomeRetry,
	"AuthorizationFailed":                        executor.OutcomePermanent,
	"LinkedAuthorizationFailed":                  executor.OutcomePermanent,
	"ScopeLocked":                                executor.OutcomePermanent,
	"ReadOnlyDisabledSubscription":               executor.OutcomePermanent,
	"PrivateIPAddressNotInSubnet":                executor.OutcomePermanent,
	"PrivateIPAddressInReservedRange":            executor.OutcomePermanent,
	"PrivateIPAddressIsAllocated":                executor.OutcomePermanent,
	"PrivateIPAddressInUse":                      executor.OutcomePermanent,
}

// taken reports the codes of an address that something else has.
func taken(code string) bool {
	return code == "PrivateIPAddressIsAllocated" || code == "PrivateIPAddressInUse"
}

// limit reports a NIC, or a subscription, that is full. The codes of it have many names.
func limit(err error) bool {
	return limits.MatchString(code(err)) && !answered(err, http.StatusTooManyRequests)
}

var limits = regexp.MustCompile(`Limit|Quota|Exceed|MaxNumber|MaximumNumber`)

// answered reports an error that ARM has answered with a status. A put that was refused because
// of its etag (412) has changed nothing.
func answered(err error, status int) bool {
	var answer *responseError
	return errors.As(err, &answer) && answer.StatusCode == status
}

func code(err error) string {
	var answer *responseError
	errors.As(err, &answer)
	if answer == nil {
		return ""
	}
	return answer.ErrorCode
}

// advice is what a person can do about an error of ARM, of a request about a NIC.
func (s *session) advice(err error, id *arm.ResourceID) string {
	text := said(err)
	var answer *responseError
	if !errors.As(err, &answer) {
		return text
	}
	switch c := answer.ErrorCode; {
	case answer.StatusCode == http.StatusForbidden && strings.Contains(c, "AuthorizationFailed"):
		return fmt.Sprintf("the identity of this host lacks %s: give it a role with that action: %s", missing(text), text)
	case answer.StatusCode == http.StatusUnauthorized:
		return "ARM does not accept the identity of this host: check that its clock is right, and that the endpoint of the profile is of the cloud that the host is in: " + text
	case answer.StatusCode == http.StatusNotFound:
		return fmt.Sprintf("there is no %s that this host can see: correct nicRef, or the subscription and resourceGroup of the profile: %s", s.name(id), text)
	case strings.Contains(c, "ApiVersion"), c == "NoRegisteredProviderFound":
		return "this cloud does not have version " + apiVersion + " of Microsoft.Network: " + text
	}
	return text
}

// missing is the permission that a refusal names: the last one, as it may name one first that
// is there.
func missing(text string) string {
	named := actions.FindAllStringSubmatch(text, -1)
	if len(named) == 0 {
		return "a permission"
	}
	return named[len(named)-1][1]
}

var actions = regexp.MustCompile(`perform action(?:\(s\))? '([^']+)'`)
