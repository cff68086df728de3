package window_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tasuki-io/tasuki/internal/window"
)

func TestParseRuleReadsBackWhatItWasGiven(t *testing.T) {
	for _, tt := range []struct {
		entry
		want string
	}{
		{entry{"Asia/Tokyo", "Wed,Sat", "02:00", "06:00"}, "Wed,Sat 02:00-06:00 Asia/Tokyo"},
		{entry{"America/New_York", "Fri", "22:00", "02:00"}, "Fri 22:00-02:00 America/New_York"},
		{entry{"UTC", "Sun,Sat,Fri,Thu,Wed,Tue,Mon", "00:00", "24:00"}, "Mon,Tue,Wed,Thu,Fri,Sat,Sun 00:00-24:00 UTC"},
		{entry{"UTC", "Mon", "22:00", "00:00"}, "Mon 22:00-24:00 UTC"},
		{entry{"UTC", "Mon", "23:59", "23:58"}, "Mon 23:59-23:58 UTC"},
	} {
		t.Run(tt.want, func(t *testing.T) {
			rule, err := window.ParseRule(tt.zone, strings.Split(tt.days, ","), tt.start, tt.end)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, rule.String()); diff != "" {
				t.Errorf("String (-want +got):\n%s", diff)
			}
		})
	}
	if got := (window.Rule{}).String(); got != "never" {
		t.Errorf("zero Rule: String() = %q, want never", got)
	}
}

func TestParseRuleRefusesAndSaysWhatToWrite(t *testing.T) {
	week := []string{"Mon", "Tue"}
	for _, tt := range []struct {
		name       string
		zone       string
		days       []string
		start, end string
		quotes     string
		says       string
	}{
		{"no zone", "", week, "02:00", "06:00", `timezone ""`, `write an IANA name such as "Asia/Tokyo"`},
		{"the zone of whichever machine runs it", "Local", week, "02:00", "06:00", `timezone "Local"`, "write an IANA name"},
		{"a zone that does not exist", "Asia/Edo", week, "02:00", "06:00", `timezone "Asia/Edo" is unknown`, "write an IANA name"},
		{"a zone that leaves the database", "../Asia/Tokyo", week, "02:00", "06:00", `timezone "../Asia/Tokyo"`, "write an IANA name"},
		{"no days", "UTC", nil, "02:00", "06:00", `days [] is empty`, "write at least one of Mon"},
		{"a day in full", "UTC", []string{"Mon", "Wednesday"}, "02:00", "06:00", `day "Wednesday"`, "write Mon, Tue, Wed"},
		{"a day in lower case", "UTC", []string{"sat"}, "02:00", "06:00", `day "sat"`, "write Mon, Tue, Wed"},
		{"an empty day", "UTC", []string{""}, "02:00", "06:00", `day ""`, "write Mon, Tue, Wed"},
		{"a day twice", "UTC", []string{"Wed", "Sat", "Wed"}, "02:00", "06:00", `day "Wed" is listed twice`, "write each weekday once"},
		{"a start of 24:00", "UTC", week, "24:00", "06:00", `start "24:00"`, `from "00:00" to "23:59"`},
		{"a start of 25:00", "UTC", week, "25:00", "06:00", `start "25:00"`, `from "00:00" to "23:59"`},
		{"an end of 25:00", "UTC", week, "02:00", "25:00", `end "25:00"`, `from "00:00" to "24:00"`},
		{"an end of 24:01", "UTC", week, "02:00", "24:01", `end "24:01"`, `from "00:00" to "24:00"`},
		{"sixty minutes", "UTC", week, "02:60", "06:00", `start "02:60"`, "write HH:MM"},
		{"one digit", "UTC", week, "2:00", "06:00", `start "2:00"`, "write HH:MM"},
		{"seconds", "UTC", week, "02:00", "06:00:00", `end "06:00:00"`, "write HH:MM"},
		{"three digits", "UTC", week, "02:000", "06:00", `start "02:000"`, "write HH:MM"},
		{"a letter after a digit", "UTC", week, "0A:00", "06:00", `start "0A:00"`, "write HH:MM"},
		{"a dot", "UTC", week, "02.00", "06:00", `start "02.00"`, "write HH:MM"},
		{"letters for hours", "UTC", week, "AM:00", "06:00", `start "AM:00"`, "write HH:MM"},
		{"signs for minutes", "UTC", week, "02:-1", "06:00", `start "02:-1"`, "write HH:MM"},
		{"digits of another script", "UTC", week, "02:٣", "06:00", `start "02:٣"`, "write HH:MM"},
		{"nothing", "UTC", week, "02:00", "", `end ""`, "write HH:MM"},
		{"no length", "UTC", week, "02:00", "02:00", `start "02:00" equals end "02:00"`, `write "00:00" and "24:00" for the whole day`},
		{"midnight to midnight", "UTC", week, "00:00", "00:00", `start "00:00" equals end "00:00"`, `write "00:00" and "24:00" for the whole day`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rule, err := window.ParseRule(tt.zone, tt.days, tt.start, tt.end)
			if err == nil {
				t.Fatalf("accepted as %v", rule)
			}
			if diff := cmp.Diff(window.Rule{}.String(), rule.String()); diff != "" {
				t.Errorf("a refused rule opens (-want +got):\n%s", diff)
			}
			for _, part := range []string{tt.quotes, tt.says} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
		})
	}
}
