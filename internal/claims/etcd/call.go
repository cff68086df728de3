package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// attempts is how many members may be asked in vain, each without an answer, in the time of
// one call.
const attempts = 3

// within bounds a whole call.
func (s *Store) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	stop := context.AfterFunc(s.life, cancel)
	return ctx, func() { stop(); cancel() }
}

// ask does what may be done twice, until it succeeds, with one member after the other.
func (s *Store) ask(ctx context.Context, what string, do func(context.Context, *clientv3.Client) error) error {
	var last error
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
		one, cancel := context.WithTimeout(ctx, s.timeout/attempts)
		err := s.once(one, do)
		cancel()
		switch {
		case err == nil:
			return nil
		case last == nil || !isDeadline(err): // that a member does not answer tells the least
			last = err
		}
		if !passing(err) {
			return s.failed(ctx, what, err)
		}
		select {
		case <-ctx.Done():
			return s.failed(ctx, what, last)
		case <-time.After(wait):
		}
	}
}

// tell does what may be done once only. When it fails, nobody knows whether it was done.
func (s *Store) tell(ctx context.Context, what string, do func(context.Context, *clientv3.Client) error) error {
	if err := s.once(ctx, do); err != nil {
		return s.failed(ctx, what, err)
	}
	return nil
}

func (s *Store) once(ctx context.Context, do func(context.Context, *clientv3.Client) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c, at, err := s.connected(ctx)
	if err == nil {
		err = do(ctx, c)
	}
	err = rpctypes.Error(err)
	switch {
	case errors.Is(err, rpctypes.ErrAuthFailed):
		s.refused(c)
	case absent(err):
		s.turn(at)
	}
	return err
}

// passing reports an error that another attempt may not meet.
func passing(err error) bool {
	switch {
	case absent(err), code(err) == codes.Canceled, errors.Is(err, context.Canceled): // with an earlier client, say
		return true
	case errors.Is(err, rpctypes.ErrInvalidAuthToken), errors.Is(err, rpctypes.ErrUserEmpty), errors.Is(err, rpctypes.ErrAuthOldRevision):
		return true // the client has fetched a new token
	}
	return false
}

// absent reports a member that does not answer, or not for the cluster.
func absent(err error) bool {
	return isDeadline(err) || code(err) == codes.Unavailable || code(err) == codes.DeadlineExceeded
}

func isDeadline(err error) bool { return errors.Is(err, context.DeadlineExceeded) }

func code(err error) codes.Code {
	var known rpctypes.EtcdError
	if errors.As(err, &known) {
		return known.Code()
	}
	return status.Code(err)
}

// failed is the error of a call: where, what, why, and what to do.
func (s *Store) failed(ctx context.Context, what string, err error) error {
	if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
		err = fmt.Errorf("%w: %w", ended, err)
	}
	return fmt.Errorf("etcd at %s: %s: %w%s", strings.Join(s.options.Endpoints, ","), what, err, s.remedy(err))
}

func (s *Store) remedy(err error) string {
	o := &s.options
	switch {
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		return fmt.Sprintf(": let the user %s read and write every key under %s", o.User, s.prefix)
	case errors.Is(err, rpctypes.ErrAuthFailed), errors.Is(err, rpctypes.ErrUserEmpty), errors.Is(err, rpctypes.ErrUserNotFound):
		return fmt.Sprintf(": check the user %q and the password in the file %q", o.User, o.PasswordFile)
	case errors.Is(err, rpctypes.ErrNoSpace):
		return ": compact and defragment it, or raise its --quota-backend-bytes, and disarm the alarm"
	case errors.Is(err, rpctypes.ErrTooManyOps):
		return ": let its --max-txn-ops be 128 at least"
	case errors.Is(err, context.Canceled):
		return ""
	case code(err) == codes.Unknown && !isDeadline(err):
		return "" // it is not of the cluster, and says itself what to do
	}
	return ": see that most of its members are up and that this host reaches one of them"
}
