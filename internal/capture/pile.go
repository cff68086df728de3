package capture

import "iter"

// pile collects values, many perhaps, and never moves one.
type pile[T any] struct {
	chunks [][]T
	n      int
}

// add puts a value on the pile, and returns where.
func (p *pile[T]) add(v T) *T {
	last := len(p.chunks) - 1
	if last < 0 || len(p.chunks[last]) == cap(p.chunks[last]) {
		p.chunks = append(p.chunks, make([]T, 0, min(max(4, p.n), 1024)))
		last++
	}
	p.n++
	p.chunks[last] = append(p.chunks[last], v)
	return &p.chunks[last][len(p.chunks[last])-1]
}

func (p *pile[T]) all() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for _, chunk := range p.chunks {
			for i := range chunk {
				if !yield(&chunk[i]) {
					return
				}
			}
		}
	}
}

// list is what is on the pile, in the order in which it was added.
func (p *pile[T]) list() []T {
	list := make([]T, 0, p.n)
	for _, chunk := range p.chunks {
		list = append(list, chunk...)
	}
	return list
}
