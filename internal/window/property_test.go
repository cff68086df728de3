package window_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tasuki-io/tasuki/internal/window"
)

// changes are the instants around which calendars go wrong.
var changes = []struct {
	zone, at string
}{
	{"America/New_York", "2026-03-08T07:00:00Z"},    // an hour skipped
	{"America/New_York", "2026-11-01T06:00:00Z"},    // an hour repeated
	{"America/New_York", "2040-12-31T12:00:00Z"},    // the last day of a leap year
	{"Europe/London", "2026-03-29T01:00:00Z"},       // skipped in UTC itself
	{"Europe/Dublin", "2026-10-25T01:00:00Z"},       // winter is the exception there
	{"Australia/Lord_Howe", "2026-04-04T15:00:00Z"}, // half an hour repeated
	{"Australia/Lord_Howe", "2026-10-03T15:30:00Z"}, // half an hour skipped
	{"Africa/Casablanca", "2026-02-15T02:00:00Z"},   // Ramadan begins
	{"Africa/Casablanca", "2026-03-22T02:00:00Z"},   // Ramadan ends
	{"Antarctica/Troll", "2026-03-29T01:00:00Z"},    // two hours skipped
	{"Antarctica/Troll", "2026-10-25T01:00:00Z"},    // two hours repeated
	{"America/Santiago", "2026-09-06T04:00:00Z"},    // midnight skipped
	{"America/Santiago", "2026-04-05T03:00:00Z"},    // the hour before midnight repeated
	{"Pacific/Apia", "2011-12-30T10:00:00Z"},        // a date skipped
	{"Pacific/Kwajalein", "1993-08-21T12:00:00Z"},   // a date skipped
	{"Asia/Pyongyang", "2015-08-14T15:00:00Z"},      // half an hour repeated, for good
	{"America/Caracas", "2016-05-01T07:00:00Z"},     // half an hour skipped, for good
	{"Europe/Istanbul", "2016-03-27T01:00:00Z"},     // the last change
	{"Pacific/Chatham", "2026-09-26T14:00:00Z"},     // an odd offset
	{"Pacific/Kiritimati", "2026-06-10T10:00:00Z"},  // the earliest date
	{"Pacific/Honolulu", "2026-06-10T10:00:00Z"},    // nearly the latest
	{"Asia/Tokyo", "2026-06-10T15:00:00Z"},
	{"UTC", "2024-12-31T00:00:00Z"},
}

var dayNames = []string{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}

// drawCase draws entries and an instant, mostly near a change of one of their
// clocks.
func drawCase(t *rapid.T) ([]entry, time.Time) {
	change := rapid.SampledFrom(changes).Draw(t, "change")
	near, err := time.Parse(time.RFC3339, change.at)
	if err != nil {
		t.Fatal(err)
	}
	if rapid.IntRange(0, 4).Draw(t, "elsewhere") == 0 {
		near = near.Add(time.Duration(rapid.IntRange(0, 400*24*60).Draw(t, "minutes on")) * time.Minute)
	}
	entries := []entry{drawEntry(t, change.zone)}
	for range rapid.IntRange(0, 3).Draw(t, "more") {
		zone := change.zone
		if rapid.Bool().Draw(t, "other zone") {
			zone = rapid.SampledFrom(changes).Draw(t, "zone").zone
		}
		entries = append(entries, drawEntry(t, zone))
	}
	return entries, near
}

func drawEntry(t *rapid.T, zone string) entry {
	days := dayNames
	if rapid.Bool().Draw(t, "some days") {
		days = rapid.SliceOfNDistinct(rapid.SampledFrom(dayNames), 1, 7, rapid.ID).Draw(t, "days")
	}
	clock := rapid.Custom(func(t *rapid.T) string {
		hour := rapid.IntRange(0, 23).Draw(t, "hour")
		if rapid.Bool().Draw(t, "small hours") {
			hour = rapid.IntRange(0, 4).Draw(t, "hour")
		}
		return fmt.Sprintf("%02d:%02d", hour, rapid.SampledFrom([]int{0, 0, 1, 15, 29, 30, 45, 59}).Draw(t, "minute"))
	})
	start := clock.Draw(t, "start")
	end := rapid.OneOf(clock, rapid.Just("24:00")).Filter(func(end string) bool { return end != start }).Draw(t, "end")
	return entry{zone, strings.Join(days, ","), start, end}
}

// drawSchedule is for rapid.T, which is no testing.TB.
func drawSchedule(t *rapid.T, entries []entry) window.Schedule {
	var rules []window.Rule
	for _, e := range entries {
		rule, err := window.ParseRule(e.zone, strings.Split(e.days, ","), e.start, e.end)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, rule)
	}
	return window.NewSchedule(rules...)
}

