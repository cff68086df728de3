package aws

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go/logging"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/executor/cloud"
)

// identity is the host's own, with the place where it is used.
type identity struct {
	config      aws.Config
	endpoint    string
	credentials aws.Credentials
}

// identityTime is how long the host's identity may take to be told.
const identityTime = 10 * time.Second

// identify finds the host's identity by the SDK's default chain, or says in a result why
// there is none. EC2 has not been asked for anything then.
func identify(ctx context.Context, p executor.Profile) (*identity, executor.Result) {
	if err := cloud.SafeEndpoint(p.Endpoint); err != nil {
		return nil, executor.Resultf(executor.OutcomeRefused, "", "profile %s: %v", p.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, identityTime)
	defer cancel()
	where := config.WithRegion(p.Region)
	if p.Region == "" {
		where = config.WithEC2IMDSRegion()
	}
	c, err := config.LoadDefaultConfig(ctx, where, config.WithLogger(logging.Nop{}))
	if err != nil {
		return nil, nobody(err)
	}
	if c.Region == "" {
		return nil, executor.Resultf(executor.OutcomePermanent, "", "profile %s names no region, and neither the host nor its instance metadata tells one: set region", p.Name)
	}
	credentials, err := c.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, nobody(err)
	}
	return &identity{config: c, endpoint: p.Endpoint, credentials: credentials}, executor.Result{}
}

// nobody is the result of a host without an identity. It may come by itself when whoever
// tells it was only slow, or ill.
func nobody(err error) executor.Result {
	outcome := executor.OutcomePermanent
	var network net.Error
	var answered *smithyhttp.ResponseError
	switch {
	case errors.As(err, &answered) && answered.HTTPStatusCode() >= 500:
		outcome = executor.OutcomeRetry
	case errors.As(err, &network), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		outcome = executor.OutcomeRetry
	}
	return executor.Resultf(outcome, "", "this host has no AWS identity: give the instance a role (an instance profile), or the executor a web identity or a shared configuration: %v", err)
}

// client returns a client of EC2 whose requests are counted by w. It repeats reads a little;
// a change is made with once. The ID of the request is in the user agent, which CloudTrail
// keeps.
func (id *identity) client(w *cloud.Wire, q executor.Request) *ec2.Client {
	w.Send = awshttp.NewBuildableClient().Do
	return ec2.NewFromConfig(id.config, func(o *ec2.Options) {
		if id.endpoint != "" {
			o.BaseEndpoint = &id.endpoint
		}
		o.HTTPClient = w
		o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts, o.MaxBackoff = 3, 500*time.Millisecond
		})
		name := awsmiddleware.AddUserAgentKey("tasuki")
		if q.ID != "" {
			name = awsmiddleware.AddUserAgentKeyValue("tasuki", q.ID)
		}
		o.APIOptions = append(o.APIOptions, name)
	})
}

// once has a request sent once.
func once(o *ec2.Options) { o.Retryer = aws.NopRetryer{} }

// redact takes the credentials out of a text: some errors of AWS repeat the request that
// they are about.
func (id *identity) redact(s string) string {
	return executor.Redact(s, id.credentials.SecretAccessKey, id.credentials.SessionToken)
}
