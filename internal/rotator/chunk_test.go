package rotator

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// A pool of a thousand nodes and one is read whole, in three chunks, and a cache, which knows no
// chunks, at once.
func TestALargePoolIsReadInChunks(t *testing.T) {
	const n = 2*chunk + 1
	world := []client.Object{web(), pool(nil)}
	for i := range n {
		name := fmt.Sprintf("c%04d", i)
		world = append(world, claim(name, time.Hour, nil), node(name, nil), pod(name, "node-c0000", "1m"))
	}
	var mu sync.Mutex
	asked := map[string]int{}
	live := apiServer(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		var o client.ListOptions
		o.ApplyOptions(opts)
		mu.Lock()
		kind := fmt.Sprintf("%T", list)
		asked[kind]++
		often := asked[kind] > 10
		mu.Unlock()
		if often {
			return fmt.Errorf("a %s is asked for again and again", kind)
		}
		from, _ := strconv.Atoi(o.Continue)
		limit := o.Limit
		o.Continue, o.Limit = "", 0
		if err := c.List(ctx, list, &o); err != nil {
			return err
		}
		if limit == 0 {
			list.SetContinue("continue-not-supported") // as controller-runtime's cache says of every list
			return nil
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return err
		}
		if to := from + int(limit); to < len(items) {
			list.SetContinue(strconv.Itoa(to))
			items = items[:to]
		}
		return meta.SetList(list, items[from:])
	}}, world...)
	for name, c := range map[string]struct {
		from   client.Reader
		chunks int
	}{
		"the API server": {patient{live}, 3},
		"a cache":        {live, 1},
	} {
		t.Run(name, func(t *testing.T) {
			clear(asked)
			s, err := newRotator(live, live, &spoken{}).observe(t.Context(), c.from, "web", now, "node-c0000")
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]bool{}
			for _, c := range s.NodeClaims {
				seen[c.Name] = true
			}
			if len(s.NodeClaims) != n || len(seen) != n || len(s.Nodes) != n || len(s.Pods["node-c0000"]) != n {
				t.Errorf("%d NodeClaims, %d different ones, %d Nodes and %d pods, want %d of each",
					len(s.NodeClaims), len(seen), len(s.Nodes), len(s.Pods["node-c0000"]), n)
			}
			want := map[string]int{"*v1.NodeClaimList": c.chunks, "*v1.NodeList": c.chunks, "*v1.PodList": c.chunks + 1, "*v1alpha1.RotationPolicyList": 1}
			if diff := cmp.Diff(want, asked); diff != "" {
				t.Errorf("lists asked for (-want +got):\n%s", diff)
			}
		})
	}
}
