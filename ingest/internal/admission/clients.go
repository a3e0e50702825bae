package admission

import (
	"net/netip"
	"sync"
	"time"

	"github.com/weirlog/weir/shared/rate"
)

// maxClients is how many client networks are told apart. Beyond it some of those that are under way start anew.
const maxClients = 1 << 16

// Clients limits requests that carry no valid key, per client network.
type Clients struct {
	perMinute int

	mu      sync.Mutex
	buckets map[netip.Prefix]*rate.Bucket
	swept   int64 // when those that lack no token were last forgotten, nanoseconds since 1970
}

// NewClients allows each network perMinute such requests, at least 1.
func NewClients(perMinute int) *Clients {
	return &Clients{perMinute: max(perMinute, 1), buckets: map[netip.Prefix]*rate.Bucket{}}
}

// Take takes a token of network; now is nanoseconds since 1970.
func (c *Clients) Take(network netip.Prefix, now int64) rate.Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	return rate.Take(now, []rate.Limit{c.limit(network, now)})
}

// Give puts a token of network back: its request turned out to carry a valid key.
func (c *Clients) Give(network netip.Prefix, now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rate.Give(c.limit(network, now))
}

// Len is how many networks are known.
func (c *Clients) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.buckets)
}

func (c *Clients) limit(network netip.Prefix, now int64) rate.Limit {
	found := c.buckets[network]
	if found == nil {
		c.makeRoom(now)
		found = &rate.Bucket{}
		c.buckets[network] = found
	}
	return rate.Limit{Scope: rate.ScopeClient, PerMinute: c.perMinute, Bucket: found}
}

// makeRoom forgets clients that lack no token, and failing that any one. It looks at all of them at most once a second:
// whoever comes with ever new addresses must not make each request dear.
func (c *Clients) makeRoom(now int64) {
	if len(c.buckets) < maxClients {
		return
	}
	if now-c.swept >= int64(time.Second) {
		c.swept = now
		forgetFull(c.buckets, now)
	}
	for network := range c.buckets {
		if len(c.buckets) < maxClients {
			return
		}
		delete(c.buckets, network)
	}
}
