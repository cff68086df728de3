package rotation

import (
	"time"

	"github.com/tasuki-io/tasuki/internal/window"
)

// Policy is a RotationPolicy with its defaults applied (§5.4). Durations are as the
// operator gave them; what follows from them is derived per NodeClaim.
type Policy struct {
	Name string

	// Invalid says why the policy cannot be used although admission let it pass. A pool
	// under such a policy starts nothing; a rotation under way is carried to its end.
	Invalid string

	Windows window.Schedule
	Measure window.Measure // of Windows, over the next 400 days

	AgeThreshold time.Duration // 0 is "auto"
	Chances      int           // K, minRotationChances

	ReadyTimeout  time.Duration
	CooldownAfter time.Duration
	FailurePause  time.Duration
	RetryBackoff  time.Duration

	DrainEstimate        *time.Duration // nil: terminationGracePeriod, at most 10m
	ProvisioningEstimate *time.Duration // nil: readyTimeout, at most 5m

	ForcefulFallback     bool // drain without a surge when no time is left for one (§3.6)
	WholeNodeReservation bool // reserve a node rather than the sum of its pods (§3.3)

	Required  []string // matchNodeRequirements.required
	Preferred []string // matchNodeRequirements.preferred
}
