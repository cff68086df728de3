package window_test

import (
	"fmt"
	"time"

	"github.com/tasuki-io/tasuki/internal/window"
)

func ExampleSchedule() {
	rule, err := window.ParseRule("Asia/Tokyo", []string{"Wed", "Sat"}, "02:00", "06:00")
	if err != nil {
		fmt.Println(err)
		return
	}
	nights := window.NewSchedule(rule)
	now := time.Date(2026, time.June, 10, 12, 0, 0, 0, time.UTC)
	if next, ok := nights.Next(now); ok {
		fmt.Println("opens", next.Start.Format(time.RFC3339), "for", next.End.Sub(next.Start))
	}
	fmt.Println("at most", nights.Measure(now).Period, "from one to the next")
	// Output:
	// opens 2026-06-12T17:00:00Z for 4h0m0s
	// at most 96h0m0s from one to the next
}