func TestScheduleAgreesWithTheReference(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		entries, near := drawCase(rt)
		s := drawSchedule(rt, entries)
		const days = 9
		ref := slowReference(t, near.AddDate(0, 0, -3), days, entries...)
		from, to := ref.from, ref.end()
		want := ref.between()

		var got []window.Occurrence
		for _, o := range s.Between(from, to) {
			got = append(got, clip(o, from, to))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatalf("Between of %v (-reference +got):\n%s", entries, diff)
		}

		for range 20 {
			minute := time.Duration(rapid.IntRange(0, days*24*60-1).Draw(rt, "minute")) * time.Minute
			within := time.Duration(rapid.SampledFrom([]int64{0, 1, int64(time.Minute) - 1}).Draw(rt, "within"))
			now := from.Add(minute + within)

			o, open := s.At(now)
			if open != ref.at(now) {
				rt.Fatalf("%v: open at %v is %t, want %t", entries, now, open, ref.at(now))
			}
			if open {
				if i := slices.IndexFunc(want, func(o window.Occurrence) bool { return o.Contains(now) }); !cmp.Equal(want[i], clip(o, from, to)) {
					rt.Fatalf("%v: At %v = %v, want %v", entries, now, o, want[i])
				}
			}

			i := slices.IndexFunc(want, func(o window.Occurrence) bool { return o.Start.After(now) })
			next, ok := s.Next(now)
			switch {
			case i >= 0 && (!ok || !cmp.Equal(want[i], clip(next, from, to))):
				rt.Fatalf("%v: Next %v = %v, %t; want %v", entries, now, next, ok, want[i])
			case i < 0 && ok && next.Start.Before(to):
				rt.Fatalf("%v: Next %v = %v, want none before %v", entries, now, next, to)
			}
		}
	})
}

func TestScheduleAgreesWithItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries, from := drawCase(t)
		s := drawSchedule(t, entries)
		to := from.Add(time.Duration(rapid.Int64Range(1, int64(100*day)).Draw(t, "length")))
		between := s.Between(from, to)
		for i, o := range between {
			if !o.End.IsZero() && !o.Start.Before(o.End) {
				t.Fatalf("%v is empty", o)
			}
			if !o.Start.Before(to) || !o.End.IsZero() && !from.Before(o.End) {
				t.Fatalf("%v does not intersect [%v, %v)", o, from, to)
			}
			if i > 0 && !between[i-1].End.Before(o.Start) {
				t.Fatalf("%v and %v are not apart", between[i-1], o)
			}
		}

		now := from.Add(time.Duration(rapid.Int64Range(0, int64(to.Sub(from))-1).Draw(t, "now")))
		i := slices.IndexFunc(between, func(o window.Occurrence) bool { return o.Contains(now) })
		switch o, open := s.At(now); {
		case open != (i >= 0):
			t.Fatalf("open at %v is %t, but Between has %v", now, open, between)
		case open && !o.Contains(now):
			t.Fatalf("At %v = %v, which does not contain it", now, o)
		case open && !cmp.Equal(between[i], o):
			t.Fatalf("At %v = %v, but Between has %v", now, o, between[i])
		}
		if next, ok := s.Next(now); ok {
			if !next.Start.After(now) {
				t.Fatalf("Next %v = %v", now, next)
			}
			if o, open := s.At(next.Start); !open || !cmp.Equal(next, o) {
				t.Fatalf("Next %v = %v, but At its start = %v, %t", now, next, o, open)
			}
			if o, open := s.At(next.Start.Add(-1)); open {
				t.Fatalf("Next %v = %v, but it was open just before: %v", now, next, o)
			}
		}
	})
}

// Whatever it was asked before, near or far, and of schedules that close for good, or never.
func TestASeenScheduleAnswersAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries, now := drawCase(t)
		if rapid.IntRange(0, 3).Draw(t, "long") == 0 {
			entries = append(entries, rapid.SampledFrom([][]entry{
				wholeDay, {{"Europe/Istanbul", everyDay, "00:00", "23:00"}, {"UTC", everyDay, "20:00", "21:00"}},
			}).Draw(t, "endless")...)
		}
		s := drawSchedule(t, entries)
		seen := s.Remembering()
		for range 30 {
			stride := time.Duration(rapid.SampledFrom([]int64{0, int64(hour), int64(day), int64(500 * day)}).Draw(t, "stride"))
			now = now.Add(time.Duration(rapid.Int64Range(-int64(stride)/4, int64(stride)).Draw(t, "on")))
			was, ok := s.At(now)
			is, still := seen.At(now)
			if was != is || ok != still {
				t.Fatalf("%v: At %v = %v, %t, but seen %v, %t", entries, now, was, ok, is, still)
			}
			was, ok = s.Next(now)
			is, still = seen.Next(now)
			if was != is || ok != still {
				t.Fatalf("%v: Next %v = %v, %t, but seen %v, %t", entries, now, was, ok, is, still)
			}
		}
	})
}

func TestMeasureAgreesWithBetween(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries, from := drawCase(t)
		s := drawSchedule(t, entries)
		want := measureOf(s.Between(from, from.AddDate(3, 0, 0)), from)
		if diff := cmp.Diff(want, s.Measure(from)); diff != "" {
			t.Fatalf("Measure of %v from %v (-between +got):\n%s", entries, from, diff)
		}
	})
}
