package aws

import (
	"errors"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/executor/cloud"
)

// class says how the last call ended, in our word and in the provider's own. OutcomeUnknown is
// one that may have been carried out, whatever was answered.
func (s *session) class(err error) (executor.Outcome, string) {
	if err == nil {
		return executor.OutcomeDone, ""
	}
	var api smithy.APIError
	if !errors.As(err, &api) {
		return s.Wire.Unanswered(), ""
	}
	code := api.ErrorCode()
	_, throttled := retry.DefaultThrottleErrorCodes[code]
	_, timeout := retry.DefaultRetryableErrorCodes[code]
	var answer *smithyhttp.ResponseError
	switch {
	case throttled:
		return executor.OutcomeThrottled, code
	case slices.Contains(passing, code):
		return executor.OutcomeRetry, code
	case timeout, errors.As(err, &answer) && answer.HTTPStatusCode() >= 500:
		return executor.OutcomeUnknown, code
	}
	return executor.OutcomePermanent, code
}

// passing are the refusals that end by themselves: a NIC that is being attached, credentials
// that have just run out.
var passing = []string{"IncorrectState", "IncorrectInstanceState", "InvalidNetworkInterface.InUse", "ExpiredToken"}

// unread is the result of a request that ends with a failed read, before any change.
func (s *session) unread(err error) executor.Result {
	outcome, code := s.class(err)
	return cloud.Unread(outcome, code, "%s", advice(err, s.NIC))
}

// advice is what a person can do about an error of EC2.
func advice(err error, nic string) string {
	said := err.Error()
	var api smithy.APIError
	if !errors.As(err, &api) {
		return said
	}
	said, _, _ = strings.Cut(said, " Encoded authorization failure message")
	action := "an action"
	var op *smithy.OperationError
	if errors.As(err, &op) {
		action = "ec2:" + op.Operation()
	}
	switch api.ErrorCode() {
	case "UnauthorizedOperation", "AccessDenied", "AccessDeniedException":
		return "the identity of this host lacks " + action + ": allow it in an IAM policy of the host's role: " + said
	case "AuthFailure", "InvalidClientTokenId", "UnrecognizedClientException", "SignatureDoesNotMatch", "RequestExpired", "MissingAuthenticationToken":
		return "EC2 does not accept the identity of this host for " + action + ": check the host's role, that its clock is right, and the region of the profile: " + said
	case "InvalidNetworkInterfaceID.NotFound", "InvalidNetworkInterfaceID.Malformed":
		return "there is no NIC " + nic + " in this region and account: correct nicRef, or the region of the profile: " + said
	}
	return said
}

// refuses reports an InvalidParameterValue of EC2 with these words in it.
func refuses(err error, words string) bool {
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == "InvalidParameterValue" && strings.Contains(api.ErrorMessage(), words)
}
