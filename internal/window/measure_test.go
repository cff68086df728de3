package window_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tasuki-io/tasuki/internal/window"
)

const (
	hour = time.Hour
	day  = 24 * time.Hour
	week = 7 * day
)

func TestMeasure(t *testing.T) {
	for _, tt := range []struct {
		name    string
		entries []entry
		from    string
		want    window.Measure
	}{
		{
			name:    "twice a week in Tokyo",
			entries: []entry{{"Asia/Tokyo", "Wed,Sat", "02:00", "06:00"}},
			from:    "2026-06-10T00:00:00Z",
			want:    window.Measure{Period: 4 * day, ShortestOccurrence: 4 * hour, ShortestGap: 3*day - 4*hour},
		},
		{
			name:    "once a week",
			entries: []entry{{"Asia/Tokyo", "Sat", "02:00", "06:00"}},
			from:    "2026-06-10T00:00:00Z",
			want:    window.Measure{Period: week, ShortestOccurrence: 4 * hour, ShortestGap: week - 4*hour},
		},
		{
			name:    "once a week on a Sunday that is an hour longer once and shorter once",
			entries: []entry{{"Europe/Berlin", "Sun", "01:00", "05:00"}},
			from:    "2026-06-10T00:00:00Z",
			want:    window.Measure{Period: week + hour, ShortestOccurrence: 3 * hour, ShortestGap: week - 4*hour},
		},
		{
			name:    "closed for one hour a week",
			entries: []entry{{"UTC", "Mon,Tue,Wed,Thu,Fri,Sat", "00:00", "24:00"}, {"UTC", "Sun", "00:00", "23:00"}},
			from:    "2026-06-10T00:00:00Z",
			want:    window.Measure{Period: week, ShortestOccurrence: week - hour, ShortestGap: hour},
		},
		{
			name:    "closed but one minute",
			entries: []entry{{"UTC", "Mon", "00:00", "00:01"}},
			from:    "2026-06-10T00:00:00Z",
			want:    window.Measure{Period: week, ShortestOccurrence: time.Minute, ShortestGap: week - time.Minute},
		},
		{
			name:    "a second entry of another size, later on the same day",
			entries: []entry{{"UTC", "Wed", "02:00", "06:00"}, {"UTC", "Wed", "08:00", "09:00"}},
			from:    "2026-06-10T00:00:00Z",
			want:    window.Measure{Period: week - 6*hour, ShortestOccurrence: hour, ShortestGap: 2 * hour},
		},
		{
			// The second entry fills London's missing hour in winter alone. The
			// union opens on 24 October, stays open, and opens next on 29 March.
			name:    "continuous in winter, closed an hour a day in summer",
			entries: []entry{{"Europe/London", everyDay, "02:00", "01:00"}, {"UTC", everyDay, "01:00", "02:00"}},
			from:    "2025-12-01T00:00:00Z",
			want: window.Measure{
				Period:             156 * day,
				ShortestOccurrence: 23 * hour,
				ShortestGap:        hour,
			},
		},
		{
			name:    "a zone that changes its offset by half an hour",
			entries: []entry{{"Australia/Lord_Howe", "Sun", "00:00", "12:00"}},
			from:    "2026-06-10T00:00:00Z",
			want:    window.Measure{Period: week + 30*time.Minute, ShortestOccurrence: 12*hour - 30*time.Minute, ShortestGap: week - 12*hour},
		},
		{
			name:    "the last winters of a zone that then opens for good",
			entries: []entry{{"Europe/Istanbul", everyDay, "00:00", "23:00"}, {"UTC", everyDay, "20:00", "21:00"}},
			from:    "2016-03-01T00:00:00Z",
			want:    window.Measure{Period: day, ShortestOccurrence: 23 * hour, ShortestGap: hour},
		},
		{
			name:    "the last closed hour of such a zone",
			entries: []entry{{"Europe/Istanbul", everyDay, "00:00", "23:00"}, {"UTC", everyDay, "20:00", "21:00"}},
			from:    "2016-03-26T21:30:00Z",
			want:    window.Measure{Period: window.Tick, ShortestOccurrence: 400 * day},
		},
		{
			name:    "open for good since yesterday",
			entries: []entry{{"Europe/Istanbul", everyDay, "00:00", "23:00"}, {"UTC", everyDay, "20:00", "21:00"}},
			from:    "2016-03-27T22:00:00Z",
			want:    window.Measure{Period: window.Tick, ShortestOccurrence: window.Tick, Continuous: true},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := schedule(t, tt.entries...).Measure(at(t, tt.from))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Measure (-want +got):\n%s", diff)
			}
		})
	}
}

