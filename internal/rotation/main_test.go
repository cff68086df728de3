package rotation

import _ "time/tzdata" // so that the tests also run where no time zones are installed

// fatal is what a fixture needs of a *testing.T or a *rapid.T.
type fatal interface {
	Helper()
	Fatal(args ...any)
}
