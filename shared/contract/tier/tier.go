package tier

// The tiers, in the order of what they grant.
const (
	Indie        = "indie"
	Bootstrapper = "bootstrapper"
	Compliance   = "compliance"
	Scale        = "scale"
)

// LongestRetentionDays is the longest default: for entries
// without a recorded retention.
const LongestRetentionDays = 365

// MaxRetentionDays bounds what a setting may ask for.
const MaxRetentionDays = 3650

// RetentionDays is a tier's default retention in days; of an
// unknown tier the longest.
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
