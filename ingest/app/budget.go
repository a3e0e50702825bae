package app

import (
	"cmp"
	"runtime"
	"time"

	"github.com/weirlog/weir/ingest/internal/admission"
	"github.com/weirlog/weir/ingest/internal/http"
	"github.com/weirlog/weir/shared/fairshare"
)

// Bodies read to find the key in them have a share of the
// memory, and of the bytes that may be wasted: those with a key
// in the header lose neither to them.
const (
	anonymousShare   = 8
	anonymousMaxBody = 8 << 20
)

// minInFlight leaves each share of the memory a few bodies.
const minInFlight = 16 << 20

// keyedShare is the memory for bodies of requests with a key in the header.
func keyedShare(inFlight int64) int64 { return inFlight - inFlight/anonymousShare }

// bodies are those of requests with a key in the header, and of those without.
func (c Config) bodies(clock func() time.Time) (keyed, anonymous *http.Bodies) {
	large := cmp.Or(c.LargeBodies, defaultLarge)
	inFlight, throttle := c.inFlight(), c.throttle()
	keyed = http.NewBodies(http.BodyLimits{
		Bytes: keyedShare(inFlight), Max: c.maxBody(), Requests: cmp.Or(c.Requests, defaultRequests), LargeBodies: large,
		Throttle: throttle,
	}, clock)
	fits := int(http.LargestBody(inFlight / anonymousShare))
	anonymous = http.NewBodies(http.BodyLimits{
		Bytes: inFlight / anonymousShare, Max: min(c.maxBody(), anonymousMaxBody, fits),
		Requests: cmp.Or(c.ClientRequests, defaultAnonymous), LargeBodies: large, Throttle: throttle,
	}, clock)
	return keyed, anonymous
}

// throttledBodies is how many bodies of a throttled holder are under
// way: one is read while another is published.
const throttledBodies = 2

// ordinaryRate is what one organization may send in ordinary bodies for each
// processor: about half of what one processor takes from the request to the
// views, 26,000 entries of 480 bytes of which a tenth are errors.
const ordinaryRate = 24 << 20

// throttle is how fast an organization's bodies come in while others send, too.
func (c Config) throttle() admission.ThrottleLimit {
	return admission.ThrottleLimit{
		PerSecond: cmp.Or(c.LargeBodyBytesPerSecond, defaultLargeRate), Bodies: throttledBodies,
		Ordinary: cmp.Or(c.BodyBytesPerSecond, int64(runtime.GOMAXPROCS(0))*ordinaryRate),
	}
}

// waste bounds the bytes an organization may send without effect.
func (c Config) waste() fairshare.Rate {
	return fairshare.Rate{Burst: cmp.Or(c.WastedBytes, defaultWasted), PerSecond: cmp.Or(c.WastedPerSecond, defaultWastedBack)}
}

// clients limits requests without a valid key.
func (c Config) clients() *admission.Clients {
	clients, waste := admission.NewClients(cmp.Or(c.ClientsPerMinute, defaultClients)), c.waste()
	clients.LimitWaste(fairshare.Rate{Burst: max(waste.Burst/anonymousShare, 1), PerSecond: max(waste.PerSecond/anonymousShare, 1)})
	return clients
}
