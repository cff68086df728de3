// Package page holds the tests of the pages of tasuki plan in a real browser: what they show, the
// simulator that they carry, and that they can be read and used by everybody.
package page
