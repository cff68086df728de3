package window_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tasuki-io/tasuki/internal/window"
)

const everyDay = "Mon,Tue,Wed,Thu,Fri,Sat,Sun"

// at reads "2026-03-08T03:00:00-04:00".
func at(t testing.TB, s string) time.Time {
	t.Helper()
	instant, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatal(err)
	}
	return instant
}

// occurrence reads two instants; "" is an unbounded side.
func occurrence(t testing.TB, start, end string) window.Occurrence {
	t.Helper()
	var o window.Occurrence
	if start != "" {
		o.Start = at(t, start)
	}
	if end != "" {
		o.End = at(t, end)
	}
	return o
}

func TestR03WindowPastMidnight(t *testing.T) {
	s := schedule(t, entry{"Asia/Tokyo", "Fri", "22:00", "02:00"})
	for _, tt := range []struct {
		name, at string
		open     bool
	}{
		{"Friday 01:00, before the day's own start", "2026-06-12T01:00:00+09:00", false},
		{"Friday 21:59", "2026-06-12T21:59:59.999999999+09:00", false},
		{"Friday 22:00", "2026-06-12T22:00:00+09:00", true},
		{"Saturday 00:00", "2026-06-13T00:00:00+09:00", true},
		{"Saturday 01:59", "2026-06-13T01:59:59.999999999+09:00", true},
		{"Saturday 02:00", "2026-06-13T02:00:00+09:00", false},
		{"Saturday 22:00", "2026-06-13T22:00:00+09:00", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := at(t, tt.at)
			got, open := s.At(now)
			if open != tt.open || open != (got != window.Occurrence{}) {
				t.Fatalf("At = %v, %t; want open %t", got, open, tt.open)
			}
			if !open {
				return
			}
			want := occurrence(t, "2026-06-12T22:00:00+09:00", "2026-06-13T02:00:00+09:00")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("At (-want +got):\n%s", diff)
			}
			if !got.Contains(now) {
				t.Errorf("%v does not contain %v", got, now)
			}
		})
	}
}

func TestR04WholeDayIsContinuous(t *testing.T) {
	for _, tt := range []struct {
		name    string
		entries []entry
	}{
		{"one zone with daylight saving", []entry{{"Europe/Berlin", everyDay, "00:00", "24:00"}}},
		{"a zone that skipped a date", []entry{{"Pacific/Apia", everyDay, "00:00", "24:00"}}},
		{"working days and weekend", []entry{{"America/New_York", "Mon,Tue,Wed,Thu,Fri", "00:00", "24:00"}, {"America/New_York", "Sat,Sun", "00:00", "24:00"}}},
		{"two halves that touch", []entry{{"UTC", everyDay, "18:00", "06:00"}, {"UTC", everyDay, "06:00", "18:00"}}},
		{"two zones, neither enough", []entry{{"Asia/Tokyo", everyDay, "09:00", "22:00"}, {"America/New_York", everyDay, "07:00", "21:00"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := schedule(t, tt.entries...)
			for _, now := range []string{
				"2011-12-30T10:00:00Z", "2026-03-08T07:00:00Z", "2026-03-29T01:00:00Z",
				"2026-06-10T00:00:00Z", "2026-10-25T00:30:00Z", "2028-12-31T23:59:59Z",
			} {
				got, open := s.At(at(t, now))
				if diff := cmp.Diff(window.Occurrence{}, got); !open || diff != "" {
					t.Errorf("At %s: open %t (-want +got):\n%s", now, open, diff)
				}
				if next, ok := s.Next(at(t, now)); ok || (next != window.Occurrence{}) {
					t.Errorf("Next %s = %v, %t, want none", now, next, ok)
				}
				between := s.Between(at(t, now), at(t, now).AddDate(0, 3, 0))
				if diff := cmp.Diff([]window.Occurrence{{}}, between); diff != "" {
					t.Errorf("Between from %s (-want +got):\n%s", now, diff)
				}
				want := window.Measure{Period: time.Minute, ShortestOccurrence: time.Minute, Continuous: true}
				if diff := cmp.Diff(want, s.Measure(at(t, now))); diff != "" {
					t.Errorf("Measure from %s (-want +got):\n%s", now, diff)
				}
			}
		})
	}
}

func TestR05WindowInsideSkippedHour(t *testing.T) {
	s := schedule(t, entry{"America/New_York", "Sun", "02:15", "02:45"})
	want := []window.Occurrence{
		occurrence(t, "2026-03-01T02:15:00-05:00", "2026-03-01T02:45:00-05:00"),
		occurrence(t, "2026-03-08T03:00:00-04:00", "2026-03-08T03:30:00-04:00"),
		occurrence(t, "2026-03-15T02:15:00-04:00", "2026-03-15T02:45:00-04:00"),
	}
	got := s.Between(at(t, "2026-03-01T00:00:00-05:00"), at(t, "2026-03-16T00:00:00-04:00"))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Between (-want +got):\n%s", diff)
	}
	// 02:15 standard to 03:00 summer time is 15 minutes short of a week, the
	// week after that is 45 minutes short, and the one in November, from summer
	// to standard time, is an hour long.
	wantMeasure := window.Measure{
		Period:             7*24*time.Hour + time.Hour,
		ShortestOccurrence: 30 * time.Minute,
		ShortestGap:        7*24*time.Hour - 45*time.Minute - 30*time.Minute,
	}
	if diff := cmp.Diff(wantMeasure, s.Measure(at(t, "2026-01-01T00:00:00Z"))); diff != "" {
		t.Errorf("Measure (-want +got):\n%s", diff)
	}
}

