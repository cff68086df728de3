package etcd

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tasuki-io/tasuki/internal/claims"
	"github.com/tasuki-io/tasuki/internal/claims/claimstest"
)

// The stores share a cluster, with each other and so with the writes of strangers. It is one
// that does not elect another leader because the machine is busy: that is a matter of the tests
// of faults, and an error here.
func TestStore(t *testing.T) {
	c := started(t, newCluster(t, 3, "--unsafe-no-fsync", "--heartbeat-interval=250", "--election-timeout=4000"))
	var made atomic.Int64
	claimstest.Run(t, func(t *testing.T) claimstest.Subject {
		t.Parallel()
		prefix := fmt.Sprintf("/store-%d/", made.Add(1))
		return claimstest.Subject{
			Open: func(t *testing.T) claims.Store {
				return opened(t, Options{Endpoints: endpoints(c.Members...), Prefix: prefix, Timeout: patience})
			},
			Now: time.Now, Pass: time.Sleep, TTL: 6 * time.Second, // the least that it grants
		}
	})
}
