package window

import (
	"fmt"
	"strings"
	"time"
)

// Minutes of a civil day.
const dayMinutes = 24 * 60

// weekdays are the accepted names, in the order of [time.Weekday].
var weekdays = [7]string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}

// Rule is one maintenanceWindows entry (§3.1): a wall-clock start and end on
// some weekdays of one time zone. Build it with [ParseRule]; the zero Rule
// never opens.
type Rule struct {
	zone *time.Location
	days uint8 // bit i is set if an occurrence starts on time.Weekday(i)

	// Minutes after the midnight that begins the civil date. 0 <= start <
	// dayMinutes and start < end; an end beyond dayMinutes is on the next date.
	start, end int64
}

// ParseRule reads one entry.
//
//   - timezone is an IANA name such as "Asia/Tokyo" or "UTC".
//   - days are "Mon" to "Sun", at least one, each at most once.
//   - start and end are "HH:MM", from "00:00" to "23:59"; end may be "24:00".
//
// An end before the start runs past midnight, and such an occurrence belongs
// to the weekday on which it starts. An end equal to the start is refused.
//
// An error quotes the value that it refuses and says what to write instead.
func ParseRule(timezone string, days []string, start, end string) (Rule, error) {
	zone, err := parseZone(timezone)
	if err != nil {
		return Rule{}, err
	}
	set, err := parseDays(days)
	if err != nil {
		return Rule{}, err
	}
	from, ok := parseClock(start)
	if !ok || from == dayMinutes {
		return Rule{}, fmt.Errorf(`start %q is not a time of day: write HH:MM from "00:00" to "23:59"`, start)
	}
	to, ok := parseClock(end)
	if !ok {
		return Rule{}, fmt.Errorf(`end %q is not a time of day: write HH:MM from "00:00" to "24:00"`, end)
	}
	if to == from {
		return Rule{}, fmt.Errorf(`start %q equals end %q: write "00:00" and "24:00" for the whole day, or move one of them`, start, end)
	}
	if to < from {
		to += dayMinutes
	}
	return Rule{zone: zone, days: set, start: from, end: to}, nil
}

// String returns the rule on one line, such as "Wed,Sat 02:00-06:00 Asia/Tokyo",
// with the days from Monday to Sunday.
func (r Rule) String() string {
	if r.days == 0 {
		return "never"
	}
	var names []string
	for i := range weekdays {
		day := (i + 1) % len(weekdays)
		if r.startsOn(time.Weekday(day)) {
			names = append(names, weekdays[day])
		}
	}
	end := r.end
	if end > dayMinutes {
		end -= dayMinutes
	}
	return fmt.Sprintf("%s %02d:%02d-%02d:%02d %s",
		strings.Join(names, ","), r.start/60, r.start%60, end/60, end%60, r.zone)
}

func (r Rule) startsOn(day time.Weekday) bool {
	return r.days&(1<<day) != 0
}

func parseZone(name string) (*time.Location, error) {
	// LoadLocation takes these two for UTC and for the zone of the machine.
	if name == "" || name == "Local" {
		return nil, fmt.Errorf(`timezone %q does not name a zone: write an IANA name such as "Asia/Tokyo" or "UTC"`, name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf(`timezone %q is unknown: write an IANA name such as "Asia/Tokyo" or "UTC": %w`, name, err)
	}
	return zone, nil
}

func parseDays(days []string) (uint8, error) {
	if len(days) == 0 {
		return 0, fmt.Errorf(`days %q is empty: write at least one of Mon, Tue, Wed, Thu, Fri, Sat, Sun`, days)
	}
	var set uint8
	for _, name := range days {
		bit, ok := weekdayBit(name)
		if !ok {
			return 0, fmt.Errorf(`day %q is not a weekday: write Mon, Tue, Wed, Thu, Fri, Sat or Sun`, name)
		}
		if set&bit != 0 {
			return 0, fmt.Errorf(`day %q is listed twice: write each weekday once`, name)
		}
		set |= bit
	}
	return set, nil
}

func weekdayBit(name string) (uint8, bool) {
	for i, known := range weekdays {
		if name == known {
			return 1 << i, true
		}
	}
	return 0, false
}

// parseClock returns the minutes after midnight of "HH:MM", "00:00" to "24:00".
func parseClock(s string) (int64, bool) {
	if len(s) != len("HH:MM") || s[2] != ':' {
		return 0, false
	}
	hour, ok := twoDigits(s[:2])
	if !ok {
		return 0, false
	}
	minute, ok := twoDigits(s[3:])
	if !ok || minute > 59 {
		return 0, false
	}
	total := hour*60 + minute
	return total, total <= dayMinutes
}

func twoDigits(s string) (int64, bool) {
	for _, digit := range []byte(s) {
		if digit < '0' || digit > '9' {
			return 0, false
		}
	}
	return int64(s[0]-'0')*10 + int64(s[1]-'0'), true
}
