package capture

import "testing"

// Whoever keeps what add returned still has it when there is much more.
func TestAPileMovesNothing(t *testing.T) {
	var p pile[int]
	var where []*int
	for i := range 5000 {
		where = append(where, p.add(i))
	}
	list, n := p.list(), 0
	for v := range p.all() {
		if v != where[n] || *v != n || list[n] != n {
			t.Fatalf("at %d: %d, and in the list %d", n, *v, list[n])
		}
		n++
	}
	if n != 5000 || len(list) != n || p.n != n || len(p.chunks) > 20 {
		t.Errorf("%d values in %d chunks, %d in the list", n, len(p.chunks), len(list))
	}
}