// On 1 May 2016 Caracas moved its clocks for good, and one window in a series
// of two-hour ones lasted an hour and a half.
func TestMeasureCountsWhatStartsInItsRange(t *testing.T) {
	s := schedule(t, entry{"America/Caracas", "Sun", "02:00", "04:00"})
	start := at(t, "2016-05-01T02:00:00-04:30")
	for _, tt := range []struct {
		name string
		from time.Time
		want time.Duration
	}{
		{"the range begins as it opens", start, 90 * time.Minute},
		{"the range begins a nanosecond before", start.Add(-1), 90 * time.Minute},
		{"the range begins a nanosecond after", start.Add(1), 2 * hour},
		{"the range begins as it closes", start.Add(90 * time.Minute), 2 * hour},
		{"the range ends as it opens", start.Add(-400 * day), 2 * hour},
		{"the range ends a second after it opens", start.Add(-400*day + time.Second), 90 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := s.Measure(tt.from).ShortestOccurrence; got != tt.want {
				t.Errorf("ShortestOccurrence = %v, want %v", got, tt.want)
			}
		})
	}
}

// A whole range read minute by minute.
func TestMeasureAgreesWithTheReference(t *testing.T) {
	from := at(t, "2026-02-01T00:00:00Z")
	for _, entries := range [][]entry{
		weekly, nightly, twoHalves,
		{{"Europe/Berlin", "Sun", "02:15", "02:45"}, {"America/Santiago", "Mon,Sat", "21:00", "03:30"}},
		{{"Africa/Casablanca", everyDay, "03:00", "02:00"}, {"UTC", everyDay, "01:00", "02:00"}},
		{{"Australia/Lord_Howe", everyDay, "02:00", "01:30"}},
	} {
		t.Run(entries[0].String(), func(t *testing.T) {
			want := measureOf(slowReference(t, from.Add(-2*day), 402+60, entries...).between(), from)
			if diff := cmp.Diff(want, schedule(t, entries...).Measure(from)); diff != "" {
				t.Errorf("Measure of %v (-want +got):\n%s", entries, diff)
			}
		})
	}
}

// measureOf measures a list of occurrences that goes on beyond 400 days.
func measureOf(occurrences []window.Occurrence, from time.Time) window.Measure {
	limit := from.Add(400 * day)
	if len(occurrences) > 0 && occurrences[0].Contains(from) && (occurrences[0].End.IsZero() || occurrences[0].End.After(limit)) {
		return window.Measure{Period: window.Tick, ShortestOccurrence: window.Tick, Continuous: true}
	}
	var periods, lengths, gaps []time.Duration
	for i, o := range occurrences {
		if o.Start.Before(from) || !o.Start.Before(limit) || i+1 == len(occurrences) {
			continue
		}
		next := occurrences[i+1]
		periods = append(periods, next.Start.Sub(o.Start))
		lengths = append(lengths, o.End.Sub(o.Start))
		gaps = append(gaps, next.Start.Sub(o.End))
	}
	if len(periods) == 0 {
		return window.Measure{}
	}
	return window.Measure{
		Period:             slices.Max(periods),
		ShortestOccurrence: slices.Min(lengths),
		ShortestGap:        slices.Min(gaps),
	}
}