func TestClocksChange(t *testing.T) {
	for _, tt := range []struct {
		name     string
		entries  []entry
		from, to string
		want     [][2]string
	}{
		{
			name:    "spring: the start is skipped, the end is not",
			entries: []entry{{"America/New_York", "Sun", "02:30", "05:00"}},
			from:    "2026-03-08T00:00:00-05:00", to: "2026-03-09T00:00:00-04:00",
			want: [][2]string{{"2026-03-08T03:00:00-04:00", "2026-03-08T05:00:00-04:00"}},
		},
		{
			name:    "spring: the end is skipped, the start is not",
			entries: []entry{{"America/New_York", "Sat", "22:00", "02:30"}},
			from:    "2026-03-07T00:00:00-05:00", to: "2026-03-09T00:00:00-04:00",
			want: [][2]string{{"2026-03-07T22:00:00-05:00", "2026-03-08T03:00:00-04:00"}},
		},
		{
			name:    "spring: exactly the skipped hour keeps its hour",
			entries: []entry{{"America/New_York", "Sun", "02:00", "03:00"}},
			from:    "2026-03-08T00:00:00-05:00", to: "2026-03-09T00:00:00-04:00",
			want: [][2]string{{"2026-03-08T03:00:00-04:00", "2026-03-08T04:00:00-04:00"}},
		},
		{
			name:    "spring: an end at the first skipped minute is the change itself",
			entries: []entry{{"America/New_York", "Sun", "01:00", "02:00"}},
			from:    "2026-03-08T00:00:00-05:00", to: "2026-03-09T00:00:00-04:00",
			want: [][2]string{{"2026-03-08T01:00:00-05:00", "2026-03-08T03:00:00-04:00"}},
		},
		{
			name:    "spring: a window around the skipped hour loses it",
			entries: []entry{{"America/New_York", "Sun", "01:00", "04:00"}},
			from:    "2026-03-08T00:00:00-05:00", to: "2026-03-09T00:00:00-04:00",
			want: [][2]string{{"2026-03-08T06:00:00Z", "2026-03-08T08:00:00Z"}},
		},
		{
			name:    "autumn: the start takes the first 01:30 and the end the last",
			entries: []entry{{"America/New_York", "Sun", "01:15", "01:30"}},
			from:    "2026-11-01T00:00:00-04:00", to: "2026-11-02T00:00:00-05:00",
			want: [][2]string{{"2026-11-01T01:15:00-04:00", "2026-11-01T01:30:00-05:00"}},
		},
		{
			name:    "autumn: 01:00 is shown twice, 02:00 is not",
			entries: []entry{{"America/New_York", "Sun", "00:30", "01:00"}, {"America/New_York", "Sun", "02:00", "02:30"}},
			from:    "2026-11-01T00:00:00-04:00", to: "2026-11-02T00:00:00-05:00",
			want: [][2]string{
				{"2026-11-01T00:30:00-04:00", "2026-11-01T01:00:00-05:00"},
				{"2026-11-01T02:00:00-05:00", "2026-11-01T02:30:00-05:00"},
			},
		},
		{
			name:    "half an hour is skipped on Lord Howe",
			entries: []entry{{"Australia/Lord_Howe", "Sun", "02:10", "02:20"}},
			from:    "2026-10-04T00:00:00+10:30", to: "2026-10-05T00:00:00+11:00",
			want: [][2]string{{"2026-10-04T02:30:00+11:00", "2026-10-04T02:40:00+11:00"}},
		},
		{
			name:    "half an hour is repeated on Lord Howe",
			entries: []entry{{"Australia/Lord_Howe", "Sun", "01:20", "01:45"}},
			from:    "2026-04-05T00:00:00+11:00", to: "2026-04-06T00:00:00+10:30",
			want: [][2]string{{"2026-04-05T01:20:00+11:00", "2026-04-05T01:45:00+10:30"}},
		},
		{
			name:    "Casablanca leaves its offset for Ramadan",
			entries: []entry{{"Africa/Casablanca", "Sun", "02:30", "03:30"}},
			from:    "2026-02-15T00:00:00Z", to: "2026-03-23T00:00:00Z",
			want: [][2]string{
				{"2026-02-15T02:30:00+01:00", "2026-02-15T03:30:00Z"},
				{"2026-02-22T02:30:00Z", "2026-02-22T03:30:00Z"},
				{"2026-03-01T02:30:00Z", "2026-03-01T03:30:00Z"},
				{"2026-03-08T02:30:00Z", "2026-03-08T03:30:00Z"},
				{"2026-03-15T02:30:00Z", "2026-03-15T03:30:00Z"},
				{"2026-03-22T03:00:00+01:00", "2026-03-22T03:30:00+01:00"},
			},
		},
		{
			name:    "Apia crosses the date line: the skipped Friday opens when Saturday begins",
			entries: []entry{{"Pacific/Apia", "Fri", "02:00", "06:00"}},
			from:    "2011-12-29T00:00:00-10:00", to: "2012-01-02T00:00:00+14:00",
			want: [][2]string{{"2011-12-31T00:00:00+14:00", "2011-12-31T04:00:00+14:00"}},
		},
		{
			name:    "Apia: Thursday's window ends in the skipped Friday",
			entries: []entry{{"Pacific/Apia", "Thu", "22:00", "02:00"}},
			from:    "2011-12-29T00:00:00-10:00", to: "2012-01-02T00:00:00+14:00",
			want: [][2]string{{"2011-12-29T22:00:00-10:00", "2011-12-31T00:00:00+14:00"}},
		},
		{
			name:    "the last day of a leap year, beyond the recorded transitions",
			entries: []entry{{"America/New_York", "Mon", "18:00", "21:00"}},
			from:    "2040-12-31T00:00:00Z", to: "2041-01-01T12:00:00Z",
			want: [][2]string{{"2040-12-31T18:00:00-05:00", "2040-12-31T21:00:00-05:00"}},
		},
		{
			name:    "a zone before its first transition, and before 1970",
			entries: []entry{{"Asia/Tokyo", "Wed", "02:00", "06:00"}},
			from:    "1799-12-31T12:00:00Z", to: "1800-01-05T00:00:00Z",
			want: [][2]string{{"1799-12-31T16:41:01Z", "1799-12-31T20:41:01Z"}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var want []window.Occurrence
			for _, edges := range tt.want {
				want = append(want, occurrence(t, edges[0], edges[1]))
			}
			got := schedule(t, tt.entries...).Between(at(t, tt.from), at(t, tt.to))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("Between (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnionMerges(t *testing.T) {
	for _, tt := range []struct {
		name     string
		entries  []entry
		from, to string
		want     [][2]string
	}{
		{
			name:    "entries that overlap",
			entries: []entry{{"UTC", "Wed", "02:00", "06:00"}, {"UTC", "Wed", "04:00", "08:00"}},
			from:    "2026-06-10T00:00:00Z", to: "2026-06-11T00:00:00Z",
			want: [][2]string{{"2026-06-10T02:00:00Z", "2026-06-10T08:00:00Z"}},
		},
		{
			name:    "an entry inside another",
			entries: []entry{{"UTC", "Wed", "04:00", "05:00"}, {"UTC", "Wed", "02:00", "08:00"}},
			from:    "2026-06-10T00:00:00Z", to: "2026-06-11T00:00:00Z",
			want: [][2]string{{"2026-06-10T02:00:00Z", "2026-06-10T08:00:00Z"}},
		},
		{
			name:    "entries that touch at midnight",
			entries: []entry{{"UTC", "Tue", "22:00", "24:00"}, {"UTC", "Wed", "00:00", "02:00"}},
			from:    "2026-06-10T00:00:00Z", to: "2026-06-11T00:00:00Z",
			want: [][2]string{{"2026-06-09T22:00:00Z", "2026-06-10T02:00:00Z"}},
		},
		{
			name:    "one minute apart stays apart",
			entries: []entry{{"UTC", "Wed", "02:00", "03:59"}, {"UTC", "Wed", "04:00", "06:00"}},
			from:    "2026-06-10T00:00:00Z", to: "2026-06-11T00:00:00Z",
			want: [][2]string{{"2026-06-10T02:00:00Z", "2026-06-10T03:59:00Z"}, {"2026-06-10T04:00:00Z", "2026-06-10T06:00:00Z"}},
		},
		{
			name:    "zones that touch: Tokyo hands over to Berlin in summer",
			entries: []entry{{"Asia/Tokyo", "Wed", "09:00", "16:00"}, {"Europe/Berlin", "Wed", "09:00", "12:00"}},
			from:    "2026-06-10T00:00:00Z", to: "2026-06-11T00:00:00Z",
			want: [][2]string{{"2026-06-10T00:00:00Z", "2026-06-10T10:00:00Z"}},
		},
		{
			name:    "the same zones leave an hour in winter",
			entries: []entry{{"Asia/Tokyo", "Wed", "09:00", "16:00"}, {"Europe/Berlin", "Wed", "09:00", "12:00"}},
			from:    "2026-12-09T00:00:00Z", to: "2026-12-10T00:00:00Z",
			want: [][2]string{{"2026-12-09T00:00:00Z", "2026-12-09T07:00:00Z"}, {"2026-12-09T08:00:00Z", "2026-12-09T11:00:00Z"}},
		},
		{
			name:    "closed for one hour a week",
			entries: []entry{{"UTC", "Mon,Tue,Wed,Thu,Fri,Sat", "00:00", "24:00"}, {"UTC", "Sun", "00:00", "23:00"}},
			from:    "2026-06-10T00:00:00Z", to: "2026-06-15T00:00:01Z",
			want: [][2]string{{"2026-06-08T00:00:00Z", "2026-06-14T23:00:00Z"}, {"2026-06-15T00:00:00Z", "2026-06-21T23:00:00Z"}},
		},
		{
			name:    "almost two days on the far side of the date line",
			entries: []entry{{"Pacific/Honolulu", "Wed", "23:59", "23:58"}},
			from:    "2026-06-12T09:57:00Z", to: "2026-06-12T09:58:00Z",
			want: [][2]string{{"2026-06-11T09:59:00Z", "2026-06-12T09:58:00Z"}},
		},
		{
			name:    "the same, before 1970",
			entries: []entry{{"Pacific/Honolulu", "Wed", "23:59", "23:58"}},
			from:    "1960-06-10T09:57:00Z", to: "1960-06-10T09:58:00Z",
			want: [][2]string{{"1960-06-09T09:59:00Z", "1960-06-10T09:58:00Z"}},
		},
		{
			name:    "the first night of the calendar",
			entries: []entry{{"UTC", "Sun", "22:00", "02:00"}},
			from:    "0001-01-01T00:00:00Z", to: "0001-01-01T00:00:01Z",
			want: [][2]string{{"0000-12-31T22:00:00Z", "0001-01-01T02:00:00Z"}},
		},
		{
			name:    "the earliest date there is",
			entries: []entry{{"Pacific/Kiritimati", "Thu", "00:00", "00:01"}},
			from:    "2026-06-10T10:00:00Z", to: "2026-06-10T10:00:01Z",
			want: [][2]string{{"2026-06-10T10:00:00Z", "2026-06-10T10:01:00Z"}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var want []window.Occurrence
			for _, edges := range tt.want {
				want = append(want, occurrence(t, edges[0], edges[1]))
			}
			s := schedule(t, tt.entries...)
			got := s.Between(at(t, tt.from), at(t, tt.to))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("Between (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBetweenTakesHalfOpenRange(t *testing.T) {
	s := schedule(t, entry{"UTC", "Wed", "02:00", "06:00"})
	wednesday := []window.Occurrence{occurrence(t, "2026-06-10T02:00:00Z", "2026-06-10T06:00:00Z")}
	for _, tt := range []struct {
		name, from, to string
		want           []window.Occurrence
	}{
		{"ends as it opens", "2026-06-10T00:00:00Z", "2026-06-10T02:00:00Z", nil},
		{"ends a nanosecond after it opens", "2026-06-10T00:00:00Z", "2026-06-10T02:00:00.000000001Z", wednesday},
		{"begins a nanosecond before it closes", "2026-06-10T05:59:59.999999999Z", "2026-06-11T00:00:00Z", wednesday},
		{"begins as it closes", "2026-06-10T06:00:00Z", "2026-06-11T00:00:00Z", nil},
		{"lies inside", "2026-06-10T03:00:00Z", "2026-06-10T03:00:00.5Z", wednesday},
		{"is empty", "2026-06-10T03:00:00Z", "2026-06-10T03:00:00Z", nil},
		{"runs backwards", "2026-06-10T05:00:00Z", "2026-06-10T03:00:00Z", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := s.Between(at(t, tt.from), at(t, tt.to))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Between (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOccurrenceContains(t *testing.T) {
	start, end := at(t, "2026-06-10T02:00:00Z"), at(t, "2026-06-10T06:00:00Z")
	for _, tt := range []struct {
		name string
		o    window.Occurrence
		at   time.Time
		want bool
	}{
		{"just before its start", window.Occurrence{Start: start, End: end}, start.Add(-1), false},
		{"its start", window.Occurrence{Start: start, End: end}, start, true},
		{"just before its end", window.Occurrence{Start: start, End: end}, end.Add(-1), true},
		{"its end", window.Occurrence{Start: start, End: end}, end, false},
		{"before the year 1, without a start", window.Occurrence{End: end}, time.Time{}.Add(-1), true},
		{"its end, without a start", window.Occurrence{End: end}, end, false},
		{"before its start, without an end", window.Occurrence{Start: start}, start.Add(-1), false},
		{"long after its start, without an end", window.Occurrence{Start: start}, start.AddDate(900, 0, 0), true},
		{"anything, without edges", window.Occurrence{}, start, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.o.Contains(tt.at); got != tt.want {
				t.Errorf("%v contains %v: %t, want %t", tt.o, tt.at, got, tt.want)
			}
		})
	}
}

func TestNextStartsStrictlyAfter(t *testing.T) {
	tokyo := schedule(t, entry{"Asia/Tokyo", "Thu", "00:30", "01:00"})
	for _, tt := range []struct {
		name, now, want string
	}{
		{"as it opens", "2026-06-11T00:30:00+09:00", "2026-06-18T00:30:00+09:00"},
		{"a nanosecond before it opens", "2026-06-11T00:29:59.999999999+09:00", "2026-06-11T00:30:00+09:00"},
		{"while it is open", "2026-06-11T00:45:00+09:00", "2026-06-18T00:30:00+09:00"},
		{"as it closes", "2026-06-11T01:00:00+09:00", "2026-06-18T00:30:00+09:00"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			next, ok := tokyo.Next(at(t, tt.now))
			if !ok || !next.Start.Equal(at(t, tt.want)) {
				t.Errorf("Next = %v, %t; want a start at %s", next, ok, tt.want)
			}
		})
	}
}

func TestZeroScheduleNeverOpens(t *testing.T) {
	now := at(t, "2026-06-10T00:00:00Z")
	for name, s := range map[string]window.Schedule{
		"zero":                {},
		"no rules":            window.NewSchedule(),
		"a rule that is zero": window.NewSchedule(window.Rule{}),
	} {
		t.Run(name, func(t *testing.T) {
			if got, open := s.At(now); open {
				t.Errorf("At = %v, want closed", got)
			}
			if got, ok := s.Next(now); ok {
				t.Errorf("Next = %v, want none", got)
			}
			if got := s.Between(now, now.AddDate(1, 0, 0)); len(got) > 0 {
				t.Errorf("Between = %v, want none", got)
			}
			if diff := cmp.Diff(window.Measure{}, s.Measure(now)); diff != "" {
				t.Errorf("Measure (-want +got):\n%s", diff)
			}
		})
	}
}

func TestScheduleKeepsItsRules(t *testing.T) {
	rule, err := window.ParseRule("UTC", []string{"Wed"}, "02:00", "06:00")
	if err != nil {
		t.Fatal(err)
	}
	rules := []window.Rule{rule}
	s := window.NewSchedule(rules...)
	rules[0] = window.Rule{}
	if _, open := s.At(at(t, "2026-06-10T03:00:00Z")); !open {
		t.Error("the schedule closed when the caller reused its slice")
	}
}

// Until 2016 Istanbul went back to UTC+2 in winter, and the hour before its
// midnight left the hour that the second entry covers. It has stayed on UTC+3
// since, so the union closes for the last time in March 2016.
func TestZoneThatStoppedChangingOpensForGood(t *testing.T) {
	s := schedule(t, entry{"Europe/Istanbul", everyDay, "00:00", "23:00"}, entry{"UTC", everyDay, "20:00", "21:00"})
	opened := at(t, "2016-03-27T00:00:00+02:00")

	for _, tt := range []struct {
		name, now string
		want      window.Occurrence
	}{
		{"winter", "2016-03-26T12:00:00+02:00", occurrence(t, "2016-03-26T00:00:00+02:00", "2016-03-26T23:00:00+02:00")},
		{"the first summer", "2016-06-01T00:00:00Z", window.Occurrence{Start: opened}},
		{"400 days later", "2017-04-30T22:00:00Z", window.Occurrence{Start: opened}},
		{"401 days later", "2017-05-01T22:00:00Z", window.Occurrence{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, open := s.At(at(t, tt.now))
			if diff := cmp.Diff(tt.want, got); !open || diff != "" {
				t.Errorf("At: open %t (-want +got):\n%s", open, diff)
			}
			if !got.Contains(at(t, tt.now)) {
				t.Errorf("%v does not contain %s", got, tt.now)
			}
		})
	}

	closed := at(t, "2016-03-26T23:30:00+02:00")
	next, ok := s.Next(closed)
	if diff := cmp.Diff(window.Occurrence{Start: opened}, next); !ok || diff != "" {
		t.Errorf("Next: found %t (-want +got):\n%s", ok, diff)
	}
	if next.Contains(closed) {
		t.Errorf("%v contains %v", next, closed)
	}
	if diff := cmp.Diff([]window.Occurrence{next}, s.Between(closed, closed.AddDate(0, 1, 0))); diff != "" {
		t.Errorf("Between (-want +got):\n%s", diff)
	}
}

// From December 2007 to May 2016 Caracas was on UTC-04:30, and only then does
// the second entry cover the half hour that the first leaves.
func TestEdgesAreLookedForOver400Days(t *testing.T) {
	s := schedule(t, entry{"America/Caracas", everyDay, "00:00", "23:30"}, entry{"UTC", everyDay, "04:00", "04:30"})
	start, end := at(t, "2007-12-09T00:00:00-04:00"), at(t, "2016-05-01T23:30:00-04:00")
	for _, tt := range []struct {
		name string
		now  time.Time
		want window.Occurrence
	}{
		{"400 days after its start", start.Add(400 * day), window.Occurrence{Start: start}},
		{"a second more", start.Add(400*day + time.Second), window.Occurrence{}},
		{"401 days before its end", end.Add(-401 * day), window.Occurrence{}},
		{"a second more than 400 days before its end", end.Add(-400*day - time.Second), window.Occurrence{}},
		{"400 days before its end", end.Add(-400 * day), window.Occurrence{End: end}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, open := s.At(tt.now)
			if diff := cmp.Diff(tt.want, got); !open || diff != "" {
				t.Errorf("At: open %t (-want +got):\n%s", open, diff)
			}
		})
	}
}

// The zone of a schedule is that of all its rules, or no particular one.
func TestZone(t *testing.T) {
	rule := func(zone string) window.Rule {
		r, err := window.ParseRule(zone, []string{"Wed"}, "02:00", "06:00")
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for name, c := range map[string]struct {
		rules []window.Rule
		want  string
	}{
		"none":         {nil, "UTC"},
		"one":          {[]window.Rule{rule("Asia/Tokyo")}, "Asia/Tokyo"},
		"all the same": {[]window.Rule{rule("Asia/Tokyo"), rule("Asia/Tokyo")}, "Asia/Tokyo"},
		"several":      {[]window.Rule{rule("Asia/Tokyo"), rule("Europe/Paris")}, "UTC"},
		"never opens":  {[]window.Rule{{}, rule("Asia/Tokyo")}, "Asia/Tokyo"},
	} {
		if got := window.NewSchedule(c.rules...).Zone().String(); got != c.want {
			t.Errorf("%s: zone is %s, want %s", name, got, c.want)
		}
	}
}
