package tenants

import "fmt"

// maxRate is the highest limit of a key where its organization's
// is unknown, in requests per minute.
const maxRate = 1_000_000

// checkRate finds faults of a key's own limit, in requests per minute: 0 is
// none, and above its organization's (0: unknown) it would have no effect.
func checkRate(rate, ceiling int) Invalid {
	if ceiling == 0 {
		ceiling = maxRate
	}
	if rate < 0 || rate > ceiling {
		return Invalid{{"rate_per_minute", fmt.Sprintf("rate_per_minute is %d.", rate),
			fmt.Sprintf("Use 1 to %d, the limit of the organization, or 0 for no limit of its own.", ceiling)}}
	}
	return nil
}
