package app

import (
	"cmp"
	"fmt"
	"runtime"
	"time"

	"github.com/weirlog/weir/ingest/internal/admission"
	"github.com/weirlog/weir/ingest/internal/http"
	"github.com/weirlog/weir/shared/fairshare"
)

// BodyConfig bounds the bodies of requests.
type BodyConfig struct {
	MaxBodyBytes            int   `help:"Largest body after decompression, bytes." env:"WEIR_INGEST_MAX_BODY_BYTES" default:"134217728"`
	InFlightBytes           int64 `help:"Most bytes of bodies in memory at once, decompression included." env:"WEIR_INGEST_IN_FLIGHT_BYTES" default:"226492416"`
	Requests                int   `help:"Requests under way at once for one organization." env:"WEIR_INGEST_REQUESTS" default:"256"`
	LargeBodies             int   `help:"Bodies of more than 1 MiB under way at once for one organization." env:"WEIR_INGEST_LARGE_BODIES" default:"8"`
	LargeBodyBytesPerSecond int64 `help:"Bytes of bodies of more than 1 MiB, after decompression, that are read of one organization in a second while others send, too." env:"WEIR_INGEST_LARGE_BODY_BYTES_PER_SECOND" default:"16777216"`
	BodyBytesPerSecond      int64 `help:"Bytes of other bodies that are read of one organization in a second while others send, too; an entry counts as 256 more, an error as 2 KiB more. 0: 24 MiB for each processor." env:"WEIR_INGEST_BODY_BYTES_PER_SECOND" default:"0"`
	ClientRequests          int   `help:"Requests without a key in the header under way at once for one client address." env:"WEIR_INGEST_CLIENT_REQUESTS" default:"32"`
	WastedBytes             int64 `help:"Bytes that an organization may send in vain, such as in invalid entries, before it has to wait; a client address without a key: an eighth." env:"WEIR_INGEST_WASTED_BYTES" default:"268435456"`
	WastedPerSecond         int64 `help:"How many of these bytes come back in a second." env:"WEIR_INGEST_WASTED_BYTES_PER_SECOND" default:"4194304"`
	ClientsPerMinute        int   `help:"Requests without a valid key per minute and client address." env:"WEIR_INGEST_CLIENTS_PER_MINUTE" default:"300"`
}

// checkMemory reports whether the largest body fits into the memory for bodies.
func (c BodyConfig) checkMemory() error {
	inFlight, maxBody := c.inFlight(), int64(c.largest())
	if inFlight < minInFlight {
		return fmt.Errorf("WEIR_INGEST_IN_FLIGHT_BYTES is %d: at least %d are needed", inFlight, minInFlight)
	}
	if fits := http.LargestBody(keyedShare(inFlight)); maxBody > fits {
		return fmt.Errorf("WEIR_INGEST_IN_FLIGHT_BYTES is %d: a body of WEIR_INGEST_MAX_BODY_BYTES=%d does not fit, at most one of %d does", inFlight, maxBody, fits)
	}
	return nil
}

func (c BodyConfig) inFlight() int64 { return cmp.Or(c.InFlightBytes, defaultInFlight) }
func (c BodyConfig) largest() int    { return cmp.Or(c.MaxBodyBytes, defaultMaxBody) }

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

// open returns the bodies of requests with a key in the header, and of those without.
func (c BodyConfig) open(clock func() time.Time) (keyed, anonymous *http.Bodies) {
	large := cmp.Or(c.LargeBodies, defaultLarge)
	inFlight, throttle := c.inFlight(), c.throttle()
	keyed = http.NewBodies(http.BodyLimits{
		Bytes: keyedShare(inFlight), Max: c.largest(), Requests: cmp.Or(c.Requests, defaultRequests), LargeBodies: large,
		Throttle: throttle,
	}, clock)
	fits := int(http.LargestBody(inFlight / anonymousShare))
	anonymous = http.NewBodies(http.BodyLimits{
		Bytes: inFlight / anonymousShare, Max: min(c.largest(), anonymousMaxBody, fits),
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
func (c BodyConfig) throttle() admission.ThrottleLimit {
	return admission.ThrottleLimit{
		PerSecond: cmp.Or(c.LargeBodyBytesPerSecond, defaultLargeRate), Bodies: throttledBodies,
		Ordinary: cmp.Or(c.BodyBytesPerSecond, int64(runtime.GOMAXPROCS(0))*ordinaryRate),
	}
}

// waste bounds the bytes an organization may send without effect.
func (c BodyConfig) waste() fairshare.Rate {
	return fairshare.Rate{Burst: cmp.Or(c.WastedBytes, defaultWasted), PerSecond: cmp.Or(c.WastedPerSecond, defaultWastedBack)}
}

// clients limits requests without a valid key.
func (c BodyConfig) clients() *admission.Clients {
	clients, waste := admission.NewClients(cmp.Or(c.ClientsPerMinute, defaultClients)), c.waste()
	clients.LimitWaste(fairshare.Rate{Burst: max(waste.Burst/anonymousShare, 1), PerSecond: max(waste.PerSecond/anonymousShare, 1)})
	return clients
}
