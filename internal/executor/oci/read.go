package oci

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/oracle/oci-go-sdk/v65/common"
	"github.com/oracle/oci-go-sdk/v65/core"

	"github.com/tasuki-io/tasuki/internal/executor"
	"github.com/tasuki-io/tasuki/internal/executor/cloud"
)

// vnic is what OCI shows of a VNIC. It may be some seconds old.
type vnic struct {
	id, subnet, etag string
	forwards         bool
}

// vnic reads the VNIC of the request.
func (s *session) vnic(ctx context.Context) (*vnic, error) {
	in := core.GetVnicRequest{VnicId: &s.NIC, OpcRequestId: &s.token}
	out, err := again(ctx, s, func() (core.GetVnicResponse, error) { return s.net.GetVnic(unhurried, in) })
	if err != nil {
		return nil, err
	}
	n := &vnic{text(out.Id), text(out.SubnetId), text(out.Etag), out.SkipSourceDestCheck != nil && *out.SkipSourceDestCheck}
	if n.etag == "" {
		return nil, fmt.Errorf("OCI shows %s without an etag", s.NIC)
	}
	return n, nil
}

// find reads what a subnet has of the address of the request; nil is nothing. A list has no
// etags, so the object is read by itself: where it is and its etag are of one read.
func (s *session) find(ctx context.Context, subnet string) (*object, error) {
	f := s.family()
	for attempt := 1; ; attempt++ {
		all, err := f.list(ctx, filter{subnet: subnet, address: s.Address})
		if err != nil || len(all) == 0 {
			return nil, err
		}
		o, err := f.get(ctx, all[0].id)
		switch {
		case err == nil && o.address != s.Address:
			return nil, fmt.Errorf("OCI shows %s for %s, which is %s", o.id, s.Address, o.address)
		case !absent(err):
			return o, err
		case attempt == 3 || s.Clock.Sleep(ctx, cloud.FirstWait) != nil:
			return nil, fmt.Errorf("OCI lists %s as %s, and shows none", s.Address, all[0].id)
		}
	}
}

// absent reports that OCI does not show an object, or does not let this host see it.
func absent(err error) bool {
	var said common.ServiceError
	return errors.As(err, &said) && said.GetCode() == "NotAuthorizedOrNotFound"
}

// again makes a read, and repeats it a little.
func again[T any](ctx context.Context, s *session, read func() (T, error)) (T, error) {
	for attempt := 1; ; attempt++ {
		out, err := read()
		outcome, _ := s.class(err)
		passing := outcome == executor.OutcomeThrottled || outcome == executor.OutcomeUnknown
		var late net.Error
		if errors.As(err, &late) && late.Timeout() {
			passing = false // it has had its time
		}
		if !passing || attempt == 3 || s.Clock.Sleep(ctx, time.Duration(attempt)*100*time.Millisecond) != nil {
			return out, err
		}
	}
}
