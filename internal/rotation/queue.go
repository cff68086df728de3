package rotation

// queue is a binary heap, without the boxes of container/heap, whose items may cease to count while they are in it.
type queue[T any] struct {
	items  []T
	before func(a, b T) bool
	counts func(T) bool
}

// push adds an item.
func (q *queue[T]) push(item T) {
	q.items = append(q.items, item)
	for i := len(q.items) - 1; i > 0; {
		parent := (i - 1) / 2
		if !q.before(q.items[i], q.items[parent]) {
			return
		}
		q.items[i], q.items[parent] = q.items[parent], q.items[i]
		i = parent
	}
}

// first returns the first item that counts, and whether there is one.
func (q *queue[T]) first() (item T, ok bool) {
	for len(q.items) > 0 && !q.counts(q.items[0]) {
		q.pop()
	}
	if len(q.items) == 0 {
		return item, false
	}
	return q.items[0], true
}

// pop removes the item that first has returned.
func (q *queue[T]) pop() {
	last := len(q.items) - 1
	q.items[0] = q.items[last]
	clear(q.items[last:])
	q.items = q.items[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if q.before(q.items[child], q.items[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		q.items[i], q.items[least] = q.items[least], q.items[i]
		i = least
	}
}
