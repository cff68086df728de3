package window_test

import (
	"testing"
	"time"
)

var (
	weekly     = []entry{{"Asia/Tokyo", "Wed,Sat", "02:00", "06:00"}}
	nightly    = []entry{{"America/New_York", "Mon,Tue,Wed,Thu,Fri,Sat,Sun", "22:00", "04:00"}}
	wholeDay   = []entry{{"Europe/Berlin", "Mon,Tue,Wed,Thu,Fri,Sat,Sun", "00:00", "24:00"}}
	twoHalves  = []entry{{"Asia/Tokyo", "Mon,Tue,Wed,Thu,Fri,Sat,Sun", "00:00", "12:00"}, {"Asia/Seoul", "Mon,Tue,Wed,Thu,Fri,Sat,Sun", "12:00", "00:00"}}
	benchmarks = []struct {
		name    string
		entries []entry
	}{
		{"weekly", weekly}, {"nightly", nightly}, {"continuous", wholeDay}, {"two zones continuous", twoHalves},
	}
)

func BenchmarkAt(b *testing.B) {
	for _, bb := range benchmarks {
		b.Run(bb.name, func(b *testing.B) {
			s, now := schedule(b, bb.entries...), time.Date(2026, time.June, 10, 18, 0, 0, 0, time.UTC)
			b.ReportAllocs()
			for b.Loop() {
				s.At(now)
			}
		})
	}
}

func BenchmarkNext(b *testing.B) {
	for _, bb := range benchmarks {
		b.Run(bb.name, func(b *testing.B) {
			s, now := schedule(b, bb.entries...), time.Date(2026, time.June, 10, 18, 0, 0, 0, time.UTC)
			b.ReportAllocs()
			for b.Loop() {
				s.Next(now)
			}
		})
	}
}

func BenchmarkBetween90Days(b *testing.B) {
	for _, bb := range benchmarks {
		b.Run(bb.name, func(b *testing.B) {
			s, now := schedule(b, bb.entries...), time.Date(2026, time.June, 10, 18, 0, 0, 0, time.UTC)
			b.ReportAllocs()
			for b.Loop() {
				s.Between(now, now.AddDate(0, 0, 90))
			}
		})
	}
}

func BenchmarkMeasure(b *testing.B) {
	for _, bb := range benchmarks {
		b.Run(bb.name, func(b *testing.B) {
			s, now := schedule(b, bb.entries...), time.Date(2026, time.June, 10, 18, 0, 0, 0, time.UTC)
			b.ReportAllocs()
			for b.Loop() {
				s.Measure(now)
			}
		})
	}
}
