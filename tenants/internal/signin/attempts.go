package signin

import (
	"crypto/sha256"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
	"github.com/weirlog/weir/tenants/internal/password"
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

// limits count the attempts of all pages that ask for a proof of identity.
type limits struct {
	byNetwork   *attempts
	byChallenge *attempts // sign-ins without a password, also by network: wrong passwords use up none of them
	byEmail     *attempts // and by code
	byDevice    *attempts
	byMember    *attempts // confirmations of signed-in members
	proxies     []netip.Prefix
}

func newLimits(kit *pages.Kit) *limits {
	return &limits{
		byNetwork:   newAttempts(kit.Clock, perNetwork, networkRefill),
		byChallenge: newAttempts(kit.Clock, perNetwork, networkRefill),
		byEmail:     newAttempts(kit.Clock, perEmail, emailRefill),
		byDevice:    newAttempts(kit.Clock, perDevice, deviceRefill),
		byMember:    newAttempts(kit.Clock, perMember, memberRefill),
		proxies:     kit.TrustedProxies,
	}
}

// signIn counts an attempt to sign in: by the
// member's own device, or by network and address.
func (l *limits) signIn(r *http.Request, device tenants.Device, email string) (wait time.Duration) {
	if device.Known() {
		return l.byDevice.take(device.Hash)
	}
	return l.attempt(r, email)
}

// attempt counts an attempt, by the network
// it comes from and the address it is for.
func (l *limits) attempt(r *http.Request, email string) (wait time.Duration) {
	if wait = l.byNetwork.take(l.network(r)); wait > 0 {
		return wait
	}
	return l.byEmail.take(email)
}

// network is a request's network, by which attempts are counted.
func (l *limits) network(r *http.Request) string {
	return httpapi.ClientNetwork(httpapi.ClientAddress(r, l.proxies)).String()
}

// challenge counts a challenge for a sign-in.
func (l *limits) challenge(r *http.Request) (wait time.Duration) {
	return l.byChallenge.take(l.network(r))
}

// member counts an attempt of the signed-in member.
func (l *limits) member(r *http.Request) (wait time.Duration) {
	return l.byMember.take(pages.CallerOf(r).ID)
}

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

// Outcomes of attempts to sign in with a password, as metrics have them.
const (
	outcomeIn      = "signed_in"
	outcomeWrong   = "wrong"
	outcomeLimited = "limited" // too many attempts before
	outcomeOff     = "passwords_off"
	outcomeBusy    = "busy" // too many others at the same time
)

// metrics counts sign-ins.
type metrics struct {
	signIns *prometheus.CounterVec
}

func newMetrics(registerer prometheus.Registerer, passwords *password.Hasher) *metrics {
	with := promauto.With(registerer)
	m := &metrics{with.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_tenants_sign_ins_total", Help: "Attempts to sign in with a password, by how they ended and whether the device was known.",
	}, []string{"outcome", "device"})}
	for _, outcome := range []string{outcomeIn, outcomeWrong, outcomeLimited, outcomeOff, outcomeBusy} {
		m.signIns.WithLabelValues(outcome, deviceWord(true)) // exported as 0, so that the first one is an increase
		m.signIns.WithLabelValues(outcome, deviceWord(false))
	}
	gauge := func(name, help string, read func() int) {
		with.NewGaugeFunc(prometheus.GaugeOpts{Name: "weir_tenants_password_hashes_" + name, Help: help}, func() float64 { return float64(read()) })
	}
	gauge("anonymous", "Passwords that are being hashed for unknown devices, or whose place rests.", func() int { return passwords.Anonymous().Held })
	gauge("anonymous_waiting", "Passwords of unknown devices that wait to be hashed.", func() int { return passwords.Anonymous().Waiting })
	gauge("known", "Passwords that are being hashed for known devices and members.", func() int { return passwords.Known().Held })
	gauge("known_waiting", "Passwords of known devices and members that wait to be hashed.", func() int { return passwords.Known().Waiting })
	return m
}

func deviceWord(known bool) string {
	if known {
		return "known"
	}
	return "unknown"
}

// signIn counts an attempt.
func (m *metrics) signIn(outcome string, knownDevice bool) {
	m.signIns.WithLabelValues(outcome, deviceWord(knownDevice)).Inc()
}
