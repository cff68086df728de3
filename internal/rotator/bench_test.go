package rotator

import (
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tasuki-io/tasuki/internal/rotation"
)

// BenchmarkDecide is one cached answer for a pool of 200 nodes of which none is due.
func BenchmarkDecide(b *testing.B) {
	world := []client.Object{web(), pool(nil)}
	for i := range 200 {
		name := fmt.Sprintf("c%03d", i)
		world = append(world, claim(name, time.Hour, nil), node(name, nil))
	}
	live := apiServer(interceptor.Funcs{}, world...)
	r := newRotator(live, live, &spoken{})
	s, err := r.observe(b.Context(), live, "web", now)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if d := rotation.Decide(*s, now); d.Reason != rotation.ReasonNoCandidate {
			b.Fatal(d.Reason)
		}
	}
}
