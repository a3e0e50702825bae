package tenants

import "fmt"

// maxRate is the highest limit of a key, in requests
// per minute, if its organization's is unknown.
const maxRate = 1_000_000

// checkRate returns the fault of a key's own limit, in requests per minute:
// 0 is none; above its organization's (0: unknown) it has no effect.
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
