package tier

// The tiers, from the smallest grant to the largest.
const (
	Indie        = "indie"
	Bootstrapper = "bootstrapper"
	Compliance   = "compliance"
	Scale        = "scale"
)

// LongestRetentionDays is the longest default: for entries
// without a recorded retention.
const LongestRetentionDays = 365

// MaxRetentionDays limits the setting.
const MaxRetentionDays = 3650

// RetentionDays returns a tier's default retention in days; for an
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
