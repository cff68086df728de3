package window_test

import _ "time/tzdata" // so that the tests also run where no time zones are installed
