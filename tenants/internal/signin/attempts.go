package signin

import (
	"crypto/sha256"
	"time"

	"github.com/weirlog/weir/shared/fairshare"
)

// Limits of attempts to prove one's identity: a burst, then so many
// a minute, per process. Attempts for an address from a device known
// to its member count for that device alone: others who try to sign
// in as a member, or from the same network, must not lock them out.
// Confirmations of signed-in members are also counted apart.
const (
	perNetwork    = 20
	networkRefill = 4
	perEmail      = 10
	emailRefill   = 2
	perDevice     = 10
	deviceRefill  = 2
	perMember     = 10
	memberRefill  = 2
)

// maxTracked is how many names each limit tracks. Each kind has
// its own table: ever new networks must not evict an address.
const maxTracked = 100_000

// attempts limits how often something is tried under a name. Names are stored
// as hashes, so that a long one costs no more. Safe for concurrent use.
type attempts struct {
	clock     func() time.Time
	burst     int
	perMinute int
	table     *fairshare.Table[[sha256.Size]byte]
}

func newAttempts(clock func() time.Time, burst, perMinute int) *attempts {
	return &attempts{clock, burst, perMinute, fairshare.NewTable[[sha256.Size]byte](maxTracked)}
}

// take counts one attempt under name, or returns
// how long to wait for the next one: 0: counted.
func (a *attempts) take(name string) (wait time.Duration) {
	return a.table.Take(a.clock(), fairshare.KeyLimit[[sha256.Size]byte]{
		Scope: fairshare.ScopeClient, Key: sha256.Sum256([]byte(name)), PerMinute: a.perMinute, Burst: a.burst,
	}).RetryAfter
}
