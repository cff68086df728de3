package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
)

// Down ends all processes of the lab and removes its files; the built programs stay in the cache. A lab that is down
// already is fine. A lab that another process is just starting is not touched.
func (l *Lab) Down(ctx context.Context) error {
	current, err := readState(l.dir)
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if current.starting() && current.Owner != self() {
		return fmt.Errorf("lab %s is being started by process %d: stop that one", current.Name, current.Owner.PID)
	}
	if err := l.refresh(); err != nil {
		return err
	}
	if err := l.end(ctx); err != nil {
		return err
	}
	if err := os.RemoveAll(l.Dir()); err != nil {
		return fmt.Errorf("removing lab %s: %w", current.Name, err)
	}
	return nil
}

// end kills everything at once: the data goes with the lab, so there is nothing to finish in order.
func (l *Lab) end(ctx context.Context) error {
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		failed []error
	)
	for name, p := range l.snapshot().Running {
		wg.Go(func() {
			if err := p.end(ctx, 0); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, fmt.Errorf("ending %s (process %d) of lab %s: %w", name, p.PID, l.Name(), err))
			}
		})
	}
	wg.Wait()
	if len(failed) > 0 {
		return errors.Join(failed...)
	}
	return l.change(func(s *state) { clear(s.Running) })
}
