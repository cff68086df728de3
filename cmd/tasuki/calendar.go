package main

import (
	"fmt"
	"time"
)

// calendar writes instants for people in one time zone, with their weekdays.
type calendar struct {
	zone   *time.Location
	layout string
	offset string // that all instants share; empty if it changes between them
}

// calendarOf is that of the instants from one until another.
func calendarOf(zone *time.Location, from, to time.Time) calendar {
	c := calendar{zone: zone, layout: "Mon 2006-01-02 15:04"}
	if _, changes := from.In(zone).ZoneBounds(); !changes.IsZero() && changes.Before(to) {
		c.layout += " -07:00"
	} else {
		c.offset = from.In(zone).Format("-07:00")
	}
	return c
}

// String names the zone.
func (c calendar) String() string {
	name := c.zone.String()
	if name == "Local" {
		name = "this machine"
	}
	if c.offset == "" || name == "UTC" {
		return name
	}
	return name + ", UTC" + c.offset
}

func (c calendar) of(t time.Time) string { return t.In(c.zone).Format(c.layout) }

// readZone reads the name of a time zone; an empty one is nil.
func readZone(name string) (*time.Location, error) {
	if name == "" {
		return nil, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("--tz %q is no time zone that is known here: write a name such as Asia/Tokyo, or UTC, or Local for that of this machine", name)
	}
	return zone, nil
}
