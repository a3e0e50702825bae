package tier

// The tiers, in the order of what they grant.
const (
	Indie        = "indie"
	Bootstrapper = "bootstrapper"
	Compliance   = "compliance"
	Scale        = "scale"
)

// LongestRetentionDays is the longest of the defaults: what holds for entries of which nobody has recorded for how long they are kept.
const LongestRetentionDays = 365

// MaxRetentionDays bounds what a setting may ask for.
const MaxRetentionDays = 3650

// RetentionDays is for how many days a tier keeps what was sent, where no setting differs; of an unknown tier the longest.
func RetentionDays(tier string) int {
	switch tier {
	case Indie:
		return 7
	case Bootstrapper:
		return 30
	case Scale:
		return 90
	}
	return LongestRetentionDays
}
