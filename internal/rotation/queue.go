package rotation

import "container/heap"

// queue is a heap whose items may cease to count while they are in it.
type queue[T any] struct {
	items  []T
	before func(a, b T) bool
	counts func(T) bool
}

// push adds an item.
func (q *queue[T]) push(item T) { heap.Push((*heaped[T])(q), item) }

// first returns the first item that counts, and whether there is one.
func (q *queue[T]) first() (item T, ok bool) {
	for len(q.items) > 0 && !q.counts(q.items[0]) {
		heap.Pop((*heaped[T])(q))
	}
	if len(q.items) == 0 {
		return item, false
	}
	return q.items[0], true
}

// pop removes the item that first has returned.
func (q *queue[T]) pop() { heap.Pop((*heaped[T])(q)) }

// heaped is the queue as package heap sees it.
type heaped[T any] queue[T]

func (h *heaped[T]) Len() int           { return len(h.items) }
func (h *heaped[T]) Less(i, j int) bool { return h.before(h.items[i], h.items[j]) }
func (h *heaped[T]) Swap(i, j int)      { h.items[i], h.items[j] = h.items[j], h.items[i] }
func (h *heaped[T]) Push(x any)         { h.items = append(h.items, x.(T)) }

func (h *heaped[T]) Pop() any {
	last := len(h.items) - 1
	item := h.items[last]
	h.items = h.items[:last]
	return item
}
